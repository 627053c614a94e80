//! What the options say of GPUs, algorithms, collectives and steps.

use super::arguments::Predict;
use crate::error::{Error, Result};
use crate::prediction::choice::protocol;
use crate::prediction::{Case, CaseOptions, Choice};
use crate::schedule::Collective;
use crate::suggestion::known;
use crate::sweep::plan::{edit_scenario, parse_edits};
use crate::sweep::sizes::Sizes;
use crate::workload::{Scenario, Step};

impl Predict {
    /// What draws start from.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// What the options lay down.
pub(super) fn choice(options: &Predict) -> Result<Choice> {
    Ok(Choice {
        algorithms: options.algo.clone(),
        protocol: options.proto.as_deref().map(protocol).transpose()?,
        channels: options.blocks,
        gpus: options.gpus.clone(),
        ring: Vec::new(),
        islands: Vec::new(),
        graph: Vec::new(),
        all: options.all,
        // What --explain says of slow transports needs the ring through host memory.
        by_host: options.explain,
    })
}

/// The collective of this name; none: the first step's.
pub(super) fn collective(options: &Predict, scenario: &Scenario) -> Result<Collective> {
    options.collective.as_deref().map_or(Ok(scenario.steps[0].collective), named_collective)
}

/// The collective of this name.
pub(super) fn named_collective(name: &str) -> Result<Collective> {
    Collective::from_name(name).ok_or_else(|| {
        let names = Collective::ALL.map(|entry| entry.1);
        Error::request(format!("there is no collective `{name}`"), known(name, "known", names))
    })
}

/// Leaves the steps of one collective; where there is none, all steps are asked of it.
pub(super) fn steps(scenario: &mut Scenario, collective: Collective, notes: &mut Vec<String>) {
    let (wanted, others): (Vec<Step>, Vec<Step>) =
        std::mem::take(&mut scenario.steps).into_iter().partition(|s| s.collective == collective);
    if wanted.is_empty() {
        notes.push(format!("the steps of {} as {}", scenario.name, collective.title()));
        scenario.steps = others.into_iter().map(|step| Step { collective, ..step }).collect();
        scenario.reported.clear();
        return;
    }
    for step in &others {
        let (name, flag) = (&step.name, step.collective.name());
        notes.push(format!("step {name} is another collective: --collective {flag}"));
    }
    scenario.steps = wanted;
}

/// Traffic beside the calls, as the options add it, and what to note of it.
pub(super) fn beside(
    options: &Predict,
    scenario: &mut Scenario,
    notes: &mut Vec<String>,
) -> Result<()> {
    let edit = |text: &String| match text.split_once('=') {
        None => format!("beside={text}"),
        Some((gpus, traffic)) => format!("beside:{gpus}={traffic}"),
    };
    let edits = parse_edits(&options.beside.iter().map(edit).collect::<Vec<String>>())?;
    edits.iter().try_for_each(|one| edit_scenario(scenario, one))?;
    notes.extend(scenario.beside.iter().map(|one| format!("beside the calls: {one}")));
    Ok(())
}

/// What is said of a case that changes its protocol by itself at the size of a step.
pub(super) fn changes(
    cases: &[Case],
    scenario: &Scenario,
    options: &CaseOptions,
) -> Option<String> {
    let changed = |case: &&Case| {
        let at = |step: &Step| case.protocol_at(step.bytes, options) != case.protocol;
        options.settled.is_none() && scenario.steps.iter().any(at)
    };
    let case = cases.iter().find(changed)?;
    let lines = case.protocol.name();
    Some(format!(
        "{} from 64 KiB a rank on is {}, as NCCL mostly has it, faster or not: --proto {lines} keeps {lines}",
        case.title.replace(" (NCCL)", ""),
        case.large?.name()
    ))
}

/// The sizes asked for; none: the scenario's. A table has a form also without sizes.
pub(super) fn wanted_sizes(options: &Predict, table: bool) -> Result<Vec<u64>> {
    let none = options.begin.is_none() && options.end.is_none();
    if none && options.factor.is_some() {
        return Err(Error::request("-f is for a sweep of sizes", "add -b 8 -e 1G"));
    }
    if none && !table && options.format.is_some() {
        let help = "add -b 8 -e 1G, or --json";
        return Err(Error::request("--format is for a sweep of sizes", help));
    }
    if none {
        return Ok(Vec::new());
    }
    if options.explain || options.assumptions || options.every_call {
        return Err(Error::request(
            "--explain, --assumptions and --every-call belong to the first screen",
            "drop them, or drop -b and -e",
        ));
    }
    let begin = options.begin.unwrap_or(8);
    let end = options.end.unwrap_or(begin);
    Sizes { begin, end, factor: options.factor.unwrap_or(2.0) }.all()
}
