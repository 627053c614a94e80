//! NCCL's variables: those that are honoured, with what they do here and what they expect, and those
//! that change nothing here, with the reason.

use super::environment::Settings;
use super::graph::PathType;
use super::lists::parse_list;
use crate::algorithm::nccl::{Algorithm, CHANNELS_MAX};

/// A variable that is honoured.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it does here.
    pub effect: &'static str,
    /// What its value must be.
    pub expects: &'static str,
    pub(super) set: fn(&mut Settings, &str) -> Option<()>,
}

/// A whole number as C's `strtol` reads it: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn small(text: &str, least: u64, most: u64) -> Option<u32> {
    let found = number(text).filter(|found| (least..=most).contains(found))?;
    u32::try_from(found).ok()
}

fn channels(text: &str) -> Option<Option<u32>> {
    small(text, 1, u64::from(CHANNELS_MAX)).map(Some)
}

fn bytes(text: &str) -> Option<Option<u64>> {
    number(text).filter(|found| (4096..=1 << 30).contains(found)).map(Some)
}

fn switch(text: &str) -> Option<bool> {
    small(text, 0, 1).map(|found| found == 1)
}

fn threads(text: &str, least: u64, most: u64) -> Option<Option<u32>> {
    small(text, least, most).filter(|found| found.is_multiple_of(32)).map(Some)
}

/// Names of path types up to `SYS`, or a digit of older versions.
fn level(text: &str) -> Option<PathType> {
    // 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and more SYS.
    const DIGITS: [PathType; 5] =
        [PathType::Loc, PathType::Pix, PathType::Pxb, PathType::Phb, PathType::Sys];
    match number(text) {
        Some(digit) => Some(DIGITS[digit.min(4) as usize]),
        None => PathType::ALL
            .iter()
            .find(|entry| entry.1 == text && entry.0 <= PathType::Sys)
            .map(|entry| entry.0),
    }
}

fn thresholds(settings: &mut Settings, text: &str) -> Option<()> {
    let found: Vec<Option<u64>> = text
        .split_whitespace()
        .map(|word| word.parse::<i64>().ok().map(|value| u64::try_from(value).ok()))
        .collect::<Option<_>>()?;
    if found.is_empty() || found.len() > 6 {
        return None;
    }
    for (at, value) in found.into_iter().enumerate() {
        settings.thresholds[at / 3][at % 3] = value;
    }
    Some(())
}

fn file(text: &str) -> Option<Option<String>> {
    (!text.is_empty()).then(|| Some(text.to_owned()))
}

macro_rules! variables {
    ($($name:literal, $effect:literal, $expects:literal, $set:expr;)*) => {
        &[$(Variable { name: $name, effect: $effect, expects: $expects, set: $set }),*]
    };
}

