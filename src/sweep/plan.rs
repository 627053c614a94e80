//! A question before it is worked out: a machine, the calls, what is laid down; and edits of all
//! three in one list.

use super::in_parallel;
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass, hardware};
use crate::prediction::{Case, CaseOptions, Choice, Machine, choice, nccl};
use crate::suggestion::known;
use crate::topology::edit::{Edit, Kind, agree};
use crate::topology::{Topology, checks, edit as machine_edit};
use crate::workload::{Collective, Scenario, edit as workload_edit};

/// A machine, the calls, and what is laid down about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The machine.
    pub topology: Topology,
    /// The calls.
    pub scenario: Scenario,
    /// How they are done.
    pub choice: Choice,
}

/// How a plan is worked out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// With the regimes that the machine declares.
    pub regimes: bool,
    /// With ranges from the constants' uncertainty.
    pub ranges: bool,
    /// Network model.
    pub fidelity: Fidelity,
}

/// A plan as far as every question of it is the same.
pub struct Prepared {
    /// Compiled.
    pub machine: Machine,
    /// The calls.
    pub scenario: Scenario,
    /// How they are done.
    pub choice: Choice,
    /// GPU of each rank, what is laid down, what goes on beside the calls.
    pub options: CaseOptions,
    /// What to know about it.
    pub notes: Vec<String>,
}

impl Prepared {
    /// The ways to do the calls that are left.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let collective = self.scenario.steps[0].collective;
        self.choice.cases(collective, &self.machine, &self.options.gpus)
    }

    /// The fastest way to do a call of `bytes`, and its time, us; nothing where no way is left.
    ///
    /// # Errors
    /// As [`Prepared::cases`], and those of the engine.
    pub fn fastest(&self, bytes: u64) -> Result<Option<(Case, f64)>> {
        let cases = self.cases()?;
        let found = fastest(&self.machine, &cases, bytes, &self.options)?;
        Ok(found.map(|(case, us)| (case.clone(), us)))
    }
}

/// The fastest of these cases for a call of `bytes`, and its time, us; nothing where there is none.
///
/// # Errors
/// Those of the algorithms and the engine.
pub fn fastest<'c>(
    machine: &Machine,
    cases: &'c [Case],
    bytes: u64,
    options: &CaseOptions,
) -> Result<Option<(&'c Case, f64)>> {
    let times = in_parallel(cases, |case| case.nominal_us(machine, bytes, options))?;
    Ok(cases.iter().zip(times).min_by(|a, b| a.1.total_cmp(&b.1)))
}

/// What was found.
///
/// # Errors
/// That nothing was.
pub fn some_left<T>(found: Option<T>) -> Result<T> {
    found.ok_or_else(|| Error::request("no implementation is left", ""))
}

/// Edits that people may look for and that there are not: names, why, and what there is instead.
const ABSENT: &[(&[&str], &str, &str)] = &[
    (
        &["node", "machine", "host"],
        "one machine is modelled: no schedule runs over a network",
        "traffic of adapters beside the calls is there: nic:.. and beside=nic_in, rdma_in",
    ),
    (
        &["pp", "ep", "dp", "model", "chunk", "accepted"],
        "a scenario states its calls, not the model that makes them",
        "`simulate step --model NAME` has --pp, --dp-attention, --replicas, --chunk and --accepted",
    ),
];

/// Does an edit of the calls.
///
/// # Errors
/// When it is none of the calls, or cannot be.
pub fn edit_scenario(scenario: &mut Scenario, edit: &Edit) -> Result<()> {
    let kind = workload_edit::KINDS.iter().find(|kind| kind.name == edit.name);
    let missing = || edit.refused("it is no edit of the calls", "");
    (kind.ok_or_else(missing)?.apply)(scenario, edit).map(|_| ())
}

/// Name, form and meaning of every kind of edit, in the order in which they are listed.
pub fn kinds() -> Vec<(&'static str, &'static str, &'static str)> {
    fn told<T>(
        kinds: &[Kind<T>],
    ) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        kinds.iter().map(|kind| (kind.name, kind.form, kind.what))
    }
    let machine = told(machine_edit::KINDS);
    machine.chain(told(workload_edit::KINDS)).chain(told(choice::KINDS)).collect()
}

/// Reads edits: each text holds one, or several with `;` between.
///
/// # Errors
/// What is no edit, and edits that contradict each other.
pub fn parse_edits(texts: &[String]) -> Result<Vec<Edit>> {
    let each = texts.iter().flat_map(|text| text.split(';')).map(str::trim);
    let edits = each.filter(|text| !text.is_empty()).map(Edit::parse);
    let edits = edits.collect::<Result<Vec<Edit>>>()?;
    agree(&edits)?;
    Ok(edits)
}

/// That adapters which edits add are of known models. In a file of a machine an adapter may be of any
/// other one, as long as it carries no traffic; whoever adds one means it.
fn known_adapters(edits: &[Edit], calibration: &Calibration) -> Result<()> {
    let names = calibration.names(DeviceClass::Nic);
    for edit in edits.iter().filter(|edit| edit.name == "nic") {
        let model = edit.to.split_once('@').map(|parts| parts.0);
        if let Some(model) = model.filter(|model| !names.contains(model)) {
            let why = format!("`{model}` is no adapter model the calibration knows");
            return Err(edit.refused(why, known(model, "known", names.iter().copied())));
        }
    }
    Ok(())
}

