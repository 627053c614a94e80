//! From a machine to NCCL's choice: its view, its search and its cost model together.

use collsim::algorithm::nccl::Collective;
use collsim::fabric::Calibration;
use collsim::input::load_topology;
use collsim::input::nccl_xml::{read_graphs, read_system, write_graphs};
use collsim::selection::nccl::Version;
use collsim::selection::nccl::beliefs::Beliefs;
use collsim::selection::nccl::cure::cure;
use collsim::selection::nccl::environment::Settings;
use collsim::selection::nccl::graph::GraphFile;
use collsim::selection::nccl::inventory::Inventory;
use collsim::selection::nccl::path::PeerOptions;
use collsim::selection::nccl::setup::Setup;
use collsim::selection::nccl::survey::{Detection, survey};

fn version(text: &str) -> Version {
    Version::parse(text).expect("a version")
}

fn surveyed(name: &str, text: &str) -> Inventory {
    let beliefs = Beliefs::of(version(text)).expect("embedded");
    let topology = load_topology(name).expect("a machine");
    let calibration = Calibration::embedded().expect("embedded");
    survey(&topology, &calibration, &beliefs, &Detection::default()).expect("an inventory")
}

fn dumped(name: &str) -> Inventory {
    let file = format!("{}/tests/data/nccl/{name}/topo.xml", env!("CARGO_MANIFEST_DIR"));
    read_system(&file, &std::fs::read_to_string(&file).expect("a file")).expect("a system")
}

fn setup(machine: Inventory, version: &str, variables: &str, given: GraphFile) -> Setup {
    let settings = Settings::parse(variables).expect("settings");
    let beliefs = Beliefs::of(self::version(version)).expect("beliefs");
    Setup::new(machine, beliefs, settings, given).expect("a setup")
}

/// What NCCL takes for an all-reduce of these bytes.
fn choice(setup: &Setup, bytes: u64) -> String {
    let choice = setup.plan(Collective::AllReduce, bytes).expect("a choice").choice;
    format!("{} {}", choice.algorithm.name(), choice.protocol.name())
}

/// Two H200 from the system file that NCCL dumped to the table of bandwidths that it logged.
#[test]
fn the_dumped_machine_leads_to_the_logged_model() {
    let path = format!("{}/tests/data/nccl/h200x2/tuner_model.csv", env!("CARGO_MANIFEST_DIR"));
    for (setting, variables) in [("P2P", ""), ("no P2P", "NCCL_P2P_DISABLE=1")] {
        let setup = setup(dumped("h200x2"), "2.28.9", variables, GraphFile::default());
        let mut reader = csv::Reader::from_path(&path).expect("a file");
        let mut compared = 0;
        for row in reader.records().map(|row| row.expect("a row")) {
            if row.get(0) != Some(setting) || row.get(1) != Some("AllReduce") {
                continue;
            }
            let found = setup
                .model
                .rows_of(Collective::AllReduce)
                .find(|found| {
                    let names = (found.algorithm.name(), found.protocol.name());
                    (Some(names.0), Some(names.1)) == (row.get(2), row.get(3))
                })
                .unwrap_or_else(|| panic!("{row:?}"));
            assert_eq!(Some(&*format!("{:.1}", found.bandwidth_gb_per_s)), row.get(5), "{row:?}");
            compared += 1;
        }
        assert!(compared >= 4, "{setting}: {compared}");
    }
}

/// 0.1 GB/s makes NCCL take Simple from about 3.9 KB on, where LL is four times faster; a graph
/// file brings LL back.
#[test]
fn a_failed_search_picks_the_wrong_protocol_until_cured() {
    let machine = surveyed("rtxpro6000x8", "2.30.7");
    let failed = setup(machine.clone(), "2.30.7", "", GraphFile::default());
    assert!(failed.graphs.ring.fallback);
    let taken = |setup: &Setup| [2048, 14_336, 32_768, 43_008].map(|bytes| choice(setup, bytes));
    assert_eq!(taken(&failed), ["Ring LL", "Ring Simple", "Ring Simple", "Ring Simple"]);
    let beliefs = Beliefs::of(version("2.30.7")).expect("embedded");
    let cured = cure(&machine, &beliefs, &PeerOptions::default(), None).expect("a system");
    let text = write_graphs(&cured.expect("a cure").graphs, &machine);
    let given = read_graphs("cure.xml", &text, &machine).expect("graphs");
    let cured = setup(machine, "2.30.7", "", given);
    assert_eq!(taken(&cured), ["Ring LL"; 4]);
}

/// Trees have as many channels as rings, also when a file gives the rings.
#[test]
fn trees_follow_the_rings_of_a_file() {
    let machine = surveyed("rtxpro6000x8-flat", "2.30.7");
    let found = setup(machine.clone(), "2.30.7", "", GraphFile::default());
    let mut ring = found.graphs.ring.clone();
    ring.channels.truncate(1);
    let given = GraphFile { ring: Some(ring), ..GraphFile::default() };
    let one = setup(machine, "2.30.7", "", given);
    assert_eq!([found.graphs.tree.channels.len(), one.graphs.tree.channels.len()], [2, 1]);
}