/// All that is honoured.
pub const VARIABLES: &[Variable] = variables! {
    "NCCL_ALGO", "which algorithms the tuner may take",
        "names such as `ring,tree` or `^tree`, also by collective: `ring;allreduce:tree`",
        |s, text| { s.algorithms = Some(parse_list(text, &Algorithm::ALL.map(|e| e.1))?); Some(()) };
    "NCCL_PROTO", "which protocols the tuner may take; naming LL128 forces it anywhere",
        "`LL`, `LL128`, `Simple`, as a list, after `^`, or by collective: `^LL128;allreduce:LL`",
        |s, text| { s.protocols = Some(parse_list(text, &["LL", "LL128", "Simple"])?); Some(()) };
    "NCCL_P2P_LEVEL", "how far apart peers may be that write to each other's memory",
        "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS, or a digit from 0 to 5",
        |s, text| {
            // NCCL_P2P_DISABLE=1 wins.
            let found = level(text)?;
            if s.peers.level != Some(PathType::Loc) { s.peers.level = Some(found); }
            Some(())
        };
    "NCCL_P2P_DISABLE", "no peer writes to another's memory", "0 or 1",
        |s, text| { if switch(text)? { s.peers.level = Some(PathType::Loc); } Some(()) };
    "NCCL_MIN_NCHANNELS", "fewest channels of the communicator; small calls still use fewer",
        "a number from 1 to 64", |s, text| { s.channels.0 = channels(text)?; Some(()) };
    "NCCL_MAX_NCHANNELS", "most channels of the communicator",
        "a number from 1 to 64", |s, text| { s.channels.1 = channels(text)?; Some(()) };
    "NCCL_MIN_CTAS", "as NCCL_MIN_NCHANNELS, also for NVLS",
        "a number from 1 to 64", |s, text| { s.blocks.0 = channels(text)?; Some(()) };
    "NCCL_MAX_CTAS", "as NCCL_MAX_NCHANNELS, also for NVLS",
        "a number from 1 to 64", |s, text| { s.blocks.1 = channels(text)?; Some(()) };
    "NCCL_MIN_P2P_NCHANNELS", "fewest channels of send and receive",
        "a number from 1 to 64", |s, text| { s.p2p_channels.0 = channels(text)?; Some(()) };
    "NCCL_MAX_P2P_NCHANNELS", "most channels of send and receive",
        "a number from 1 to 64", |s, text| { s.p2p_channels.1 = channels(text)?; Some(()) };
    "NCCL_TOPO_FILE", "a system file that stands for the machine as NCCL finds it",
        "a file's name", |s, text| { s.topology_file = file(text)?; Some(()) };
    "NCCL_GRAPH_FILE", "a graph file that stands for the search",
        "a file's name", |s, text| { s.graph_file = file(text)?; Some(()) };
    "NCCL_BUFFSIZE", "buffer of a connection for Simple: chunks and memory",
        "bytes from 4096 to 1073741824, a plain number",
        |s, text| { s.buffers[2] = bytes(text)?; Some(()) };
    "NCCL_LL_BUFFSIZE", "buffer of a connection for LL: chunks and memory",
        "bytes from 4096 to 1073741824, a plain number",
        |s, text| { s.buffers[0] = bytes(text)?; Some(()) };
    "NCCL_LL128_BUFFSIZE", "buffer of a connection for LL128: chunks and memory",
        "bytes from 4096 to 1073741824, a plain number",
        |s, text| { s.buffers[1] = bytes(text)?; Some(()) };
    "NCCL_NTHREADS", "most threads of LL and Simple",
        "a multiple of 32 from 64 to 512",
        |s, text| { s.threads.0 = threads(text, 64, 512)?; Some(()) };
    "NCCL_LL128_NTHREADS", "most threads of LL128",
        "a multiple of 32 from 160 to 640",
        |s, text| { s.threads.1 = threads(text, 160, 640)?; Some(()) };
    "NCCL_THREAD_THRESHOLDS", "bytes for which a thread is worth having",
        "up to six numbers: LL, LL128, Simple of Tree, then of Ring; negative ones are left alone",
        thresholds;
    "NCCL_NVLS_ENABLE", "whether the NVSwitch adds up",
        "0 off, 1 on, 2 where the driver can",
        |s, text| {
            s.nvls = match small(text, 0, 2)? { 2 => None, found => Some(found == 1) };
            Some(())
        };
    "NCCL_NVLS_NCHANNELS", "channels of NVLS",
        "a number from 1 to 64", |s, text| { s.nvls_channels = channels(text)?; Some(()) };
    "NCCL_SHM_DISABLE", "no connections through host memory", "0 or 1",
        |s, text| { s.transports.no_shm = switch(text)?; Some(()) };
    "NCCL_SHM_USE_CUDA_MEMCPY", "copy engines carry Simple's data to or from host memory", "0 or 1",
        |s, text| { s.transports.shm_copy_engine = switch(text)?; Some(()) };
    "NCCL_SHM_MEMCPY_MODE", "whose copy engines, with NCCL_SHM_USE_CUDA_MEMCPY",
        "1 the sender's, 2 the receiver's, 3 both",
        |s, text| { s.transports.shm_copy_mode = Some(small(text, 1, 3)?); Some(()) };
    "NCCL_P2P_USE_CUDA_MEMCPY", "copy engines carry Simple's data", "0 or 1",
        |s, text| { s.transports.copy_engine = switch(text)?; Some(()) };
    "NCCL_P2P_READ_ENABLE", "receivers read from the sender's memory in Simple", "0 or 1",
        |s, text| { s.transports.read = Some(switch(text)?); Some(()) };
    "NCCL_P2P_DIRECT_DISABLE", "no plain pointers within a process", "0 or 1",
        |s, text| { s.transports.no_direct = switch(text)?; Some(()) };
    "NCCL_NVB_DISABLE", "no NVLink by way of another GPU", "0 or 1",
        |s, text| { s.peers.no_relay = switch(text)?; Some(()) };
    "NCCL_CUMEM_ENABLE", "memory of peers by handles of cuMem", "0 or 1",
        |s, text| { s.transports.cumem = Some(switch(text)?); Some(()) };
    "NCCL_NET_DISABLE_INTRA", "no network within a machine, however fast", "0 or 1",
        |s, text| { s.transports.no_net_inside = switch(text)?; Some(()) };
    "NCCL_LL128_C2C", "from Hopper on, LL128 also by NICs behind chip-to-chip links", "0 or 1",
        |s, text| { s.ll128_over_c2c = switch(text)?; Some(()) };
    "NCCL_P2P_PCI_CHUNKSIZE", "step of send and receive over PCIe",
        "bytes from 4096 to 1073741824, a plain number",
        |s, text| { s.p2p_chunks.0 = bytes(text)?; Some(()) };
    "NCCL_P2P_NVL_CHUNKSIZE", "step of send and receive over NVLink",
        "bytes from 4096 to 1073741824, a plain number",
        |s, text| { s.p2p_chunks.1 = bytes(text)?; Some(()) };
    "NCCL_P2P_LL_THRESHOLD", "send and receive use LL up to this a channel",
        "bytes, a plain number",
        |s, text| { s.p2p_ll_max = Some(number(text)?); Some(()) };
};

