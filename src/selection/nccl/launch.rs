//! How many channels a communicator has, and how many channels and threads a call gets
//! (`graph/connect.cc`, `graph/paths.cc`, `enqueue.cc`).

use super::constants::Constants;
use super::environment::Settings;
use super::graph::Graph;
use super::tables::{Generation, index};
use super::tune::Communicator;
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, CHANNELS_MAX, Collective, Split, threads_max, threshold};
use crate::algorithm::p2p::P2p;

/// Channels of a communicator for rings and trees: each channel of the search twice, then what the
/// settings ask for. `capability` is the lowest compute capability x 10.
pub fn channels(ring: &Graph, capability: u32, machines: u32, settings: &Settings) -> u32 {
    let mut count = (2 * ring.channels.len().max(1) as u32).min(CHANNELS_MAX);
    if capability >= 90 && machines > 1 && ring.bw_intra > 45.0 && count < 16 {
        count *= 2;
    }
    let most = |limit: Option<u32>| limit.unwrap_or(CHANNELS_MAX);
    let least = |limit: Option<u32>| limit.unwrap_or(1);
    count = count.min(most(settings.channels.1)).min(most(settings.blocks.1));
    count.max(least(settings.channels.0)).max(least(settings.blocks.0))
}

/// Channels of NVLS.
pub fn nvls_channels(
    constants: &Constants,
    generation: Generation,
    machines: u32,
    settings: &Settings,
) -> u32 {
    let table = constants.nvls_channels;
    let default = match (generation, machines) {
        (Generation::Blackwell, 1) => table.blackwell,
        (Generation::Blackwell, _) => table.blackwell_across,
        _ => table.hopper,
    };
    let count = settings.nvls_channels.unwrap_or(default);
    let (least, most) = settings.blocks;
    count.min(most.unwrap_or(CHANNELS_MAX)).max(least.unwrap_or(1))
}

/// A call with NCCL's limits for this communicator and these settings, ready to be split.
pub fn split(
    constants: &Constants,
    comm: &Communicator,
    settings: &Settings,
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
) -> Split {
    let (low, high) = comm.capability;
    let channels = if algorithm.is_nvls() {
        let generation = constants.generation_of(low, high);
        nvls_channels(constants, generation, comm.machines, settings)
    } else {
        comm.channels
    };
    let told = match algorithm {
        Algorithm::Tree => settings.thresholds[0][index(protocol)],
        Algorithm::Ring => settings.thresholds[1][index(protocol)],
        _ => None,
    };
    Split {
        collective,
        algorithm,
        protocol,
        bytes,
        ranks: comm.ranks,
        channels,
        threads_max: most_threads(constants, &comm.ring, settings, algorithm, protocol),
        threshold: told.unwrap_or_else(|| threshold(algorithm, protocol, comm.ranks)),
        channel_traffic_min: constants.channel_traffic_min,
    }
}

/// Most threads of a channel, without those that only synchronise.
pub fn most_threads(
    constants: &Constants,
    ring: &Graph,
    settings: &Settings,
    algorithm: Algorithm,
    protocol: Protocol,
) -> u32 {
    if !matches!(algorithm, Algorithm::Ring | Algorithm::Tree) {
        return threads_max(algorithm, protocol);
    }
    let simple = constants.simple_threads;
    let rate = ring.bw_intra * ring.channels.len() as f64;
    match protocol {
        Protocol::Ll128 => settings.threads.1,
        _ => settings.threads.0,
    }
    .unwrap_or_else(|| match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::Simple) if rate <= simple.narrow_up_to => simple.narrow,
        (Algorithm::Ring, Protocol::Simple) => simple.wide,
        _ => threads_max(algorithm, protocol),
    })
}

/// Channels and chunks of sends and receives, with so many channels to a peer (two, or two for each
/// NVLink of the thinnest pair, as NCCL logs them at its start); `all_nvlink`: NVLink joins every two
/// ranks.
pub fn p2p(
    constants: &Constants,
    comm: &Communicator,
    settings: &Settings,
    channels_a_peer: u32,
    all_nvlink: bool,
) -> P2p {
    let (least, most) = settings.p2p_channels;
    let channels = comm.channels.min(most.unwrap_or(CHANNELS_MAX)).max(least.unwrap_or(1));
    let channels = channels.next_power_of_two();
    let (pcie, over_nvlink) = settings.p2p_chunks;
    let chunk = if comm.machines > 1 {
        constants.p2p_chunk.network
    } else if all_nvlink {
        over_nvlink.unwrap_or(constants.p2p_chunk.nvlink)
    } else {
        pcie.unwrap_or(constants.p2p_chunk.pcie)
    };
    let simple = settings.buffers[2].unwrap_or(constants.buffers.simple);
    P2p {
        channels,
        channels_a_peer: channels_a_peer.min(channels),
        chunk: chunk.min(simple / STEPS),
        ll_step: settings.buffers[0].unwrap_or(constants.buffers.ll) / STEPS,
        ll_max: settings.p2p_ll_max.unwrap_or(constants.p2p_ll_max),
        parts_follow_ll: constants.p2p_parts_follow_ll,
        ranks: comm.ranks,
    }
}

