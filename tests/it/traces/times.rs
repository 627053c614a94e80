//! Times, ranks and sizes that no run has: told, and never written into a scenario.

use collsim::input::scenario_json::parse;
use collsim::input::traces::import;

use super::{holds, kineto::rank, read, stated, trace};
use crate::cli::simulate;

/// A trace of each form whose calls have times, a stay in it, and how to write another.
const TIMED: [(&str, &str, &str); 5] = [
    (include_str!("../../fuzz/seeds/calls.collsim.json"), "\"dur\":9.5", "\"dur\":{}"),
    (include_str!("../../fuzz/seeds/kernel.kineto.json"), "\"dur\": 3", "\"dur\": {}"),
    (include_str!("../../fuzz/seeds/kernels.nsys.csv"), "1,2,H200", "1,{},H200"),
    (
        r#"{"header": {"rank": 0}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_exec_time_us": 9}}"#,
        "_us\": 9",
        "_us\": {}",
    ),
    (include_str!("../../fuzz/seeds/traces.csv"), "0,0,9000", "0,0,{}"),
];

#[test]
fn a_stay_that_no_call_has_is_dropped_and_told_in_every_form() {
    for (text, stay, other) in TIMED {
        let sound = trace(text);
        assert!(sound.warnings.is_empty() && sound.calls[0].duration_us.is_some());
        for wrong in ["-5", "1e300"] {
            let text = text.replace(stay, &other.replace("{}", wrong));
            let Ok(found) = read(text.as_bytes()) else {
                // The probe's own form is refused where a call ends before it begins.
                assert!(text.starts_with("algorithm,") && wrong == "-5", "{text}");
                continue;
            };
            assert_eq!(found.calls.len(), sound.calls.len(), "the call was made");
            assert_eq!(found.calls[0].duration_us, None, "{wrong} in {text}");
            holds(&found.warnings, "1 calls start or last as no call can");
        }
    }
}

#[test]
fn what_import_writes_is_read_again() {
    let told = |from: &str, to: &str| {
        let text = rank(0, 0.0).replace(from, to);
        import(vec![trace(&text)], &stated()).map(|both| both.0.tensor_parallel)
    };
    assert_eq!(told("", "").expect("a scenario"), 2);
    for (to, part) in [("0", "0 ranks"), ("1000000000", "1000000000 ranks")] {
        let error = told("\"Group size\": 2", &format!("\"Group size\": {to}")).expect_err(part);
        let told = error.to_string();
        assert!(told.contains("no scenario can be made") && told.contains(part), "{told}");
    }
    let error = told(": 7168", ": 18446744073709551615").expect_err("a size");
    assert!(error.to_string().contains("bytes are out of range"), "{error}");
    // Two of eight ranks: when they came says nothing of the others.
    let of_eight =
        |number, late| rank(number, late).replace("\"Group size\": 2", "\"Group size\": 8");
    let two = vec![trace(&of_eight(0, 0.0)), trace(&of_eight(1, 8.0))];
    let (scenario, notes) = import(two, &stated()).expect("a scenario");
    assert!(scenario.tensor_parallel == 8 && scenario.steps[0].arrival.is_none());
    holds(&notes, "when ranks come to all_reduce-14336-bf16 is left out");
    // A pause longer than arrivals may be.
    let slow = |number| rank(number, 0.0).replace("\"ts\": 10000", "\"ts\": 90000000");
    let (scenario, notes) =
        import(vec![trace(&slow(0)), trace(&slow(1))], &stated()).expect("a scenario");
    holds(&notes, "times are 0 to 10,000,000 us");
    let text = serde_json::to_string(&scenario).expect("JSON");
    assert!(parse("again", &text).is_ok());
}

#[test]
fn more_kinds_of_calls_than_a_scenario_holds_are_refused() {
    let folder = std::env::temp_dir().join(format!("collsim-kinds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (from, to) = (folder.join("many.jsonl"), folder.join("sc.json"));
    let line = |bytes: u64| {
        format!(
            "{{\"header\": {{\"rank\": 0, \"n_ranks\": 2}}, \"coll_perf\": {{\"coll\": \"AllReduce\", \
             \"coll_sn\": {bytes}, \"coll_msg_size_bytes\": {bytes}}}}}\n"
        )
    };
    std::fs::write(&from, (1..6500).map(|call| line((1 << 39) + call)).collect::<String>())
        .expect("written");
    let [from, to] = [&from, &to].map(|path| path.to_string_lossy().into_owned());
    let run = simulate(&["import", &from, "-o", &to]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("6499 kinds of calls has 1."), "{}", run.err);
    assert!(!std::path::Path::new(&to).exists());
    std::fs::remove_dir_all(folder).expect("gone");
}
