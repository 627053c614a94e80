//! How a model is laid out, by the options of `step` and by the edits that are the same as one.

use super::{Options, Way};
use crate::error::{Error, Result};
use crate::sweep::plan::parse_edits;
use crate::topology::edit::Edit;
use crate::workload::ElementType;
use crate::workload::edit::OF_LAYOUT;
use crate::workload::model::{Exchange, Layout, Model};

/// Ranks where nobody says how many.
const RANKS: u32 = 8;

impl Options {
    /// The layout, before it is shared out among replicas, as the options alone have it.
    fn layout(&self, model: &Model) -> Result<Layout> {
        let dtype = self.dtype.as_deref().unwrap_or(ElementType::Bf16.name());
        let Some(dtype) = ElementType::from_name(dtype) else {
            let names = ElementType::ALL.map(ElementType::name).join(", ");
            return Err(Error::request(format!("there is no type `{dtype}`"), names));
        };
        let usual = model.drafts.as_ref().map_or(0, |drafts| drafts.tokens);
        Ok(Layout {
            tensor: self.tp.unwrap_or(RANKS),
            pipeline: self.pp,
            data_attention: self.dp_attention.map(|way| match way {
                Way::Gather => Exchange::Gather,
                Way::AllToAll => Exchange::AllToAll,
            }),
            batch: self.batch.unwrap_or(1),
            drafts: self.drafts.unwrap_or(usual),
            dtype,
        })
    }

    /// That nothing is asked of tokens a second where compute is not known.
    pub(super) fn tokens_can_be_told(&self) -> Result<()> {
        let known = self.compute_ms.is_some() || self.measured_tok_s.is_some();
        let asked =
            [(!self.batches.is_empty(), "--batches"), (!self.accepted.is_empty(), "--accepted")];
        match asked.iter().find(|flag| flag.0 && !known) {
            None => Ok(()),
            Some((_, flag)) => Err(Error::request(
                format!("{flag} is of tokens a second, and what a pass computes is not known"),
                "add --compute-ms or --measured-tok-s",
            )),
        }
    }

    /// The edits that are left when those of the layout are done, and the layout of a replica.
    pub(super) fn laid_out(&self, model: &Model) -> Result<(Vec<Edit>, Layout)> {
        let mut layout = self.layout(model)?;
        let mut left = Vec::new();
        for edit in parse_edits(&self.what_if)? {
            let name = edit.name.as_str();
            let given = match name {
                "batch" => self.batch.is_some(),
                "drafts" => self.drafts.is_some(),
                "dtype" => self.dtype.is_some(),
                "tp" => self.tp.is_some(),
                _ => false,
            };
            if let Some((_, apply)) = OF_LAYOUT.iter().find(|entry| entry.0 == name) {
                let before = layout.clone();
                apply(&mut layout, &edit)?;
                if given && layout != before {
                    let why = format!("--{name} says something else");
                    return Err(edit.refused(why, "leave one out"));
                }
            } else if name == "calls" {
                let help = "--model and --pp say how many layers there are; \
                            `simulate --scenario FILE --what-if calls=N` takes calls as stated";
                return Err(edit.refused("a model makes its calls by its layers", help));
            } else {
                left.push(edit);
            }
        }
        layout.batch = layout.batch.div_ceil(u64::from(self.replicas));
        Ok((left, layout))
    }
}
