//! What a serving engine would take for an all-reduce, and why it refuses the rest: the rules of
//! `calibration/serving.json` held against a machine, a call and what the user set.
//!
//! What a refused implementation would cost is not said here; its algorithm is named, so that it can
//! be timed.

mod facts;
mod needs;
mod rules;
mod settings;

use serde::Serialize;

pub use facts::Facts;
pub use needs::{Needs, SizeTable};
pub use rules::{Candidate, Engine, Rule, Rules, Runs, Setting, SettingKind, Version};
pub use settings::Settings;

use crate::error::{Error, Result};
use crate::suggestion::known;
use crate::topology::Confidence;
use needs::Situation;

/// What is asked of an engine.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// The engine's name.
    pub engine: &'a str,
    /// Its version; the newest that was read when none is told.
    pub version: Option<&'a str>,
    /// Settings as the user writes them.
    pub settings: &'a [String],
    /// Bytes of the call.
    pub bytes: u64,
    /// Type of the elements, such as `bf16`.
    pub dtype: &'a str,
}

/// What an engine would do.
#[derive(Clone, Debug, Serialize)]
pub struct Dispatch {
    /// Its name for people.
    pub engine: String,
    /// The version that was assumed or told.
    pub version: Version,
    /// Bytes of the call.
    pub bytes: u64,
    /// In the order in which it tries them.
    pub candidates: Vec<Verdict>,
    /// The one it takes, as an index; none where the caller or a tuner decides.
    pub chosen: Option<usize>,
    /// What to know about the answer.
    pub notes: Vec<String>,
}

/// What becomes of one implementation.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Short name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The algorithm that it runs or would run, by its name in [`crate::algorithm::ALGORITHMS`].
    pub algorithm: String,
    /// Whose kernel, by its key in `calibration/libraries.json`.
    pub implementation: String,
    /// Why it is refused; empty when it is available.
    pub refusals: Vec<Refusal>,
    /// Settings that lifted a rule that would have refused it.
    pub forced_by: Vec<String>,
}

/// One reason for which an implementation is refused.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// What is the case.
    pub what: String,
    /// Why the library minds.
    pub why: String,
    /// Function and file.
    pub rule_of: String,
    /// Whose, and which version.
    pub library: String,
    /// What would lift it.
    pub lifted_by: String,
    /// Where the rule was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

impl Verdict {
    /// Whether the engine could take it.
    pub fn available(&self) -> bool {
        self.refusals.is_empty()
    }

    /// `available`, `forced by X`, or `refused: what is the case`.
    pub fn in_short(&self) -> String {
        match (&self.refusals[..], &self.forced_by[..]) {
            ([], []) => "available".to_owned(),
            ([], forced) => format!("forced by {}", forced.join(", ")),
            ([first, ..], _) => format!("refused: {}", first.what),
        }
    }

    /// All reasons at length, a block of lines each.
    pub fn at_length(&self) -> String {
        let mut out = format!("{}: {}\n", self.title, self.in_short());
        for (index, refusal) in self.refusals.iter().enumerate() {
            if index > 0 {
                out.push_str(&format!("  and     {}\n", refusal.what));
            }
            let sure = match refusal.confidence {
                Confidence::Estimated => " (a guess)",
                Confidence::Inferred => " (inferred)",
                _ => "",
            };
            let Refusal { why, rule_of, library, lifted_by, .. } = refusal;
            out.push_str(&format!(
                "  why     {why}\n  rule    {rule_of} ({library}){sure}\n  lifted  by {lifted_by}\n"
            ));
        }
        out
    }
}

impl Rules {
    /// The engine of this name.
    ///
    /// # Errors
    /// When there is none, with the names that are.
    pub fn engine(&self, name: &str) -> Result<&Engine> {
        self.engines.iter().find(|engine| engine.name == name).ok_or_else(|| {
            let names = self.engines.iter().map(|engine| engine.name.as_str());
            let help = known(name, "known", names);
            Error::request(format!("there is no engine `{name}`"), help)
        })
    }

