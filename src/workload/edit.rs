//! Changes of a workload in words: `batch=16`, `drafts=3`, `dtype=fp8`, `calls=61`, `tp=4`.

use super::model::Layout;
use super::{Beside, CALLS_MAX, ElementType, Scenario, Step, Traffic, beside_fault};
use crate::error::Result;
use crate::suggestion::known;
use crate::topology::edit::{Edit, Kind};
use crate::units::{format_thousands, parse_gpus};

/// All kinds of change of a scenario whose calls are stated.
pub const KINDS: &[Kind<Scenario>] = &[
    Kind {
        name: "batch",
        form: "batch=16",
        what: "users served at once: every call carries so many times its bytes",
        apply: batch,
    },
    Kind {
        name: "drafts",
        form: "drafts=3",
        what: "drafted tokens: a verify step carries one more than that",
        apply: drafts,
    },
    Kind {
        name: "dtype",
        form: "dtype=fp8 | bf16 | fp16 | fp32",
        what: "type of an element on the wire",
        apply: dtype,
    },
    Kind {
        name: "calls",
        form: "calls=61 | calls:STEP=61",
        what: "calls of a step: fused or merged calls, fewer layers between them",
        apply: calls,
    },
    Kind {
        name: "beside",
        form: "beside=h2d+d2h | beside:4-7=ring | beside=none",
        what: "other traffic while the calls run",
        apply: beside,
    },
    Kind { name: "tp", form: "tp=4", what: "ranks that share each layer", apply: tensor_parallel },
];

/// The name of an edit, and how it changes a layout.
type OfLayout = (&'static str, fn(&mut Layout, &Edit) -> Result<()>);

/// How the edits of the calls that a model's layout has of itself change a layout: a model makes its
/// calls anew, so that nothing of a scenario is to be edited.
pub const OF_LAYOUT: &[OfLayout] = &[
    ("batch", |layout, edit| {
        layout.batch = users(edit)?;
        Ok(())
    }),
    ("drafts", |layout, edit| {
        layout.drafts = drafted(edit)? as u32;
        Ok(())
    }),
    ("dtype", |layout, edit| {
        layout.dtype = element(edit)?;
        Ok(())
    }),
    ("tp", |layout, edit| {
        layout.tensor = ranks(edit)?;
        Ok(())
    }),
];

/// Largest batch that is no slip of the pen.
const BATCH_MAX: u64 = 65_536;
/// Most drafted tokens.
const DRAFTS_MAX: u64 = 64;
/// Most ranks.
const RANKS_MAX: u64 = 1024;

/// What `batch=..` says.
fn users(edit: &Edit) -> Result<u64> {
    edit.of_nothing()?;
    edit.number(1, BATCH_MAX)
}

/// What `drafts=..` says.
fn drafted(edit: &Edit) -> Result<u64> {
    edit.of_nothing()?;
    edit.number(0, DRAFTS_MAX)
}

/// What `dtype=..` says.
fn element(edit: &Edit) -> Result<ElementType> {
    edit.of_nothing()?;
    ElementType::from_name(&edit.to).ok_or_else(|| {
        let names = ElementType::ALL.map(ElementType::name).join(", ");
        edit.refused(format!("there is no type `{}`", edit.to), names)
    })
}

/// What `tp=..` says.
fn ranks(edit: &Edit) -> Result<u32> {
    edit.of_nothing()?;
    Ok(edit.number(2, RANKS_MAX)? as u32)
}

/// What was reported of a scenario holds for it as it was.
fn no_longer_reported(scenario: &mut Scenario) {
    scenario.reported_on = None;
    scenario.reported.clear();
}

fn batch(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let users = users(edit)?;
    scenario.steps.iter_mut().for_each(|step| step.bytes *= users);
    no_longer_reported(scenario);
    Ok(format!("{users} users at once"))
}

fn drafts(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let drafts = drafted(edit)?;
    let Some(one) = scenario.step("decode").map(|step| step.bytes) else {
        return Err(edit.refused("the scenario has no step `decode` of one token", ""));
    };
    let Some(verify) = scenario.steps.iter_mut().find(|step| step.name == "verify") else {
        return Err(edit.refused("the scenario has no step `verify`", ""));
    };
    verify.bytes = one * (drafts + 1);
    let bytes = format_thousands(verify.bytes);
    no_longer_reported(scenario);
    Ok(format!("verify of {} tokens, {bytes} B", drafts + 1))
}

fn dtype(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let after = element(edit)?;
    for step in &mut scenario.steps {
        step.bytes = step.bytes / step.dtype.bytes() * after.bytes();
        step.dtype = after;
    }
    no_longer_reported(scenario);
    Ok(format!("elements of {}, {} B each", after.name(), after.bytes()))
}

fn calls(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let calls = edit.number(1, u64::from(CALLS_MAX))? as u32;
    let names: Vec<String> = scenario.steps.iter().map(|step| step.name.clone()).collect();
    let meant = |step: &&mut Step| edit.of.is_empty() || step.name == edit.of;
    let mut changed = 0;
    for step in scenario.steps.iter_mut().filter(meant) {
        step.calls = calls;
        changed += 1;
    }
    if changed == 0 {
        return Err(edit.refused(format!("there is no step `{}`", edit.of), names.join(", ")));
    }
    no_longer_reported(scenario);
    let whose = if edit.of.is_empty() { "a step" } else { &edit.of };
    Ok(format!("{calls} calls in {whose}"))
}

fn beside(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let gpus = parse_gpus(&edit.of).map_err(|reason| edit.refused(reason, ""))?;
    if edit.to == "none" {
        edit.of_nothing()?;
        scenario.beside.clear();
        return Ok("nothing beside the calls".to_owned());
    }
    let traffic = |word: &str| {
        let names = Traffic::ALL.map(|entry| entry.1);
        let help = || known(word, "known", names);
        Traffic::from_name(word)
            .ok_or_else(|| edit.refused(format!("there is no traffic `{word}`"), help()))
    };
    let mut told = Vec::new();
    for word in edit.to.split('+') {
        let one = Beside { traffic: traffic(word.trim())?, gpus: gpus.clone() };
        told.push(one.to_string());
        scenario.beside.push(one);
    }
    if let Some((_, why, help)) = beside_fault(&scenario.beside) {
        return Err(edit.refused(why, help));
    }
    no_longer_reported(scenario);
    Ok(format!("beside the calls: {}", told.join("; ")))
}

fn tensor_parallel(scenario: &mut Scenario, edit: &Edit) -> Result<String> {
    let ranks = ranks(edit)?;
    if let Some((why, help)) = scenario.ranks_fault(ranks)? {
        return Err(edit.refused(why, help));
    }
    scenario.tensor_parallel = ranks;
    no_longer_reported(scenario);
    Ok(format!("{} ranks share each layer", scenario.tensor_parallel))
}
