//! Models as far as the wires see them, and the rules by which an engine's passes become calls.
//!
//! The catalogue is data (`scenarios/models.json`). The rules hold for vLLM and SGLang: under tensor
//! parallelism an all-reduce after each mixer and after each MLP, one more for the embedding, and an
//! all-gather of the logits. Experts on different ranks change nothing while every rank has all
//! tokens; with attention data-parallel, what goes round the experts takes the all-reduces' place.

use serde::{Deserialize, Serialize};

use super::{Collective, ElementType, Step};
use crate::error::{Error, Result, embedded};
use crate::suggestion::known;

/// A model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name on the command line.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// Values of a token between layers.
    pub hidden: u64,
    /// Layers, or blocks of one mixer each.
    pub layers: u32,
    /// All-reduces of all layers together.
    pub layer_reduces: u32,
    /// Those of them in fp32.
    #[serde(default)]
    pub fp32_reduces: u32,
    /// Attention heads, where known: ranks must divide them.
    #[serde(default)]
    pub heads: Option<u32>,
    /// Words, where known.
    #[serde(default)]
    pub vocabulary: Option<u64>,
    /// Its experts, where it has some.
    #[serde(default)]
    pub experts: Option<Experts>,
    /// The drafts that people use with it.
    #[serde(default)]
    pub drafts: Option<Drafts>,
    /// Figures that no source at hand states: recalled from the models' published configurations.
    #[serde(default)]
    pub recalled: Vec<String>,
    /// Who says so.
    pub source: String,
    /// What is not certain.
    #[serde(default)]
    pub doubt: Option<String>,
}

/// Experts of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    /// How many.
    pub count: u32,
    /// How many a token uses, where known.
    pub used: Option<u32>,
    /// Layers without.
    pub dense_layers: u32,
}

/// Speculative decoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drafts {
    /// Its name.
    pub kind: String,
    /// Tokens that people draft.
    pub tokens: u32,
}

/// What goes round the experts when attention is data-parallel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exchange {
    /// An all-gather of all tokens before, a reduce-scatter after.
    Gather,
    /// An all-to-all of the tokens that each rank's experts take, and back (DeepEP).
    AllToAll,
}

/// How a model is laid over GPUs, and its load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Ranks that share each layer.
    pub tensor: u32,
    /// Groups of layers one after another, each on ranks of its own.
    pub pipeline: u32,
    /// Attention is data-parallel over the ranks; what goes round the experts then.
    pub data_attention: Option<Exchange>,
    /// Users served at once by these ranks.
    pub batch: u64,
    /// Drafted tokens; none: no verify and no draft pass.
    pub drafts: u32,
    /// Type of an element on the wire.
    pub dtype: ElementType,
}

/// A pass through the model.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// One token for each user.
    Decode,
    /// The drafted tokens and one more for each user.
    Verify,
    /// One pass of a draft model of one layer.
    Draft,
    /// A chunk of a prompt, so many tokens.
    Prefill(u64),
}

/// Equal calls of a pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Which calls.
    pub what: &'static str,
    /// How many, how large, what they compute.
    pub step: Step,
}

/// Largest batch or chunk, tokens.
pub const TOKENS_MAX: u64 = 1 << 24;
/// Values that share a scale of four bytes in fp8 (DeepSeek-V3's quantisation).
const SCALED: u64 = 128;

/// The catalogue.
///
/// # Errors
/// [`Error::Read`] when the embedded file is damaged, which a test excludes.
pub fn catalogue() -> Result<Vec<Model>> {
    embedded("scenarios/models.json", include_str!("../../scenarios/models.json"))
}

/// The model of this name.
///
/// # Errors
/// When there is none, with the names that are.
pub fn find(name: &str) -> Result<Model> {
    let all = catalogue()?;
    let found = all.iter().find(|model| model.name == name).cloned();
    found.ok_or_else(|| {
        let help = known(name, "known", all.iter().map(|model| model.name.as_str()));
        Error::request(format!("there is no model `{name}`"), help)
    })
}

