//! Schedules that other tools wrote: read, proved, timed; those with a flaw are refused with the
//! place.

mod goal;
mod mscclpp;

use std::fmt::Write;

use collsim::algorithm::nccl::{self, Split};
use collsim::algorithm::{Protocol, Settled};
use collsim::engine::Fidelity;
use collsim::fabric::Calibration;
use collsim::input::plans::parse_plan;
use collsim::input::{load_topology, render};
use collsim::prediction::plan::{plan_us, prove_plan, schedule};
use collsim::prediction::{Case, CaseOptions, Machine, cases};

use crate::cli::simulate;

const EIGHT: &str = "rtxpro6000x8-flat";

fn machine(name: &str) -> Machine {
    let calibration = Calibration::embedded().expect("embedded");
    Machine::new(load_topology(name).expect("a machine"), &calibration, false, false)
        .expect("compiled")
}

/// A ring all-reduce in place: reduced along n - 1 hops, passed on along n - 1.
pub(crate) fn ring(n: usize, protocol: &str) -> String {
    let mut text = format!(
        "<algo name=\"ring\" proto=\"{protocol}\" nchannels=\"1\" nchunksperloop=\"{n}\" ngpus=\"{n}\" coll=\"allreduce\" inplace=\"1\">\n"
    );
    for rank in 0..n {
        let (next, before) = ((rank + 1) % n, (rank + n - 1) % n);
        let _ = writeln!(
            text,
            "<gpu id=\"{rank}\" i_chunks=\"{n}\" o_chunks=\"0\" s_chunks=\"0\">\n<tb id=\"0\" send=\"{next}\" recv=\"{before}\" chan=\"0\">"
        );
        for hop in 0..2 * n - 1 {
            let chunk = (rank + 2 * n - 1 - hop) % n;
            let kind = match hop {
                0 => "s",
                _ if hop < n - 1 => "rrs",
                _ if hop == n - 1 => "rrcs",
                _ if hop < 2 * n - 2 => "rcs",
                _ => "r",
            };
            let _ = writeln!(
                text,
                "<step s=\"{hop}\" type=\"{kind}\" srcbuf=\"i\" srcoff=\"{chunk}\" dstbuf=\"i\" dstoff=\"{chunk}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>"
            );
        }
        text.push_str("</tb>\n</gpu>\n");
    }
    text + "</algo>\n"
}

/// An all-gather out of place: a thread block for each peer, and one that copies.
fn gather(n: usize) -> String {
    let mut text = format!(
        "<algo name=\"gather\" proto=\"Simple\" nchannels=\"{n}\" nchunksperloop=\"{n}\" ngpus=\"{n}\" coll=\"allgather\" inplace=\"0\">\n"
    );
    for rank in 0..n {
        let _ = writeln!(
            text,
            "<gpu id=\"{rank}\" i_chunks=\"1\" o_chunks=\"{n}\" s_chunks=\"0\">\n<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n\
             <step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"{rank}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n</tb>"
        );
        for distance in 1..n {
            let (to, from) = ((rank + distance) % n, (rank + n - distance) % n);
            let _ = writeln!(
                text,
                "<tb id=\"{distance}\" send=\"{to}\" recv=\"{from}\" chan=\"{distance}\">\n\
                 <step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"{rank}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n\
                 <step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"{from}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n</tb>"
            );
        }
        text.push_str("</gpu>\n");
    }
    text + "</algo>\n"
}

/// Two ranks: each sends its data into the other's scratch, and another thread block adds it.
fn scratch(dependency: bool) -> String {
    let mut text = String::from(
        "<algo name=\"swap\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\n",
    );
    for rank in 0..2 {
        let other = 1 - rank;
        let after = if dependency { "depid=\"0\" deps=\"1\"" } else { "depid=\"-1\" deps=\"-1\"" };
        let _ = writeln!(
            text,
            "<gpu id=\"{rank}\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"2\">\n\
             <tb id=\"0\" send=\"{other}\" recv=\"{other}\" chan=\"0\">\n\
             <step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n\
             <step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>\n</tb>\n\
             <tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n\
             <step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" {after} hasdep=\"0\"/>\n\
             <step s=\"1\" type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n</tb>\n</gpu>"
        );
    }
    text + "</algo>\n"
}

