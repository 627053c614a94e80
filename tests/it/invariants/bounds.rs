//! Is anything faster than its wires allow?

use collsim::engine::Fidelity;
use collsim::schedule::Collective;
use collsim::units::Time;

use crate::rig::{Rig, choices, machines};

/// One element, less than a warp, several trips; not powers of two.
const SIZES: [u64; 3] = [16, 2_064, 43_008];

/// What all-to-all cannot beat: the flag to the farthest, and what must enter or leave a GPU that
/// has a single link.
fn all_to_all_bound(rig: &Rig, bytes: u64) -> Time {
    let n = rig.fabric.gpu_count;
    let gpus: Vec<usize> = (0..n).collect();
    let sent = bytes - bytes / n as u64;
    let mut longest = rig.fabric.diameter(&gpus);
    for gpu in 0..n as u32 {
        let peers = (0..n as u32).filter(|&peer| peer != gpu);
        let mut first: Vec<u32> =
            peers.map(|peer| rig.fabric.path(gpu, peer).expect("a path")[0]).collect();
        first.dedup();
        if let [link] = first[..] {
            longest = longest.max(rig.fabric.links[link as usize].serialization(sent));
        }
    }
    longest
}

#[test]
fn no_call_beats_its_bound() {
    for rig in machines() {
        let gpus: Vec<usize> = (0..rig.fabric.gpu_count).collect();
        for choice in choices() {
            for bytes in SIZES {
                let schedule = rig.schedule(choice, bytes);
                let bound = match choice.0.collective {
                    Collective::AllToAll => all_to_all_bound(&rig, schedule.bytes),
                    _ => rig.fabric.all_reduce_bound(&gpus, schedule.bytes).time,
                };
                for (fidelity, name) in Fidelity::ALL {
                    let time = rig.time(&schedule, fidelity);
                    let place =
                        || format!("{}, {}, {bytes}, {name}", rig.topology.name, schedule.name);
                    assert!(time >= bound, "{}: {time} under {bound}", place());
                }
            }
        }
    }
}
