//! Is a narrower machine ever faster?

use collsim::engine::Fidelity;
use collsim::input::embedded::MACHINES;
use collsim::topology::link::Pcie;
use collsim::topology::{LinkKind, Topology};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use crate::rig::{Choice, Rig, anomaly, machines};

/// Half the lanes, or half the rate of a lane.
#[derive(Copy, Clone, Debug)]
enum Cut {
    Width,
    Generation,
}

fn cut(pcie: Pcie, by: Cut) -> Pcie {
    match by {
        Cut::Width => Pcie { width: (pcie.width / 2).max(1), ..pcie },
        Cut::Generation => Pcie { generation: (pcie.generation - 1).max(1), ..pcie },
    }
}

fn narrowed(topology: &Topology, links: impl Fn(usize) -> bool, by: Cut) -> Topology {
    let mut topology = topology.clone();
    for (number, link) in topology.links.iter_mut().enumerate() {
        if let LinkKind::Pcie(pcie) = &mut link.kind
            && links(number)
        {
            *pcie = cut(*pcie, by);
        }
    }
    topology
}

/// How much faster a call may become when one link alone is made slower: 3.1 % is the most seen,
/// all-pair packets of 25,657 B on `rtxpro6000x16-turin-flat`.
const OUT_OF_STEP: f64 = 0.04;
/// The same where links are shared fairly: others get what the slow one leaves. 0.11 % is the most
/// seen, two-stage read and write of 40,683 B on `rtxpro6000x16-turin-flat`.
const LEFT_TO_OTHERS: f64 = 0.002;

/// Cuts one link, or all.
fn check(rig: &Rig, link: Option<usize>, by: Cut, choice: Choice, bytes: u64) {
    let narrow = narrowed(&rig.topology, |number| link.is_none_or(|link| link == number), by);
    if narrow == rig.topology {
        return;
    }
    let narrow = Rig::of(narrow);
    let schedule = rig.schedule(choice, bytes);
    for (fidelity, model) in Fidelity::ALL {
        let before = rig.time(&schedule, fidelity).as_us();
        let after = narrow.time(&schedule, fidelity).as_us();
        let name = &rig.topology.name;
        let place = format!("{name}, link {link:?}, {by:?}, {}, {bytes}, {model}", schedule.name);
        // One slow GPU among many takes its reads out of step with those of the others, which queue
        // for one memory after another in the same order: packets then block each other less.
        let least = match (fidelity, link) {
            (Fidelity::Packet, Some(_)) => before * (1.0 - OUT_OF_STEP),
            (Fidelity::MaxMin, Some(_)) => {
                before * (1.0 - anomaly(fidelity, choice).max(LEFT_TO_OTHERS))
            }
            _ => before * (1.0 - anomaly(fidelity, choice)),
        };
        assert!(after >= least, "{place}: {before} us before, {after} us after");
    }
}

#[test]
fn narrower_machines_are_not_faster() {
    for rig in machines() {
        for choice in rig.choices() {
            for by in [Cut::Width, Cut::Generation] {
                check(&rig, None, by, choice, 43_008);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        max_shrink_iters: 32,
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn narrower_links_are_not_faster(
        machine in any::<Index>(),
        link in any::<Index>(),
        width in any::<bool>(),
        choice in any::<Index>(),
        bytes in 1_u64..100_000,
    ) {
        let rig = Rig::named(machine.get(MACHINES).name);
        if rig.gpus().len() > 1 {
            let link = link.index(rig.topology.links.len());
            let by = if width { Cut::Width } else { Cut::Generation };
            check(&rig, Some(link), by, *choice.get(&rig.choices()), bytes);
        }
    }
}
