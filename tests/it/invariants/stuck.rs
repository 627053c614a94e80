//! Does a schedule that cannot end say who waits for what?

use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::error::{Error, Stuck};
use collsim::schedule::build::Builder;
use collsim::schedule::{Lines, Op, Schedule};

use crate::rig::{Rig, choices};

/// Rank 1 polls a flag that nobody stores.
fn missing_flag() -> Schedule {
    let mut builder = Builder::new("a missing flag", &[0, 1], 1, 64);
    let there = builder.message(0, 1, 1, 4, Lines::Plain);
    let never = builder.message(0, 1, 1, 4, Lines::Plain);
    builder.push(0, 0, Op::Flag(there));
    builder.push(1, 0, Op::PollFlag { message: there, acquire: false });
    builder.push(1, 0, Op::PollFlag { message: never, acquire: false });
    builder.finish(4, None)
}

#[test]
fn a_deadlock_names_who_waits() {
    let rig = Rig::named("rtxpro6000x8-flat");
    for (fidelity, name) in Fidelity::ALL {
        let error = simulate(&rig.fabric, &missing_flag(), fidelity, RunOptions::default())
            .expect_err("a deadlock");
        let Error::Stuck(Stuck::Deadlock { waiting }) = &error else {
            panic!("{name}: {error}");
        };
        // The other rank has ended, and so has the second warp of this one.
        assert_eq!(waiting.len(), 1, "{name}: {waiting:?}");
        for part in ["rank 1 ", "operation 2 ", "PollFlag { message: 1"] {
            assert!(error.to_string().contains(part), "{name}: no `{part}` in {error}");
        }
    }
}

#[test]
fn a_flag_in_host_memory_that_never_comes_ends_at_the_limit() {
    let rig = Rig::named("rtxpro6000x8-flat");
    let host = rig.fabric.home_memory[1].expect("host memory");
    let mut builder = Builder::new("a missing flag in host memory", &[0, 1], 1, 32);
    let never = builder.message(0, 1, host, 4, Lines::Plain);
    builder.push(1, 0, Op::PollFlag { message: never, acquire: false });
    let schedule = builder.finish(4, None);
    for (fidelity, name) in Fidelity::ALL {
        let options = RunOptions { events_max: 10_000, ..RunOptions::default() };
        let error = simulate(&rig.fabric, &schedule, fidelity, options).expect_err("no end");
        for part in ["10000 events", "rank 1 ", "PollFlag { message: 0"] {
            assert!(error.to_string().contains(part), "{name}: no `{part}` in {error}");
        }
    }
}

#[test]
fn the_event_limit_names_who_was_at_work() {
    let rig = Rig::named("rtxpro6000x8-flat");
    for choice in choices() {
        let schedule = rig.schedule(choice, 43_008);
        for (fidelity, name) in Fidelity::ALL {
            let options = RunOptions { events_max: 100, ..RunOptions::default() };
            let error = simulate(&rig.fabric, &schedule, fidelity, options).expect_err("a limit");
            let Error::Stuck(Stuck::EventLimit { limit: 100, waiting, .. }) = &error else {
                panic!("{name}: {error}");
            };
            assert!(!waiting.is_empty() && error.to_string().contains("rank "), "{error}");
        }
    }
}
