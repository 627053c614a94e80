//! Ranks that do not come together: is waiting told apart from moving?

use collsim::algorithm::{ALGORITHMS, Implementation, Protocol};
use collsim::engine::{Arrivals, Fidelity, Outcome, RunOptions, simulate};
use collsim::schedule::{Collective, Schedule};
use collsim::units::Time;
use collsim::workload::{Arrival, Distribution, Drawn};

use crate::bless::file_text;
use crate::cli::simulate as program;
use crate::rig::{Choice, Rig};

/// All of one machine's schedules, begun as a library's kernels are.
fn schedules(rig: &Rig, bytes: u64) -> Vec<(Choice, Schedule)> {
    let started = |&choice: &Choice| {
        let kernel = rig.kernel(Implementation::CustomAllReduce);
        let mut request = rig.request(choice, rig.gpus(), bytes);
        request.kernel.start = kernel.start;
        (choice, collsim::algorithm::build(choice.0, &request).expect("builds"))
    };
    rig.choices().iter().map(started).collect()
}

fn run(rig: &Rig, schedule: &Schedule, calls: u32, arrivals: Arrivals) -> Outcome {
    let options = RunOptions { calls, arrivals, ..RunOptions::default() };
    simulate(&rig.fabric, schedule, Fidelity::Packet, options)
        .unwrap_or_else(|error| panic!("{}: {error}", schedule.name))
}

#[test]
fn nothing_computed_changes_nothing() {
    let rig = Rig::named("rtxpro6000x8-flat");
    for (_, schedule) in schedules(&rig, 8192) {
        let plain = run(&rig, &schedule, 3, Arrivals::AT_ONCE);
        let zeros = run(&rig, &schedule, 3, Arrivals::after(vec![vec![Time::ZERO; 8]; 3]));
        assert_eq!(plain.call_ends, zeros.call_ends, "{}", schedule.name);
    }
}

/// Everybody waits for one late rank, and then the call takes what it takes among ranks that come
/// together.
#[test]
fn a_late_rank_is_waited_for() {
    let rig = Rig::named("rtxpro6000x8-flat");
    let late = Time::from_us(500.0);
    for ((algorithm, _), schedule) in schedules(&rig, 8192) {
        let together = run(&rig, &schedule, 1, Arrivals::AT_ONCE).call_time(0).as_us();
        let gaps = (0..8).map(|rank| if rank == 3 { late } else { Time::ZERO }).collect();
        let apart = run(&rig, &schedule, 1, Arrivals::after(vec![gaps]));
        let stays = apart.stays(0);
        assert_eq!(stays[3].waiting, Time::ZERO, "{}", schedule.name);
        assert_eq!(stays[3].arrived, late, "{}", schedule.name);
        for stay in &stays {
            assert!(stay.waiting + stay.moving == stay.ended - stay.arrived, "{}", schedule.name);
        }
        if algorithm.collective != Collective::AllReduce {
            continue;
        }
        let others = stays.iter().enumerate().filter(|(rank, _)| *rank != 3);
        assert!(others.into_iter().all(|(_, stay)| stay.waiting == late), "{}", schedule.name);
        let moving = apart.ended.as_us() - late.as_us();
        // What the others did before the last came is done: up to all but its own part.
        let name = &schedule.name;
        assert!(moving <= together * 1.1, "{name}: {moving:.2} us, together {together:.2}");
        assert!(moving >= together * 0.2, "{name}: {moving:.2} us, together {together:.2}");
    }
}

/// Of eight exponential times with mean m the last is m (1 + 1/2 + ... + 1/8) on average, so that the
/// mean wait is 1.718 m, whatever the call takes.
#[test]
fn waits_follow_the_statistics_of_the_last() {
    let rig = Rig::named("rtxpro6000x8-flat");
    let ring = ALGORITHMS
        .iter()
        .find(|a| a.name == "ring" && a.collective == Collective::AllReduce)
        .expect("listed");
    let schedule = rig.schedule((ring, Protocol::Ll), 8192);
    let mean_us = 134.0;
    let distribution = Distribution::Exponential { mean_us };
    let gaps = Arrival::Drawn(Drawn { seed: 3, distribution }).gaps_us(400, 8);
    let times = gaps.iter().map(|ranks| ranks.iter().copied().map(Time::from_us).collect());
    let outcome = run(&rig, &schedule, 400, Arrivals::after(times.collect()));
    let stays = (0..400).flat_map(|call| outcome.stays(call));
    let waited = stays.map(|stay| stay.waiting.as_us()).sum::<f64>() / 3200.0;
    assert!((waited / (1.718 * mean_us) - 1.0).abs() < 0.1, "{waited}");
}

#[test]
fn a_scenario_with_arrival_tells_waiting_from_moving() {
    let text = file_text("docs/scenario-files.md");
    let (_, rest) = text.split_once("```json\n").expect("an example");
    let example = rest.split_once("```").expect("the example ends").0;
    let folder = std::env::temp_dir();
    let file = folder.join(format!("collsim-arrival-{}.json", std::process::id()));
    let path = file.to_str().expect("UTF-8");
    let with = |text: &str| {
        std::fs::write(&file, text).expect("writable");
        program(&["--topo", "h200x2-nvlink-pair", "--scenario", path, "--algo", "ring"])
    };
    let told = with(example);
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    assert!(told.out.contains("decode in place") && told.out.contains("waiting"), "{}", told.out);
    let json = program(&["--topo", "h200x2-nvlink-pair", "--scenario", path, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let stay = &value["in_place"][0][0];
    let us = |key: &str| stay[key].as_f64().expect("a figure");
    assert!((us("in_place_us") - us("waiting_us") - us("moving_us")).abs() < 1e-6);
    assert!(us("waiting_us") > us("moving_us"), "{stay}");
    let listed = "{\"listed_us\": [[0, 1, 2]]}";
    let (start, end) =
        (example.find("{\"drawn\"").expect("there"), example.find("}}}}").expect("there"));
    let other = format!("{}{listed}{}", &example[..start], &example[end + 4..]);
    let refused = with(&other);
    std::fs::remove_file(&file).expect("ours");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("call 0 has 3 times for 2 ranks"), "{}", refused.err);
    assert!(refused.err.contains(":10:"), "{}", refused.err);
}
