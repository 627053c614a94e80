//! Buffers of each implementation, and what engines are known to do with memory, from
//! `calibration/memory.json`.

use serde::{Deserialize, Serialize};

use crate::error::{self, Error, Result};
use crate::selection::gpu::Capability;
use crate::suggestion::known;
use crate::topology::Confidence;

/// Sizes and rules that come with the program.
const TEXT: &str = include_str!("../../../calibration/memory.json");
/// What is known of memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Buffers by implementation; NCCL's follow from its constants by version.
    pub implementations: Vec<Implementation>,
    /// How engines divide a GPU's memory.
    pub engines: Vec<EngineRule>,
    /// What nobody states.
    pub estimates: Estimates,
    /// Weights by scenario.
    pub models: Vec<Model>,
}

/// Buffers of an implementation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// Short name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it allocates.
    pub parts: Vec<Part>,
}

/// One allocation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What it is for.
    pub what: String,
    /// Bytes, before `times`.
    pub bytes: u64,
    /// What the bytes are multiplied by.
    #[serde(default)]
    pub times: Vec<Factor>,
    /// Other bytes for some GPUs and numbers of ranks; elsewhere `bytes`.
    #[serde(default)]
    pub cases: Vec<SizeCase>,
    /// Where it was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// Bytes for some GPUs.
#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeCase {
    /// First number of the compute capability.
    pub capability_major: u32,
    /// Ranks.
    pub ranks: u32,
    /// Bytes.
    pub bytes: u64,
}

/// What an allocation grows with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Factor {
    /// GPUs of the group.
    Ranks,
    /// Tokens of the largest fused call.
    Tokens,
    /// Rows of the largest decode step: batch x tokens of a verify pass.
    Rows,
    /// Elements of a token.
    Hidden,
}

/// How an engine divides memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRule {
    /// Short name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The share that it takes when nobody says.
    pub fraction: f64,
    /// What the share is of.
    pub rule: Share,
    /// In words.
    pub says: String,
    /// Where it was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// What an engine's memory share is a share of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Of what is free before the model is loaded: weights and KV cache fill it.
    ShareOfFree,
    /// Of all memory: context, buffers, weights, activations and KV cache fill it.
    ShareOfTotal,
}

/// A figure with its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Value, in `unit`.
    pub value: f64,
    /// `GiB` or `1`.
    pub unit: String,
    /// Who says so.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// Figures that nobody states.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimates {
    /// CUDA context and libraries.
    pub context: Estimate,
    /// A captured batch size.
    pub graph: Estimate,
    /// Hidden vectors alive at once for a token.
    pub activation: Estimate,
}

/// A model's weights.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The scenario that runs it.
    pub scenario: String,
    /// All weights, GB (1e9 bytes).
    pub weights_gb: f64,
    /// Where it was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// What buffers are sized for.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Compute capability of the GPUs.
    pub capability: Capability,
    /// GPUs of the group.
    pub ranks: u32,
    /// Elements of a token.
    pub hidden: u64,
    /// Tokens of the largest fused call.
    pub tokens: u64,
    /// Rows of the largest decode step.
    pub rows: u64,
}

/// One allocation of a GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Allocation {
    /// What it is for.
    pub what: String,
    /// How the bytes come about.
    pub formula: String,
    /// Bytes.
    pub bytes: u64,
    /// Where it was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// Buffers of one implementation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffers {
    /// Short name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it allocates.
    pub parts: Vec<Allocation>,
}

impl Buffers {
    /// All of them, bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl Facts {
    /// Those that come with the program.
    ///
    /// # Errors
    /// When the embedded file is malformed, which a test excludes.
    pub fn embedded() -> Result<Facts> {
        error::embedded("calibration/memory.json", TEXT)
    }

    /// The engine of this name.
    ///
    /// # Errors
    /// When there is none, with the names that are.
    pub fn engine(&self, name: &str) -> Result<&EngineRule> {
        let names: Vec<&str> = self.engines.iter().map(|one| one.name.as_str()).collect();
        let found = self.engines.iter().find(|one| one.name == name);
        found.ok_or_else(|| unknown("engine whose memory is known here", name, &names))
    }

    /// The buffers of an implementation.
    ///
    /// # Errors
    /// When it is not known, with the names that are.
    pub fn buffers(&self, name: &str, shape: Shape) -> Result<Buffers> {
        let names: Vec<&str> = self.implementations.iter().map(|one| one.name.as_str()).collect();
        let found = self.implementations.iter().find(|one| one.name == name);
        let one = found
            .ok_or_else(|| unknown("implementation whose buffers are known here", name, &names))?;
        let parts = one.parts.iter().map(|part| part.allocation(shape)).collect();
        Ok(Buffers { name: one.name.clone(), title: one.title.clone(), parts })
    }
}