/// Steps that a connection's buffer holds.
pub const STEPS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::nccl::Version;
    use crate::selection::nccl::graph::{PathType, Pattern};

    fn constants(version: &str) -> Constants {
        Constants::of(Version::parse(version).expect("a version")).expect("constants")
    }

    fn ring(channels: usize, rate: f64) -> Graph {
        Graph {
            pattern: Pattern::Ring,
            channels: vec![(0..8).collect(); channels],
            bw_intra: rate,
            bw_inter: rate,
            latency_inter_us: 0.0,
            type_intra: PathType::Sys,
            type_inter: PathType::Pix,
            same_channels: true,
            cross_nic: 0,
            fallback: false,
        }
    }

    #[test]
    fn a_communicator_has_each_search_channel_twice_within_the_settings() {
        let count = |searched, text: &str| {
            let settings = Settings::parse(text).expect("settings");
            channels(&ring(searched, 20.0), 120, 1, &settings)
        };
        let known = [
            (1, "", 2),
            (12, "", 24),
            (40, "", 64),
            (2, "NCCL_MIN_NCHANNELS=8", 8),
            (12, "NCCL_MAX_NCHANNELS=4", 4),
            (12, "NCCL_MAX_CTAS=8 NCCL_MIN_CTAS=16", 16),
        ];
        for (searched, text, wanted) in known {
            assert_eq!(count(searched, text), wanted, "{searched} {text}");
        }
    }

    #[test]
    fn nvls_has_channels_of_its_own() {
        let count = |version: &str, generation, text: &str| {
            let settings = Settings::parse(text).expect("settings");
            nvls_channels(&constants(version), generation, 1, &settings)
        };
        assert_eq!(count("2.30.7", Generation::Hopper, ""), 16);
        assert_eq!(count("2.30.7", Generation::Blackwell, ""), 24);
        assert_eq!(count("2.30.7", Generation::Blackwell, "NCCL_MAX_CTAS=8"), 8);
        assert_eq!(count("2.30.7", Generation::Hopper, "NCCL_NVLS_NCHANNELS=20"), 20);
    }

    #[test]
    fn sends_are_cut_into_parts() {
        // Eight GPUs on PCIe, four channels: 2 a peer, but 2 x 8 ranks are more than there are, so
        // that a send starts with one part.
        let of = |version: &str| P2p {
            channels: 4,
            channels_a_peer: 2,
            chunk: 128 << 10,
            ll_step: 64 << 10,
            ll_max: 16_384,
            parts_follow_ll: constants(version).p2p_parts_follow_ll,
            ranks: 8,
        };
        let known = [
            // LL up to 16 KiB a channel: of the one in use, or up to 2.28 of both to the peer.
            ("2.30.7", 16_384, (1, Protocol::Ll)),
            ("2.30.7", 16_385, (1, Protocol::Simple)),
            ("2.28.9", 32_768, (1, Protocol::Ll)),
            ("2.28.9", 32_769, (1, Protocol::Simple)),
            // 32 steps of 128 KiB are 4 MiB: more is cut once.
            ("2.30.7", 4 << 20, (1, Protocol::Simple)),
            ("2.30.7", (4 << 20) + 1, (2, Protocol::Simple)),
        ];
        for (version, bytes, wanted) in known {
            assert_eq!(of(version).parts(bytes, false), wanted, "{version} {bytes}");
        }
        assert_eq!(of("2.30.7").parts(1024, true), (1, Protocol::Simple));
        // Rounds begin at 0, 2, 1, 3 (two bits, reversed), then again.
        let first: Vec<u32> = (0..4).map(|round| of("2.30.7").first_channel(round)).collect();
        assert_eq!(first, [0, 2, 1, 3]);
        assert_eq!(of("2.30.7").all_to_all_blocks(1024), 4);
    }

    #[test]
    fn settings_bound_threads() {
        let constants = constants("2.30.7");
        let most = |rate, text: &str, protocol| {
            let settings = Settings::parse(text).expect("settings");
            most_threads(&constants, &ring(1, rate), &settings, Algorithm::Ring, protocol)
        };
        // 12 GB/s in all is PCIe of generation 3: half of the threads.
        assert_eq!(most(12.0, "", Protocol::Simple), 256);
        assert_eq!(most(15.0, "", Protocol::Simple), 512);
        assert_eq!(most(12.0, "", Protocol::Ll), 512);
        assert_eq!(most(15.0, "NCCL_NTHREADS=128", Protocol::Ll), 128);
        assert_eq!(most(15.0, "NCCL_NTHREADS=128", Protocol::Ll128), 640);
        assert_eq!(most(15.0, "NCCL_LL128_NTHREADS=320", Protocol::Ll128), 320);
    }
}
