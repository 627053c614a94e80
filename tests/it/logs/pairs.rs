//! Programs that copy between pairs.

use collsim::measurement::{Copy, Memory, Run};

use super::{log, reasons};

fn copies(run: &Run) -> &[Copy] {
    match run {
        Run::Copies(copies) => copies,
        other => panic!("{other:?}"),
    }
}

const P2P: &str = "\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H200, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal memcopy procedure.
P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1 
     0 2000.0  20.10 
     1  20.20 2000.0 
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1 
     0 2000.0  50.10 
     1  50.20 2000.0 
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1 
     0 2000.0  99.10 
     1  99.20 2000.0 
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1 
     0   2.10   1.50 
     1   1.60   2.20 
";

#[test]
fn bandwidths_of_pairs() {
    let read = log("p2p.txt", P2P);
    let rates: Vec<f64> = read.record.observations.iter().map(|o| o.measured).collect();
    assert_eq!(rates, [50.1, 50.2, 99.1, 99.2]);
    let one = copies(&read.record.observations[1].run);
    assert_eq!(
        (one.len(), one[0].from, one[0].to, one[0].engine),
        (1, Memory::Gpu(1), Memory::Gpu(0), 1)
    );
    let both = copies(&read.record.observations[2].run);
    assert_eq!((both.len(), both[1].from, both[1].engine), (2, Memory::Gpu(1), 0));
    assert_eq!(
        reasons(&read),
        [
            "says what may address what, no time",
            "P2P off: the driver's copies through host memory are not modelled",
            "p2pBandwidthLatencyTest times the issue of queued copies",
        ]
    );
    // Cut off within a row.
    let end = P2P.find("50.20").expect("a cell") + 3;
    let cut = log("p2p.txt", &P2P[..end]);
    assert!(cut.warnings[0].contains("the row is cut off"), "{:?}", cut.warnings);
}

const NVBANDWIDTH: &str = "\
nvbandwidth Version: v0.6
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.10     55.20

SUM host_to_device_memcpy_ce 110.30

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0     54.10     54.20

Running device_to_device_memcpy_read_sm.
memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0       N/A     49.00
 1     48.00       N/A

Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A     90.00
 1     91.00       N/A
";

#[test]
fn nvbandwidth_to_the_host_and_between_gpus() {
    let read = log("nv.txt", NVBANDWIDTH);
    let all: Vec<(Memory, Memory, u32, bool, f64)> = read
        .record
        .observations
        .iter()
        .map(|o| (copies(&o.run)[0], o.measured))
        .map(|(copy, rate)| (copy.from, copy.to, copy.engine, copy.kernel, rate))
        .collect();
    let (host, gpu) = (Memory::HostNear, Memory::Gpu);
    assert_eq!(
        all,
        [
            (host(0), gpu(0), 0, false, 55.1),
            (host(1), gpu(1), 1, false, 55.2),
            (gpu(0), host(0), 0, false, 54.1),
            (gpu(1), host(1), 1, false, 54.2),
            (gpu(1), gpu(0), 0, true, 49.0),
            (gpu(0), gpu(1), 1, true, 48.0),
        ]
    );
    assert_eq!(
        reasons(&read),
        ["both directions at once: which one is printed differs by version"]
    );
}

#[test]
fn simple_p2p_is_one_line() {
    let line = "Creating event handles...\ncudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 22.45GB/s\nPreparing host buffer...\n";
    let read = log("simple.txt", line);
    assert!((read.record.observations[0].measured - 22.45).abs() < 1e-9);
    let cut = format!("{line}cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 22.");
    assert!(log("simple.txt", &cut).warnings[0].contains("simple.txt:4: the rate is cut off"));
}

#[test]
fn nvbandwidth_as_json_says_what_its_text_says() {
    let text = include_str!("../../fuzz/seeds/nvbandwidth.json");
    let log = log("nvbandwidth.json", text);
    assert_eq!(log.titles, ["nvbandwidth JSON"]);
    let found: Vec<(Copy, f64)> = log
        .record
        .observations
        .iter()
        .map(|observation| (copies(&observation.run)[0], observation.measured))
        .collect();
    let to = |gpu, rate| (Memory::HostNear(gpu), Memory::Gpu(gpu), false, rate);
    let expected = [
        to(0, 55.1),
        to(1, 55.2),
        (Memory::Gpu(1), Memory::Gpu(0), true, 376.0),
        (Memory::Gpu(0), Memory::Gpu(1), true, 377.0),
    ];
    let found: Vec<_> =
        found.iter().map(|(copy, rate)| (copy.from, copy.to, copy.kernel, *rate)).collect();
    assert_eq!(found, expected);
    assert!(
        log.warnings
            .iter()
            .any(|warning| warning.contains("(multicast): no bandwidths, status `Waived`"))
    );
}

/// Rates that no wire has, in every program's form.
#[test]
fn impossible_rates_are_left_out_and_told() {
    let seeds = [
        (include_str!("../../fuzz/seeds/nvbandwidth.txt"), "55.20", "1e300"),
        (include_str!("../../fuzz/seeds/nvbandwidth.json"), "\"55.20\"", "\"1e-300\""),
        (include_str!("../../fuzz/seeds/simpleP2P.txt"), "49.41", "-49.41"),
        (include_str!("../../fuzz/seeds/p2p.txt"), "50.2", "1e7"),
        (include_str!("../../fuzz/seeds/nccl-tests.txt"), "-1 10.0", "-1 1e300"),
    ];
    for (text, from, to) in seeds {
        // Of one GPU nothing is kept.
        let text = &text.replace("#  Rank  0 Group  0 Pid 1 on a device  0 [0x1b] H200\n", "");
        assert!(text.contains(from), "{from}");
        let (sound, odd) = (log("run", text), log("run", &text.replace(from, to)));
        let count = |log: &collsim::measurement::logs::Log| log.record.observations.len();
        let rows = |log: &collsim::measurement::logs::Log| {
            log.record.observations.iter().map(|one| one.measured).collect::<Vec<f64>>()
        };
        assert_ne!(rows(&sound), rows(&odd), "{from}");
        assert!(count(&odd) <= count(&sound), "{from}");
        let why = reasons(&odd);
        let told = why.iter().any(|why| why.contains("rates are") || why.contains("times are"));
        assert!(told, "{from}: {why:?}");
    }
}
