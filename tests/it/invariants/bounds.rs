//! Is anything faster than its wires allow?

use collsim::algorithm::streams::{all_pairs_writes, streams};
use collsim::engine::Fidelity;

use crate::rig::{Rig, machines};

/// One element, less than a warp, several trips; not powers of two.
const SIZES: [u64; 3] = [16, 2_064, 43_008];

#[test]
fn no_call_beats_its_bound() {
    for rig in machines() {
        let gpus: Vec<usize> = (0..rig.fabric.gpu_count).collect();
        for choice in rig.choices() {
            for bytes in SIZES {
                let schedule = rig.schedule(choice, bytes);
                let bound = rig.fabric.bound(choice.0.collective, &gpus, schedule.bytes).time;
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

/// Ports of an NVSwitch do not hold each other up: when all GPUs store to all others, each link is
/// as busy as if rates were shared fairly.
#[test]
fn an_nvswitch_is_a_crossbar() {
    let rig = Rig::named("h200x8-nvswitch");
    let schedule = streams(&all_pairs_writes(&rig.gpus(), 1 << 20));
    let [fair, packets] = [Fidelity::MaxMin, Fidelity::Packet].map(|f| rig.time(&schedule, f));
    let ratio = packets.as_us() / fair.as_us();
    assert!((0.97..1.05).contains(&ratio), "{packets} by packets, {fair} by fair shares");
}