/// What NCCL knows and this model has no use for, by the start of its name.
pub const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("NCCL_DEBUG", "logs do not change what is sent"),
    ("NCCL_IB_", "one machine: no network is used"),
    ("NCCL_SOCKET_", "one machine: no network is used"),
    ("NCCL_NET_GDR", "one machine: no network is used"),
    ("NCCL_NET_OVERHEAD", "one machine: no network is used"),
    ("NCCL_NET_PLUGIN", "one machine: no network is used"),
    ("NCCL_CROSS_NIC", "one machine: no network is used"),
    ("NCCL_PXN_", "one machine: no network is used"),
    ("NCCL_COLLNET_", "CollNet is not modelled"),
    ("NCCL_PAT_ENABLE", "PAT is for one GPU a machine"),
    ("NCCL_CUMEM_HOST_", "how host memory is exported does not change what is sent"),
    ("NCCL_TOPO_DUMP_FILE", "nothing is dumped here"),
    ("NCCL_GRAPH_DUMP_FILE", "nothing is dumped here"),
    ("NCCL_LAUNCH_", "launches are calibrated, not modelled"),
    ("NCCL_CGA_", "clusters of blocks are not modelled"),
    ("NCCL_GRAPH_REGISTER", "calls use NCCL's own buffers here"),
    ("NCCL_LOCAL_REGISTER", "calls use NCCL's own buffers here"),
    ("NCCL_RAS_", "has no part in a call"),
    ("NCCL_TUNER_", "a tuner file is read by its own option"),
    ("NCCL_WORK_", "descriptors are calibrated, not modelled"),
    ("NCCL_MNNVL_", "one machine"),
    ("NCCL_COMM_", "has no part in a call"),
];
