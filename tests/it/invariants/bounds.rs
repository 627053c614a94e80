//! Is anything faster than its wires allow?

use collsim::engine::Fidelity;

use crate::rig::{choices, machines};

/// One element, less than a warp, several trips; not powers of two.
const SIZES: [u64; 3] = [16, 2_064, 43_008];

#[test]
fn no_call_beats_its_bound() {
    for rig in machines() {
        let gpus: Vec<usize> = (0..rig.fabric.gpu_count).collect();
        for choice in choices() {
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