    /// What an engine would do with a call on a machine.
    ///
    /// # Errors
    /// An unknown engine, version or setting.
    pub fn dispatch(&self, query: &Query<'_>, facts: &Facts) -> Result<Dispatch> {
        let engine = self.engine(query.engine)?;
        let version = match query.version {
            Some(text) => Version::parse(text)?,
            None => engine.version.clone(),
        };
        if version < engine.oldest {
            return Err(Error::request(
                format!("no rules of {} {version} were read", engine.title),
                format!("they were read in {} to {}", engine.oldest, engine.version),
            ));
        }
        let settings = Settings::read(engine, &version, query.settings)?;
        let mut notes = Vec::new();
        if version > engine.version {
            notes.push(format!(
                "{} {version} was not read: the rules of {} are taken, unchecked",
                engine.title, engine.version
            ));
        }
        let call = Call { engine, version: &version, settings: &settings, facts, query };
        let offered = || engine.candidates.iter().filter(|one| call.offers(one));
        let candidates: Vec<Verdict> = offered().map(|one| call.verdict(one)).collect();
        let first = candidates.iter().position(Verdict::available);
        let chosen = first.filter(|_| engine.ordered);
        let engine = engine.title.clone();
        Ok(Dispatch { engine, version, bytes: query.bytes, candidates, chosen, notes })
    }
}

/// One call with all that its rules look at.
struct Call<'a> {
    engine: &'a Engine,
    version: &'a Version,
    settings: &'a Settings,
    facts: &'a Facts,
    query: &'a Query<'a>,
}

impl Call<'_> {
    fn offers(&self, candidate: &Candidate) -> bool {
        candidate.since.as_ref().is_none_or(|since| self.version >= since)
    }

    /// Whether the candidate of this name would take the call. Candidates name each other without a
    /// circle, which a test holds them to.
    fn takes(&self, name: &str) -> bool {
        let candidate = self.engine.candidates.iter().find(|one| one.name == name);
        candidate.is_some_and(|one| self.offers(one) && self.verdict(one).available())
    }

    fn verdict(&self, candidate: &Candidate) -> Verdict {
        let takes = |name: &str| self.takes(name);
        let situation = Situation {
            engine: self.engine,
            facts: self.facts,
            settings: self.settings,
            bytes: self.query.bytes,
            dtype: self.query.dtype,
            takes: &takes,
        };
        let (mut refusals, mut forced_by) = (Vec::new(), Vec::new());
        for rule in candidate.rules.iter().filter(|rule| rule.holds_in(self.version)) {
            if !rule.when.iter().all(|needs| needs.holds(&situation)) {
                continue;
            }
            let Some(what) = rule.needs.unmet(&situation) else { continue };
            match &rule.lifted_by_setting {
                Some(name) if self.settings.on(self.engine, name) => forced_by.push(name.clone()),
                _ => refusals.push(self.refusal(rule, what)),
            }
        }
        let run =
            candidate.runs.iter().find(|run| run.when.iter().all(|one| one.holds(&situation)));
        let run = run.or(candidate.runs.last());
        Verdict {
            name: candidate.name.clone(),
            title: candidate.title.clone(),
            algorithm: run.map_or_else(String::new, |run| run.algorithm.clone()),
            implementation: run.map_or_else(String::new, |run| run.implementation.clone()),
            refusals,
            forced_by,
        }
    }

    fn refusal(&self, rule: &Rule, what: String) -> Refusal {
        Refusal {
            what,
            why: rule.why.clone(),
            rule_of: rule.rule_of.clone(),
            library: format!("{} {}", self.engine.title, self.version),
            lifted_by: rule.lifted_by.clone(),
            source: rule.source.clone(),
            confidence: rule.confidence,
        }
    }
}