fn unknown(what: &str, name: &str, names: &[&str]) -> Error {
    let help = known(name, "known", names.iter().copied());
    Error::request(format!("there is no {what} by the name `{name}`"), help)
}

impl Part {
    fn allocation(&self, shape: Shape) -> Allocation {
        let fits = |case: &&SizeCase| {
            case.capability_major == shape.capability.major && case.ranks == shape.ranks
        };
        let each = self.cases.iter().find(fits).map_or(self.bytes, |case| case.bytes);
        let factors = self.times.iter().map(|factor| match factor {
            Factor::Ranks => (u64::from(shape.ranks), "ranks"),
            Factor::Tokens => (shape.tokens, "tokens"),
            Factor::Rows => (shape.rows, "rows"),
            Factor::Hidden => (shape.hidden, "hidden"),
        });
        let mut formula = format!("{each} B");
        let mut bytes = each;
        for (count, name) in factors {
            formula.push_str(&format!(" x {count} {name}"));
            bytes = bytes.saturating_mul(count);
        }
        Allocation {
            what: self.what.clone(),
            formula,
            bytes,
            source: self.source.clone(),
            confidence: self.confidence,
        }
    }
}

/// Batch sizes that engines capture up to `most`: 1, 2, 4, then multiples of 8, from 256 on of 16.
pub fn captured_sizes(most: u32) -> u32 {
    let small = [1, 2, 4].iter().filter(|&&size| size <= most).count() as u32;
    small + most.min(256) / 8 + most.saturating_sub(256) / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(capability: &str, ranks: u32) -> Shape {
        let capability = Capability::parse(capability).expect("a capability");
        Shape { capability, ranks, hidden: 7168, tokens: 2048, rows: 384 }
    }

    #[test]
    fn buffers_are_what_the_sources_say() {
        let facts = Facts::embedded().expect("embedded");
        let bytes = |name, capability, ranks| {
            facts.buffers(name, shape(capability, ranks)).expect("known").bytes()
        };
        let table: [(&str, &str, u32, u64); 10] = [
            // 3,456 + 3 x 8 MiB.
            ("custom", "12.0", 8, 25_169_280),
            // 16 MiB + 8 x 256 KiB + 8 MiB.
            ("custom_v2", "9.0", 8, 27_262_976),
            // 16 MiB + 8 x 4 MiB + 8 MiB.
            ("custom_v2", "10.0", 8, 58_720_256),
            // Elsewhere 1 MiB a slot, two epochs: 16 MiB + 8 x 2 MiB + 8 MiB.
            ("custom_v2", "8.0", 8, 41_943_040),
            // 8 x 2,048 x 7,168 x (6 + 2) + 8,192.
            ("flashinfer", "9.0", 8, 939_532_288),
            // 4 x 8 x 384 x 7,168.
            ("flashinfer_pcie_ipc", "12.0", 8, 88_080_384),
            ("mscclpp", "9.0", 8, 134_217_728),
            ("torch_symmetric_memory", "9.0", 8, 67_108_864),
            ("torch_symmetric_memory", "9.0", 4, 33_554_432),
            ("torch_symmetric_memory", "12.0", 8, 0),
        ];
        for (name, capability, ranks, expected) in table {
            assert_eq!(bytes(name, capability, ranks), expected, "{name} {capability} {ranks}");
        }
        let named: Vec<&str> = table.iter().map(|row| row.0).collect();
        for one in &facts.implementations {
            assert!(named.contains(&one.name.as_str()), "{} is not in the table", one.name);
        }
        let parts = facts.buffers("flashinfer", shape("9.0", 8)).expect("known").parts;
        assert_eq!(parts[0].formula, "6 B x 8 ranks x 2048 tokens x 7168 hidden");
    }

    #[test]
    fn batch_sizes_are_counted() {
        // 1, 2, 4, 8, 16, ..., 128; then to 256; then by 16 to 512.
        assert_eq!([1, 5, 8, 128, 256, 512].map(captured_sizes), [1, 3, 4, 19, 35, 51]);
    }

    #[test]
    fn figures_have_sources() {
        let facts = Facts::embedded().expect("embedded");
        let Estimates { context, graph, activation } = &facts.estimates;
        for one in [context, graph, activation] {
            assert!(one.value > 0.0 && !one.source.is_empty(), "{one:?}");
            assert!(matches!(one.unit.as_str(), "GiB" | "1"));
        }
        for engine in &facts.engines {
            assert!(engine.fraction > 0.5 && engine.fraction < 1.0 && !engine.source.is_empty());
        }
        assert!(
            facts.models.iter().all(|model| model.weights_gb > 0.0 && !model.source.is_empty())
        );
        assert!(
            facts.engine("slang").is_err_and(|error| format!("{error:?}").contains("`sglang`"))
        );
        let wrong = facts.buffers("custom_v3", shape("9.0", 8));
        assert!(wrong.is_err_and(|error| format!("{error:?}").contains("custom_v2")));
    }
}
