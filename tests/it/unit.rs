//! The unit of an SM for loads and stores against copy loops that were measured: how much longer a
//! loop takes for each 512 bytes.

use collsim::engine::Fidelity;
use collsim::schedule::build::{Builder, Part, trips};
use collsim::schedule::{Action, Op, Role, Schedule};

use crate::bless::file_text;
use crate::rig::Rig;

const THREADS: u32 = 512;
/// Loads of a thread that are out together in the loops.
const UNROLL: usize = 8;

/// What a loop loads and stores for each element.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Loop {
    loads: usize,
    own_stores: usize,
    peer_stores: usize,
}

/// Such a loop by GPU 0 over `bytes`, in `groups` of warps of one thread block that do it all each.
fn schedule(of: Loop, bytes: u32, groups: usize) -> Schedule {
    let mut builder = Builder::new("copy loop", &[0], groups, THREADS / groups as u32);
    (1..groups).for_each(|group| builder.set_beside(group, 0));
    let mut homes = |count: usize, home, role| -> Vec<u32> {
        (0..count).map(|_| builder.buffer(0, home, role, u64::from(bytes))).collect()
    };
    let from = homes(of.loads, 0, Role::Input);
    let mut to = homes(of.own_stores, 0, Role::Scratch);
    to.extend(homes(of.peer_stores, 1, Role::Scratch));
    for group in 0..groups {
        let parts: Vec<Part> = trips(0, bytes, 0, 1, THREADS / groups as u32).collect();
        for parts in parts.chunks(UNROLL) {
            for &buffer in &from {
                parts.iter().for_each(|&part| builder.load(0, group, buffer, part, Action::Set));
            }
            builder.push(0, group, Op::WaitLoads);
            for &buffer in &to {
                parts.iter().for_each(|&part| builder.write(0, group, buffer, part));
            }
        }
    }
    builder.finish(u64::from(bytes), None)
}

/// Time for 512 bytes more, ns.
fn each(rig: &Rig, of: Loop, groups: usize) -> f64 {
    let time = |bytes| rig.time(&schedule(of, bytes, groups), Fidelity::Packet).as_us() * 1e3;
    (time(1 << 20) - time(512 << 10)) / 1024.0
}

/// Rows of a table with a header, by column.
fn rows(file: &str) -> Vec<Vec<String>> {
    let text = file_text(file);
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn loops_take_what_was_measured() {
    let rig = Rig::named("h200x2-nvlink-pair");
    let mut count = 0;
    for row in rows("measured/h200x2-nccl/unit_loops.csv") {
        // loads, stores, unroll, data, warps, blocks, ns: one block whose warps fill the unit.
        if row[2] != "8" || row[4] != "16" || row[5] != "1" {
            continue;
        }
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        let of = Loop { loads: number(0) as usize, own_stores: number(1) as usize, peer_stores: 0 };
        let (got, measured) = (each(&rig, of, 1), number(6));
        assert!((got / measured - 1.0).abs() < 0.03, "{of:?}: {got:.2} ns, measured {measured}");
        count += 1;
    }
    assert_eq!(count, 14, "seven loops, of data near and far");
    for row in rows("measured/h200x2-nccl/copy_loops.csv") {
        // gpus, loop, loads, own stores, peer stores, warps, blocks, both ways, us, GB/s a block.
        if row[5] != "16" || row[6] != "1" || row[3] == "half" {
            continue;
        }
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        let [loads, own_stores, peer_stores] = [2, 3, 4].map(|column| number(column) as usize);
        let of = Loop { loads, own_stores, peer_stores };
        let (got, measured) = (each(&rig, of, 1), 512.0 / number(9));
        assert!((got / measured - 1.0).abs() < 0.06, "{of:?}: {got:.2} ns, measured {measured:.2}");
        count += 1;
    }
    assert_eq!(count, 14 + 8);
}

/// Two groups of a thread block take twice as long for twice the work as one, not as long.
#[test]
fn groups_of_a_thread_block_share_its_unit() {
    let rig = Rig::named("h200x2-nvlink-pair");
    let of = Loop { loads: 1, own_stores: 1, peer_stores: 0 };
    // 2.36 + 8.13 ns for each 512 bytes, of each group.
    let [one, two] = [1, 2].map(|groups| each(&rig, of, groups));
    assert!((one - 10.49).abs() < 0.02 * 10.49, "{one}");
    assert!((two - 20.98).abs() < 0.02 * 20.98, "{two}");
}
