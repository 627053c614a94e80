//! Does the cost model of NCCL say what NCCL said: latencies, bandwidths, choices, channels and
//! threads as it printed them?

use collsim::algorithm::Protocol;
use collsim::algorithm::nccl::{Algorithm, Collective};
use collsim::input::nccl_xml::read_system;
use collsim::selection::nccl::Version;
use collsim::selection::nccl::beliefs::Beliefs;
use collsim::selection::nccl::constants::Constants;
use collsim::selection::nccl::environment::Settings;
use collsim::selection::nccl::graph::{Graph, GraphFile, PathType, Pattern};
use collsim::selection::nccl::launch::{channels, p2p, split};
use collsim::selection::nccl::setup::Setup;
use collsim::selection::nccl::tune::{Call, Communicator, Cpu, Model};

/// Rows of a file of `tests/data/nccl` without its header.
fn rows(file: &str) -> Vec<csv::StringRecord> {
    let path = format!("{}/tests/data/nccl/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut reader = csv::Reader::from_path(path).expect("a file");
    reader.records().map(|row| row.expect("a row")).collect()
}

fn constants(version: &str) -> Constants {
    Constants::of(Version::parse(version).expect("a version")).expect("constants")
}

/// A graph of `channels` x `rate` GB/s over all ranks of a machine in their order.
fn graph(pattern: Pattern, ranks: u32, channels: usize, rate: f64, path: PathType) -> Graph {
    Graph {
        pattern,
        channels: vec![(0..ranks).collect(); channels],
        bw_intra: rate,
        bw_inter: rate,
        latency_inter_us: 0.0,
        type_intra: path,
        type_inter: PathType::Pix,
        same_channels: pattern == Pattern::Ring,
        cross_nic: 0,
        fallback: false,
    }
}

/// One machine without NVLS, its ring and its tree alike.
fn machine(ranks: u32, capability: u32, ring: Graph, tree: Graph) -> Communicator {
    let channels = channels(&ring, capability, 1, &Settings::default());
    Communicator {
        ranks,
        machines: 1,
        capability: (capability, capability),
        cpu: Cpu::Intel,
        channels,
        ring,
        tree,
        nvls: Err("no NVSwitch".into()),
        collnet: None,
    }
}

fn pcie(channels: usize, rate: f64) -> Model {
    let of = |pattern| graph(pattern, 8, channels, rate, PathType::Sys);
    let comm = machine(8, 120, of(Pattern::Ring), of(Pattern::BalancedTree));
    Model::new(&constants("2.30.7"), &comm, &Settings::default())
}

fn time(model: &Model, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> f32 {
    let row = model
        .rows_of(Collective::AllReduce)
        .find(|row| row.algorithm == algorithm && row.protocol == protocol)
        .expect("a row");
    model.time_us(row, Call::of(bytes)).expect("a price")
}

/// Eight GPUs on PCIe, all-reduce, NCCL 2.30.7: us of Tree LL, Tree Simple, Ring LL, Ring LL128
/// (off), Ring Simple.
#[test]
fn eight_gpus_on_pcie_are_priced_as_nccl_prices_them() {
    let known: [(usize, f64, u64, [&str; 5]); 8] = [
        (1, 12.0, 14_336, ["34.9", "67.6", "24.8", "51.3", "90.3"]),
        (1, 12.0, 43_008, ["63.1", "77.4", "33.1", "55.8", "94.5"]),
        (1, 24.0, 14_336, ["27.8", "66.0", "22.7", "50.1", "89.2"]),
        (1, 24.0, 43_008, ["41.9", "70.9", "26.9", "52.4", "91.3"]),
        (2, 24.0, 14_336, ["24.3", "65.2", "21.6", "49.6", "88.7"]),
        (2, 24.0, 43_008, ["31.4", "67.6", "23.7", "50.7", "89.8"]),
        (2, 20.0, 14_336, ["25.0", "65.4", "21.9", "49.7", "88.8"]),
        (2, 20.0, 43_008, ["33.5", "68.3", "24.4", "51.0", "90.1"]),
    ];
    for (channels, rate, bytes, times) in known {
        let model = pcie(channels, rate);
        let found = [
            (Algorithm::Tree, Protocol::Ll),
            (Algorithm::Tree, Protocol::Simple),
            (Algorithm::Ring, Protocol::Ll),
            (Algorithm::Ring, Protocol::Ll128),
            (Algorithm::Ring, Protocol::Simple),
        ]
        .map(|(algorithm, protocol)| format!("{:.1}", time(&model, algorithm, protocol, bytes)));
        assert_eq!(found, times, "{channels} x {rate}, {bytes}");
        let choice = model.choose(Collective::AllReduce, Call::of(bytes)).expect("a choice");
        assert_eq!((choice.algorithm, choice.protocol), (Algorithm::Ring, Protocol::Ll));
    }
}

#[test]
fn a_failed_search_turns_the_choice_to_simple() {
    let model = pcie(1, 0.1);
    let found = |bytes| {
        [
            (Algorithm::Tree, Protocol::Ll),
            (Algorithm::Tree, Protocol::Simple),
            (Algorithm::Ring, Protocol::Ll),
            (Algorithm::Ring, Protocol::Ll128),
            (Algorithm::Ring, Protocol::Simple),
        ]
        .map(|(algorithm, protocol)| time(&model, algorithm, protocol, bytes).round())
    };
    assert_eq!(found(14_336), [1713.0, 454.0, 522.0, 322.0, 339.0]);
    assert_eq!(found(43_008), [5096.0, 1623.0, 1526.0, 867.0, 841.0]);
    // LL: 20.6 + S / (0.05 x 8 / 14 GB/s); Simple: 88.2 + S / (0.1 x 8 / 14); equal at 3,862 bytes.
    let protocol = |bytes| {
        let choice = model.choose(Collective::AllReduce, Call::of(bytes)).expect("a choice");
        assert_eq!(choice.algorithm, Algorithm::Ring, "{bytes}");
        choice.protocol
    };
    assert_eq!((protocol(3856), protocol(3872)), (Protocol::Ll, Protocol::Simple));
    assert_eq!((protocol(14_336), protocol(43_008)), (Protocol::Simple, Protocol::Simple));
}

/// Every printed latency and bandwidth, and nothing else that is on.
#[track_caller]
fn same_model(model: &Model, printed: &[csv::StringRecord]) {
    let of = |row: &csv::StringRecord, at: usize| row.get(at).expect("a column").to_owned();
    let mut found: Vec<Vec<String>> = Vec::new();
    for row in model.rows.iter().filter(|row| row.off.is_none()) {
        found.push(vec![
            row.collective.name().to_owned(),
            row.algorithm.name().to_owned(),
            row.protocol.name().to_owned(),
            format!("{:.1}", row.latency_us),
            format!("{:.1}", row.bandwidth_gb_per_s),
        ]);
    }
    let printed: Vec<Vec<String>> = printed
        .iter()
        .map(|row| (row.len() - 5..row.len()).map(|at| of(row, at)).collect())
        .collect();
    assert_eq!(found, printed);
}

#[test]
fn two_a100_with_a_bridge_have_the_printed_model() {
    // 12 links of 20 GB/s: rings at 240, trees at twice that (log: 24 channels).
    let ring = graph(Pattern::Ring, 2, 12, 20.0, PathType::Nvl);
    let tree = graph(Pattern::BalancedTree, 2, 12, 40.0, PathType::Nvl);
    let comm = machine(2, 80, ring, tree);
    assert_eq!(comm.channels, 24);
    let model = Model::new(&constants("2.27.7"), &comm, &Settings::default());
    same_model(&model, &rows("a100pcie80-x2/tuner_model.csv"));
}

/// Two H200 as their graph files say: over NVLink, and through host memory.
fn h200x2(peer: bool) -> Communicator {
    let (channels, rate, path) =
        if peer { (12, 30.0, PathType::Nvl) } else { (2, 20.0, PathType::Phb) };
    let ring = graph(Pattern::Ring, 2, channels, rate, path);
    machine(2, 90, ring, graph(Pattern::BalancedTree, 2, channels, 2.0 * rate, path))
}

#[test]
fn two_h200_have_the_printed_model() {
    let all = rows("h200x2/tuner_model.csv");
    for (setting, peer) in [("P2P", true), ("no P2P", false)] {
        let printed: Vec<_> =
            all.iter().filter(|row| row.get(0) == Some(setting)).cloned().collect();
        let model = Model::new(&constants("2.28.9"), &h200x2(peer), &Settings::default());
        same_model(&model, &printed);
    }
}

fn collective(word: &str) -> Option<Collective> {
    Collective::from_name(&word.replace('_', ""))
}

#[test]
fn two_h200_choose_and_launch_as_logged() {
    let constants = constants("2.28.9");
    let mut seen = 0;
    for row in rows("h200x2/launch.csv") {
        let column = |at: usize| row.get(at).expect("a column");
        let Some(collective) = collective(column(1)) else { continue };
        let comm = h200x2(column(0).starts_with("P2P"));
        let bytes: u64 = column(2).parse().expect("bytes");
        let named = |name: &str| {
            let forced = format!("NCCL_ALGO={} NCCL_PROTO={name}", column(3));
            if column(0).ends_with("free") { String::new() } else { forced }
        };
        let settings = Settings::parse(&named(column(4))).expect("settings");
        let model = Model::new(&constants, &comm, &settings);
        let choice = model.choose(collective, Call::of(bytes)).expect("a choice");
        let (algorithm, protocol) = (choice.algorithm, choice.protocol);
        assert_eq!((algorithm.name(), protocol.name()), (column(3), column(4)), "{row:?}");
        let split = split(&constants, &comm, &settings, collective, algorithm, protocol, bytes);
        assert_eq!(split.shares().len().to_string(), column(6), "blocks: {row:?}");
        assert_eq!(split.launch().block_threads().to_string(), column(7), "threads: {row:?}");
        seen += 1;
    }
    assert_eq!(seen, 600);
}

#[test]
fn two_h200_send_and_receive_in_the_blocks_that_were_seen() {
    let constants = constants("2.28.9");
    // NV18: 2 x 18 to a peer, rounded up to 64; 2 over PCIe.
    for (peer, to_peer, logged) in [(true, 64, (32, 32)), (false, 2, (4, 2))] {
        let comm = h200x2(peer);
        let p2p = p2p(&constants, &comm, &Settings::default(), to_peer, peer);
        assert_eq!((p2p.channels, p2p.channels_a_peer), logged);
        let setting = if peer { "P2P, free" } else { "no P2P, free" };
        let wanted = |row: &csv::StringRecord| {
            row.get(0) == Some(setting) && row.get(1) == Some("all_to_all")
        };
        let mut seen = 0;
        for row in rows("h200x2/launch.csv").iter().filter(|row| wanted(row)) {
            let bytes: u64 = row.get(2).expect("a column").parse().expect("bytes");
            // Two ranks: half of the buffer goes to each.
            let blocks = p2p.all_to_all_blocks(bytes / 2);
            assert_eq!(blocks.to_string(), row.get(6).expect("a column"), "{row:?}");
            seen += 1;
        }
        assert_eq!(seen, 15);
    }
}

#[test]
fn four_machines_of_eight_3090_choose_as_printed_in_the_printed_time() {
    // Slopes say 7 GB/s for rings (S / time x 62 / 32) and trees (x 3.8 x 2 / 0.92): one channel
    // of a speed that NCCL 2.12 tries. Intercepts: Ring LL 3.6 + 54 x 1.8 + 8 x 2.7 = 122.4, Tree
    // LL 4.4 + 2 x (7 x 1.8 + 2 x 5) = 49.6.
    let of = |pattern| graph(pattern, 8, 1, 7.0, PathType::Sys);
    let comm = Communicator {
        ranks: 32,
        machines: 4,
        channels: 2,
        ..machine(32, 86, of(Pattern::Ring), of(Pattern::BalancedTree))
    };
    let model = Model::new(&constants("2.12.12"), &comm, &Settings::default());
    let printed = rows("3090x8-4node/tuner_choice.csv");
    assert_eq!(printed.len(), 25);
    for row in printed {
        let column = |at: usize| row.get(at).expect("a column");
        let bytes = column(0).parse().expect("bytes");
        let choice = model.choose(Collective::AllReduce, Call::of(bytes)).expect("a choice");
        let found = [
            choice.algorithm.name().to_owned(),
            choice.protocol.name().to_owned(),
            format!("{:.6}", choice.time_us),
        ];
        assert_eq!(found, [column(1), column(2), column(3)], "{bytes}");
    }
}

#[test]
fn eight_h200_take_nvls_from_two_mebibytes_on() {
    let ring = graph(Pattern::Ring, 8, 12, 30.0, PathType::Nvl);
    let tree = graph(Pattern::BalancedTree, 8, 12, 30.0, PathType::Nvl);
    let nvls = graph(Pattern::Nvls, 8, 8, 45.0, PathType::Nvl);
    let comm = Communicator { nvls: Ok(nvls), ..machine(8, 90, ring, tree) };
    let with = |text: &str| {
        let settings = Settings::parse(text).expect("settings");
        Model::new(&constants("2.27.7"), &comm, &settings)
    };
    let taken = |model: &Model, bytes: u64| {
        let choice = model.choose(Collective::AllReduce, Call::of(bytes)).expect("a choice");
        format!("{} {}", choice.algorithm.name(), choice.protocol.name())
    };
    let (free, without) = (with(""), with("NCCL_ALGO=^NVLS"));
    let mut seen = 0;
    for row in rows("h200x8/tuner_choice.csv") {
        let column = |at: usize| row.get(at).expect("a column");
        // The third row says Ring Simple from 2 MiB on where NVLS is off. NCCL's model does not:
        // Simple's 56 us are more than LL takes for up to 5 MB; see below.
        if column(0) != "all_reduce" {
            continue;
        }
        let (from, to) = (column(1).parse().expect("from"), column(2).parse().unwrap_or(1 << 32));
        let mut bytes: u64 = from;
        while bytes <= to {
            let said = format!("{} {}", column(3), column(4));
            assert_eq!(taken(&free, bytes), said, "{bytes}");
            bytes *= 2;
            seen += 1;
        }
    }
    // 1 B to 1 MiB and 2 MiB to 4 GiB.
    assert_eq!(seen, 21 + 12);
    assert_eq!(taken(&without, 2 << 20), "Ring LL");
    assert_eq!(taken(&without, 8 << 20), "Ring LL128");
    assert_eq!(taken(&without, 64 << 20), "Ring Simple");
}

#[test]
fn refusals_say_why() {
    let reason = |model: &Model, algorithm: Algorithm, protocol: Protocol| {
        let mut rows = model.rows_of(Collective::AllReduce);
        let row = rows.find(|row| row.algorithm == algorithm && row.protocol == protocol);
        row.and_then(|row| row.off.clone()).unwrap_or_default()
    };
    let model = pcie(2, 24.0);
    assert_eq!(
        reason(&model, Algorithm::Ring, Protocol::Ll128),
        "needs NVLink on every hop (SYS is among them): PCIe may split a 128-byte store"
    );
    let known = [
        (Algorithm::Nvls, "no NVSwitch"),
        (Algorithm::NvlsTree, "for several machines"),
        (Algorithm::CollnetDirect, "needs a CollNet plugin and NCCL_COLLNET_ENABLE"),
        (Algorithm::Pat, "NCCL has no AllReduce by PAT"),
        (Algorithm::Ring, ""),
    ];
    for (algorithm, why) in known {
        assert_eq!(reason(&model, algorithm, Protocol::Simple), why, "{algorithm:?}");
    }
}

/// From the machine's own files to the choice: nothing is told but the topology.
#[test]
fn a_dumped_machine_has_the_printed_model() {
    let path = format!("{}/tests/data/nccl/h200x2/topo.xml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a file");
    let inventory = read_system("topo.xml", &text).expect("a system");
    let all = rows("h200x2/tuner_model.csv");
    for (setting, given) in [("P2P", ""), ("no P2P", "NCCL_P2P_DISABLE=1")] {
        // The driver of that machine had no multicast.
        let settings = Settings::parse(&format!("NCCL_NVLS_ENABLE=0 {given}")).expect("settings");
        let version = Version::parse("2.28.9").expect("a version");
        let (beliefs, given) = (Beliefs::of(version).expect("beliefs"), GraphFile::default());
        let setup = Setup::new(inventory.clone(), beliefs, settings, given).expect("a setup");
        let printed: Vec<_> =
            all.iter().filter(|row| row.get(0) == Some(setting)).cloned().collect();
        same_model(&setup.model, &printed);
    }
}

/// Every table of the file is used by the model.
#[test]
fn every_constant_of_nccl_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/selection/nccl");
    let mut code = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // Where the tables are declared they are not used.
        if path.is_file() && !path.ends_with("constants.rs") {
            code += &std::fs::read_to_string(path).expect("UTF-8");
        }
    }
    for table in constants("2.30.7").provenance {
        let name = table.table;
        // How a version finds a generation is asked by `Constants::generation_of`.
        let used = code.contains(&format!("constants.{name}")) || name == "generation";
        assert!(used, "{name}: nothing reads it");
    }
}