impl Layout {
    /// Tokens of a pass.
    pub fn tokens(&self, pass: Pass) -> u64 {
        match pass {
            Pass::Decode | Pass::Draft => self.batch,
            Pass::Verify => self.batch * (u64::from(self.drafts) + 1),
            Pass::Prefill(tokens) => tokens,
        }
    }
}

impl Model {
    /// Experts of a layer, and how many of them a token uses.
    ///
    /// # Errors
    /// When the model has none, or how many are used is not known.
    pub fn experts_and_used(&self) -> Result<(u32, u32)> {
        let Some(experts) = &self.experts else {
            let help = "name a mixture of experts, such as deepseek-v3";
            return Err(Error::request(format!("{} has no experts", self.title), help));
        };
        let used = experts.used.ok_or_else(|| {
            Error::request(
                format!("how many experts a token of {} uses is not known", self.title),
                "name another model",
            )
        })?;
        Ok((experts.count, used))
    }

    /// Why so many ranks cannot share its attention, and what would do.
    pub fn heads_fault(&self, ranks: u32) -> Option<(String, String)> {
        self.heads.and_then(|heads| self.shared_fault(ranks, heads, "attention heads"))
    }

    /// Why so many ranks cannot share its experts, and what would do: kernels give each rank equally
    /// many.
    pub fn experts_fault(&self, ranks: u32) -> Option<(String, String)> {
        let count = self.experts.as_ref()?.count;
        self.shared_fault(ranks, count, "experts")
    }

    fn shared_fault(&self, ranks: u32, count: u32, what: &str) -> Option<(String, String)> {
        let divides = |ranks: &u32| *ranks > 0 && count.is_multiple_of(*ranks);
        let fits: Vec<String> = (2..=16).filter(divides).map(|n| n.to_string()).collect();
        let why = format!("{} has {count} {what}", self.title);
        (!divides(&ranks)).then(|| (why, format!("ranks must divide them: {}", fits.join(", "))))
    }

    /// What cannot be laid out so.
    ///
    /// # Errors
    /// Ranks that do not divide the heads, more stages than layers, experts that there are not.
    pub fn check(&self, layout: &Layout) -> Result<()> {
        let Layout { tensor, pipeline, .. } = *layout;
        let fault = match layout.data_attention {
            None => self.heads_fault(tensor),
            // The gather brings every token to every rank, whatever its experts.
            Some(Exchange::Gather) => None,
            Some(Exchange::AllToAll) => self.experts_fault(tensor),
        };
        if let Some((why, help)) = fault {
            return Err(Error::request(format!("TP {tensor}: {why}"), help));
        }
        if pipeline == 0 || pipeline > self.layers {
            return Err(Error::request(
                format!("PP {pipeline}: {} has {} layers", self.title, self.layers),
                "each stage needs a layer",
            ));
        }
        if layout.data_attention.is_some() && (self.experts.is_none() || !self.pairs()) {
            return Err(Error::request(
                format!("data-parallel attention is not known of {}", self.title),
                "its layers are not attention and experts in turn",
            ));
        }
        if layout.data_attention == Some(Exchange::AllToAll)
            && self.experts.as_ref().is_none_or(|experts| experts.used.is_none())
        {
            return Err(Error::request(
                format!("how many experts a token of {} uses is not known", self.title),
                "use --experts gather",
            ));
        }
        if layout.batch == 0 || layout.tokens(Pass::Verify) > TOKENS_MAX {
            return Err(Error::request(
                format!("a batch of {} is not served", layout.batch),
                format!("1 to {TOKENS_MAX} tokens a pass"),
            ));
        }
        Ok(())
    }

    /// Layers are attention and MLP in turn.
    fn pairs(&self) -> bool {
        self.layer_reduces == 2 * self.layers
    }