impl Plan {
    /// The plan with edits, one after another, and what each did, in words. The plan stays as it is.
    ///
    /// # Errors
    /// An edit that there is not or that cannot be, and a machine that cannot be built.
    pub fn edited(&self, edits: &[Edit], calibration: &Calibration) -> Result<(Plan, Vec<String>)> {
        let mut plan = self.clone();
        let told = edits.iter().map(|edit| plan.apply(edit)).collect::<Result<Vec<String>>>()?;
        known_adapters(edits, calibration)?;
        if plan.topology != self.topology {
            plan.buildable(self, edits, calibration)?;
        }
        let gpus = plan.topology.gpus().len();
        let tensor_parallel = plan.scenario.tensor_parallel;
        if tensor_parallel != self.scenario.tensor_parallel && tensor_parallel as usize > gpus {
            return Err(Error::request(
                format!("tp={tensor_parallel}: {} has {gpus} GPUs", plan.topology.name),
                "add GPUs by edits such as gpu:gpu8=rtx-pro-6000@root0",
            ));
        }
        plan.ranks_agree(edits)?;
        Ok((plan, told))
    }

    /// That as many GPUs are named as an edit says that there are ranks.
    fn ranks_agree(&self, edits: &[Edit]) -> Result<()> {
        let (named, ranks) = (self.choice.gpus.len(), self.scenario.tensor_parallel as usize);
        match edits.iter().find(|edit| edit.name == "tp") {
            Some(edit) if named > 0 && named != ranks => Err(edit.refused(
                format!("{ranks} ranks, and {named} GPUs are named for them"),
                format!("name {ranks} GPUs, or leave out one of the two"),
            )),
            _ => Ok(()),
        }
    }

    /// Settles GPUs and options and compiles the machine.
    ///
    /// # Errors
    /// GPUs that there are not, fewer than two, a machine that does not compile.
    pub fn prepared(self, calibration: &Calibration, terms: Terms) -> Result<Prepared> {
        let Plan { topology, scenario, choice } = self;
        let mut notes = Vec::new();
        let gpus = choice.ranks(&topology, scenario.tensor_parallel, &mut notes)?;
        if gpus.len() < 2 {
            return Err(Error::request(
                format!("{} has one GPU: there is nothing to reduce", topology.name),
                "take a machine with two GPUs or more",
            ));
        }
        let machine = Machine::new(topology, calibration, terms.regimes, terms.ranges)?;
        let options = CaseOptions {
            beside: scenario.beside.clone(),
            ..choice.within(CaseOptions::of(gpus, terms.fidelity))
        };
        let collective = scenario.steps.first().map_or(Collective::AllReduce, |s| s.collective);
        let options = nccl::settled(&machine, collective, options);
        Ok(Prepared { machine, scenario, choice, options, notes })
    }

    fn apply(&mut self, edit: &Edit) -> Result<String> {
        fn find<T>(kinds: &'static [Kind<T>], edit: &Edit) -> Option<&'static Kind<T>> {
            kinds.iter().find(|kind| kind.name == edit.name)
        }
        if let Some(kind) = find(machine_edit::KINDS, edit) {
            return (kind.apply)(&mut self.topology, edit);
        }
        if let Some(kind) = find(workload_edit::KINDS, edit) {
            return (kind.apply)(&mut self.scenario, edit);
        }
        if let Some(kind) = find(choice::KINDS, edit) {
            return (kind.apply)(&mut self.choice, edit);
        }
        if let Some((_, why, instead)) =
            ABSENT.iter().find(|entry| entry.0.contains(&edit.name.as_str()))
        {
            return Err(edit.refused(why, *instead));
        }
        let names = known(&edit.name, "known", kinds().iter().map(|kind| kind.0));
        let help = format!("{names} (`simulate edits`)");
        Err(edit.refused(format!("there is no edit `{}`", edit.name), help))
    }

    /// That the edited machine can be built, naming the first edit after which it cannot.
    fn buildable(&self, before: &Plan, edits: &[Edit], calibration: &Calibration) -> Result<()> {
        let faults = |topology: &Topology| {
            let mut faults = checks::check(topology);
            faults.extend(hardware::faults(topology, calibration));
            faults
        };
        let Some(fault) = faults(&self.topology).into_iter().next() else {
            return Ok(());
        };
        // What the end has and each state since an edit had, that edit brought.
        let mut plan = before.clone();
        let mut blamed = edits.first();
        for edit in edits {
            let had = faults(&plan.topology).iter().any(|one| one.message == fault.message);
            plan.apply(edit)?;
            let has = faults(&plan.topology).iter().any(|one| one.message == fault.message);
            if has && !had {
                blamed = Some(edit);
            }
        }
        let edit = blamed.map_or(String::new(), |edit| format!("`{edit}`: "));
        Err(Error::request(format!("{edit}{}", fault.message), fault.help))
    }
}