fn ranks(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

#[test]
fn sound_plans_are_proved_at_all_sizes() {
    let (eight, two) = (machine(EIGHT), machine("h200x2-nvlink-pair"));
    for (text, n, on) in [
        (ring(8, "LL"), 8, &eight),
        (ring(4, "Simple"), 4, &eight),
        (ring(2, "LL128"), 2, &two),
        (gather(4), 4, &eight),
        (scratch(true), 2, &two),
    ] {
        let plan = parse_plan("plan.xml", &text, None)
            .unwrap_or_else(|error| panic!("{}", render(&error, false)));
        prove_plan(&plan, on, &ranks(n)).unwrap_or_else(|error| panic!("{error}"));
        // Larger than a slot: the steps are done again for each part of a chunk.
        for bytes in [14_336, 512 << 10] {
            let built = schedule(&plan, on, &ranks(n), plan.round_up(bytes)).expect("a schedule");
            collsim::schedule::proof::prove(&built)
                .unwrap_or_else(|flaw| panic!("{n} {bytes}: {flaw}"));
        }
    }
}

#[test]
fn a_ring_as_a_plan_takes_what_our_ring_takes() {
    let eight = machine(EIGHT);
    let plan =
        parse_plan("plan.xml", &ring(8, "LL").replace("<algo ", "<algo nthreads=\"512\" "), None)
            .expect("a plan");
    let (collective, algorithm) = (nccl::Collective::AllReduce, nccl::Algorithm::Ring);
    // 512 threads, as the plan says, however small the call is.
    let split = Split::new(collective, algorithm, Protocol::Ll, 43_008, 8, 1);
    let options = CaseOptions {
        blocks: Some(1),
        settled: Some(Settled::Split(Split { threshold: 0, ..split })),
        ..CaseOptions::of(ranks(8), Fidelity::Packet)
    };
    let found =
        cases::cases(collsim::schedule::Collective::AllReduce, &eight, &ranks(8)).expect("cases");
    let ours: &Case = found.iter().find(|case| case.algorithm.name == "ring").expect("a ring");
    let (plan_us, ours_us) = (
        plan_us(&plan, &eight, &ranks(8), 43_008, Fidelity::Packet).expect("a time"),
        ours.nominal_us(&eight, 43_008, &options).expect("a time"),
    );
    assert!((plan_us / ours_us - 1.0).abs() < 0.05, "{plan_us} against {ours_us}");
}

#[test]
fn plans_with_a_flaw_are_refused() {
    let two = machine("h200x2-nvlink-pair");
    let flawed = |text: &str| {
        let plan = parse_plan("plan.xml", text, None).expect("a plan");
        prove_plan(&plan, &two, &ranks(2)).expect_err("a flaw").to_string()
    };
    assert!(flawed(&scratch(false)).contains("is no all-reduce"));
    let forgets = ring(2, "LL").replacen("type=\"rrcs\"", "type=\"rcs\"", 1);
    assert!(flawed(&forgets).contains("ends with contributions"), "{}", flawed(&forgets));
    // Both wait before they send.
    let mut waits = ring(2, "LL");
    for rank in ["0", "1"] {
        let _ = rank;
        waits = waits.replacen("s=\"0\" type=\"s\"", "s=\"0\" type=\"r\"", 1).replacen(
            "s=\"2\" type=\"r\"",
            "s=\"2\" type=\"s\"",
            1,
        );
    }
    assert!(flawed(&waits).contains("blocks wait for each other"), "{}", flawed(&waits));
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let told = render(&parse_plan("plan", text, None).expect_err("a fault"), false);
    for part in parts {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
}

#[test]
fn broken_files_show_the_place() {
    let good = ring(2, "LL");
    refused(
        &good.replacen("type=\"rrcs\"", "type=\"rrx\"", 1),
        &["`rrx` is no type that I know", "plan:5:1", "rrcs"],
    );
    refused(&good.replacen("srcoff=\"1\"", "srcoff=\"2\"", 1), &["outside the 2 of Input"]);
    refused(
        &good.replacen("send=\"1\"", "send=\"5\"", 1),
        &["GPU 0 sends to GPU 5, of GPUs 0 to 1"],
    );
    refused(
        &good.replacen("cnt=\"1\"", "cnt=\"2\"", 1).replacen("srcoff=\"1\"", "srcoff=\"0\"", 1),
        &["2 chunks are sent where 1 are received"],
    );
    refused(
        &good.replacen("depid=\"-1\" deps=\"-1\"", "depid=\"3\" deps=\"0\"", 1),
        &["waits for step 0 of thread block"],
    );
    refused(
        &good.replacen("<gpu id=\"1\"", "<gpu id=\"0\"", 1),
        &["GPU 0 of GPUs 0 to 1 once each", "GPU 1 is missing"],
    );
    refused(
        &good.replace("ngpus=\"2\"", "ngpus=\"x\""),
        &["`x` is no number that ngpus can be", "plan:1:1"],
    );
    refused(&good[..good.len() - 10], &["this is no XML", "msccl-tools"]);
    refused("{}", &["no schedule that I know", "MSCCL's XML", "GOAL"]);
}

#[test]
fn the_program_proves_and_times() {
    let path = std::env::temp_dir().join(format!("collsim-plan-{}.xml", std::process::id()));
    std::fs::write(&path, ring(2, "LL")).expect("written");
    let path = path.to_string_lossy().into_owned();
    let run = simulate(&["schedule", &path, "--topo", "h200x2-nvlink-pair", "--sizes", "14336"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.contains("ring: all-reduce of 2 ranks, LL, 2 chunks") && run.out.contains("proved"),
        "{}",
        run.out
    );
    let run = simulate(&["--topo", &path]);
    assert!(
        run.err.contains("looks like MSCCL's XML") && run.err.contains("simulate schedule"),
        "{}",
        run.err
    );
    let run = simulate(&["schedule", &path, "--topo", "h200-host-link"]);
    assert!(run.code == 2 && run.err.contains("is for 2 ranks, not 1"), "{}", run.err);
    std::fs::remove_file(path).expect("gone");
}