    /// The calls of a pass.
    ///
    /// # Errors
    /// As [`Model::check`].
    pub fn calls(&self, layout: &Layout, pass: Pass) -> Result<Vec<Group>> {
        self.check(layout)?;
        let tokens = layout.tokens(pass);
        // A draft model is one layer of the same width.
        let (layers, reduces, fp32) = match pass {
            Pass::Draft => (1, 2, self.fp32_reduces.min(1)),
            _ => (self.layers, self.layer_reduces, self.fp32_reduces),
        };
        let mut groups = Vec::new();
        let mut add = |what: &'static str, calls, bytes, collective, dtype: ElementType| {
            if calls > 0 {
                let name = what.to_owned();
                let step = Step { name, calls, bytes, collective, dtype, arrival: None };
                groups.push(Group { what, step });
            }
        };
        let own = tokens * self.hidden * layout.dtype.bytes();
        match (layout.data_attention, layout.tensor) {
            (_, 1) => {}
            (None, _) => {
                let reduce = Collective::AllReduce;
                let narrow = reduces - fp32 + 1;
                add("layers and embedding", narrow, own, reduce, layout.dtype);
                let wide = tokens * self.hidden * 4;
                add("experts in fp32", fp32, wide, reduce, ElementType::Fp32);
                if let Some(words) = self.vocabulary {
                    let bytes = tokens.min(layout.tokens(Pass::Verify)) * words * 2;
                    add("logits", 1, bytes, Collective::AllGather, ElementType::Bf16);
                }
            }
            (Some(Exchange::Gather), _) => {
                add("tokens to all", layers, own, Collective::AllGather, layout.dtype);
                let back = tokens * self.hidden * 2;
                add("sums back", layers, back, Collective::ReduceScatter, ElementType::Bf16);
            }
            (Some(Exchange::AllToAll), ranks) => {
                let bf16 = ElementType::Bf16;
                let [there, back] = self.exchanged(ranks, tokens);
                let dense = self.experts.as_ref().map_or(0, |experts| experts.dense_layers);
                let (sparse, dense) = (layers - dense.min(layers), dense.min(layers));
                add("dispatch", sparse, there, Collective::AllToAll, ElementType::Fp8);
                add("combine", sparse, back, Collective::AllToAll, bf16);
                add("tokens to all", dense, own, Collective::AllGather, layout.dtype);
                let bytes = tokens * self.hidden * 2;
                add("sums back", dense, bytes, Collective::ReduceScatter, bf16);
            }
        }
        if pass != Pass::Draft {
            let bytes = tokens * self.hidden * 2;
            let hand = Collective::Broadcast;
            add("stage to stage", layout.pipeline - 1, bytes, hand, ElementType::Bf16);
        }
        Ok(groups)
    }

    /// Bytes that a rank puts into dispatch and into combine: each of its tokens once for every rank
    /// that holds one of its experts, as even routing has it.
    fn exchanged(&self, ranks: u32, tokens: u64) -> [u64; 2] {
        let used = self.experts.as_ref().and_then(|experts| experts.used).unwrap_or(0);
        let n = f64::from(ranks);
        let reached = n * (1.0 - (1.0 - 1.0 / n).powi(used as i32));
        let own = tokens.div_ceil(u64::from(ranks)) as f64;
        let there = self.hidden + self.hidden / SCALED * 4;
        [there, 2 * self.hidden].map(|bytes| (own * reached * bytes as f64).round() as u64)
    }

    /// Tokens a second that a prefill cannot pass at this bus bandwidth, GB/s, by its all-reduces of
    /// the layers alone.
    pub fn prefill_bound(&self, layout: &Layout, bus_gb_per_s: f64) -> f64 {
        let narrow = u64::from(self.layer_reduces - self.fp32_reduces) * layout.dtype.bytes();
        let a_token = self.hidden * (narrow + u64::from(self.fp32_reduces) * 4);
        let factor = Collective::AllReduce.bus_factor(layout.tensor as usize);
        bus_gb_per_s * 1e9 / (a_token as f64 * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(tensor: u32) -> Layout {
        let dtype = ElementType::Bf16;
        Layout { tensor, pipeline: 1, data_attention: None, batch: 1, drafts: 3, dtype }
    }

    /// Number and bytes of the calls of one collective.
    fn of(model: &str, layout: &Layout, pass: Pass, wanted: Collective) -> Vec<(u32, u64)> {
        let groups = find(model).expect("known").calls(layout, pass).expect("fine");
        let found = groups.iter().filter(|group| group.step.collective == wanted);
        found.map(|group| (group.step.calls, group.step.bytes)).collect()
    }

    #[test]
    fn the_calls_are_those_of_traces() {
        let reduce = Collective::AllReduce;
        // 2 x 61 + 1 of 4 tokens x 7168 x 2 B.
        assert_eq!(of("kimi-k2.5", &layout(8), Pass::Verify, reduce), [(123, 57_344)]);
        assert_eq!(of("kimi-k2.5", &layout(8), Pass::Draft, reduce), [(3, 14_336)]);
        // A trace of decode graphs: 44 in bf16, 43 in fp32.
        let flash = of("deepseek-v4-flash", &layout(4), Pass::Decode, reduce);
        assert_eq!(flash, [(44, 8_192), (43, 16_384)]);
        assert_eq!(of("nemotron-3-super", &layout(4), Pass::Decode, reduce), [(89, 8_192)]);
        assert_eq!(of("kimi-k2.5", &layout(1), Pass::Decode, reduce), []);
    }

    #[test]
    fn experts_take_the_place_of_all_reduces() {
        let exchange = |exchange| Layout {
            data_attention: Some(exchange),
            batch: 1024,
            drafts: 0,
            ..layout(8)
        };
        let gather = exchange(Exchange::Gather);
        assert_eq!(of("deepseek-v3", &gather, Pass::Decode, Collective::AllReduce), []);
        let gathered = of("deepseek-v3", &gather, Pass::Decode, Collective::AllGather);
        assert_eq!(gathered, [(61, 1024 * 7168 * 2)]);
        // 128 tokens a rank to 5.25 ranks: 7,392 B there, 14,336 B back; 58 layers have experts.
        let all =
            of("deepseek-v3", &exchange(Exchange::AllToAll), Pass::Decode, Collective::AllToAll);
        assert_eq!([all[0].0, all[1].0], [58, 58]);
        assert!((all[0].1 as f64 / (128.0 * 5.25 * 7392.0) - 1.0).abs() < 0.01, "{all:?}");
        assert!((all[1].1 as f64 / (128.0 * 5.25 * 14_336.0) - 1.0).abs() < 0.01, "{all:?}");
    }

    #[test]
    fn prefill_bounds_are_those_derived_by_hand() {
        let kimi = find("kimi-k2.5").expect("known");
        for (bus, tokens) in [(22.0, 7_190.0), (40.0, 13_070.0), (2.7, 882.0)] {
            let bound = kimi.prefill_bound(&layout(8), bus);
            assert!((bound / tokens - 1.0).abs() < 0.03, "{bus} GB/s: {bound}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kimi = find("kimi-k2.5").expect("known");
        let told = kimi.check(&layout(3)).expect_err("64 heads").to_string();
        assert_eq!(told, "TP 3: Kimi-K2.5 / K2.6 / K2.7 has 64 attention heads");
        assert!(kimi.check(&Layout { pipeline: 62, ..layout(8) }).is_err());
        assert!(kimi.check(&Layout { batch: 0, ..layout(8) }).is_err());
        let llama = find("llama-70b").expect("known");
        let apart = Layout { data_attention: Some(Exchange::Gather), ..layout(8) };
        assert!(llama.check(&apart).is_err(), "it has no experts");
        assert!(find("kimi-k25").is_err());
    }
}
