//! What the ranks ask for: the named collective calls of one step of a model, and what people
//! reported of it.

mod arrival;
mod beside;
mod collective;
mod draw;
pub mod edit;
pub mod model;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Result};
use crate::units::SIZE_MAX;

pub use arrival::{Arrival, Distribution, Drawn};
pub use beside::{Beside, Traffic, beside_fault};
pub use collective::Collective;
pub use draw::uniform;

/// A model under tensor parallelism: its steps as calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Where editors find the schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Version of this form: 1.
    pub schema_version: u32,
    /// Short name, the file's stem.
    pub name: String,
    /// One line for a person.
    #[serde(default)]
    pub title: String,
    /// Where the figures come from.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Ranks that share each layer, one GPU each.
    pub tensor_parallel: u32,
    /// Its model's name in the catalogue, where it has one: the ranks must divide its heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The steps, the most frequent first.
    pub steps: Vec<Step>,
    /// Other traffic that goes on while the calls run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// The machine on which people measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_on: Option<ReportedOn>,
    /// What they measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<Reported>,
}

/// One kind of step: equal calls, back to back unless ranks compute between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, such as `decode` or `verify`.
    pub name: String,
    /// Calls in a step.
    pub calls: u32,
    /// Bytes of a call, as nccl-tests counts them.
    pub bytes: u64,
    /// What each call computes.
    #[serde(default)]
    pub collective: Collective,
    /// Type of an element.
    #[serde(default)]
    pub dtype: ElementType,
    /// How long ranks compute before each call; nothing: they come together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
}

/// Type of an element.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ElementType {
    /// bfloat16.
    #[default]
    Bf16,
    /// IEEE half precision.
    Fp16,
    /// IEEE single precision.
    Fp32,
    /// Eight bits, scaled outside of the call.
    Fp8,
}

impl ElementType {
    /// All of them.
    pub const ALL: [ElementType; 4] =
        [ElementType::Bf16, ElementType::Fp16, ElementType::Fp32, ElementType::Fp8];

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            ElementType::Bf16 | ElementType::Fp16 => 2,
            ElementType::Fp32 => 4,
            ElementType::Fp8 => 1,
        }
    }

    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::Bf16 => "bf16",
            ElementType::Fp16 => "fp16",
            ElementType::Fp32 => "fp32",
            ElementType::Fp8 => "fp8",
        }
    }
}

/// A kind of machine: figures of one say nothing of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedOn {
    /// Model of its GPUs.
    pub gpu_model: String,
    /// How many.
    pub gpus: u32,
}

/// A figure that somebody reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reported {
    /// Tokens a second of one user.
    Throughput(Throughput),
    /// How long one step took.
    Pass(Pass),
}

/// Tokens a second of one user, one token a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// The figure.
    pub tok_per_s: f64,
    /// The step that a token takes.
    pub step: String,
    /// The algorithm that ran, by its name on the command line.
    pub algorithm: String,
    /// What else ran with it.
    pub condition: String,
}

/// How long one step took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// The figure, ms.
    pub ms: f64,
    /// Which step.
    pub step: String,
    /// The algorithm that ran, by its name on the command line.
    pub algorithm: String,
    /// What the figure may hold besides.
    pub condition: String,
}

/// Most calls of a step; more is a slip of the pen.
pub const CALLS_MAX: u32 = 1_000_000;

/// What is wrong with the size of a call, bytes, which stands at `path` of a file.
pub fn size_fault(bytes: u64, path: impl Into<String>) -> Option<Problem> {
    let message = format!("{bytes} bytes are out of range");
    let fault = || Problem::new(message, path).help("1 byte to 1024G a call");
    (!(1..=SIZE_MAX).contains(&bytes)).then(fault)
}

impl Scenario {
    /// Why so many ranks cannot share its layers, and what would do; nothing where it names no model.
    ///
    /// # Errors
    /// When there is no such model.
    pub fn ranks_fault(&self, ranks: u32) -> Result<Option<(String, String)>> {
        let Some(name) = &self.model else { return Ok(None) };
        Ok(model::find(name)?.heads_fault(ranks))
    }

    /// The step of this name.
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The reported throughputs.
    pub fn throughputs(&self) -> impl Iterator<Item = &Throughput> {
        self.reported.iter().filter_map(|reported| match reported {
            Reported::Throughput(throughput) => Some(throughput),
            Reported::Pass(_) => None,
        })
    }

    /// The reported times of a step.
    pub fn passes(&self) -> impl Iterator<Item = &Pass> {
        self.reported.iter().filter_map(|reported| match reported {
            Reported::Pass(pass) => Some(pass),
            Reported::Throughput(_) => None,
        })
    }
}
