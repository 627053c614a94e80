//! Memory of a GPU: what each implementation's buffers take, and a budget of what is left for the KV
//! cache. It is held against reported sizes of the KV cache: does a kernel explain what was lost, or
//! the share of memory that the engine was given?

pub mod buffers;

use serde::Serialize;

pub use buffers::{Allocation, Buffers, Facts, Shape, Share};

/// Bytes of a GiB.
pub const GIB: f64 = (1_u64 << 30) as f64;

/// Where the memory of a GPU goes, GiB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// What the share is of.
    pub rule: Share,
    /// The share.
    pub fraction: f64,
    /// As CUDA reports it.
    pub total: f64,
    /// CUDA context and libraries.
    pub context: f64,
    /// Buffers of all implementations.
    pub buffers: f64,
    /// Weights.
    pub weights: f64,
    /// CUDA graphs.
    pub graphs: f64,
    /// Activations.
    pub activations: f64,
}

impl Budget {
    /// Free before the model is loaded.
    pub fn free(&self) -> f64 {
        self.total - self.context - self.buffers
    }

    /// What is left for the KV cache; below zero when the model does not fit.
    pub fn kv_cache(&self) -> f64 {
        self.fraction * self.whole() - self.before_kv()
    }

    /// Outside the share, after graphs (and activations where they live there).
    pub fn spare(&self) -> f64 {
        let rest = (1.0 - self.fraction) * self.whole() - self.graphs;
        match self.rule {
            Share::ShareOfFree => rest - self.activations,
            Share::ShareOfTotal => rest,
        }
    }

    /// The share that leaves a KV cache of this size.
    pub fn fraction_for(&self, kv_cache: f64) -> f64 {
        (kv_cache + self.before_kv()) / self.whole()
    }

    /// The weights that leave a KV cache of this size at the budget's share.
    pub fn weights_for(&self, kv_cache: f64) -> f64 {
        self.weights + self.kv_cache() - kv_cache
    }

    /// KV cache lost to each GiB of buffers.
    pub fn lost_to_buffers(&self) -> f64 {
        match self.rule {
            Share::ShareOfFree => self.fraction,
            Share::ShareOfTotal => 1.0,
        }
    }

    fn whole(&self) -> f64 {
        match self.rule {
            Share::ShareOfFree => self.free(),
            Share::ShareOfTotal => self.total,
        }
    }

    fn before_kv(&self) -> f64 {
        match self.rule {
            Share::ShareOfFree => self.weights,
            Share::ShareOfTotal => self.context + self.buffers + self.weights + self.activations,
        }
    }
}

/// A KV cache that shrank, and what explains it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// KV cache before and after, GiB.
    pub from: f64,
    /// After.
    pub to: f64,
    /// Lost to the buffers of the implementations beside NCCL, GiB.
    pub by_buffers: f64,
    /// The share of memory that leaves the first, and the second.
    pub fractions: [f64; 2],
}

impl Loss {
    /// Of a budget with the buffers of the experiment in it, `extra` GiB of them beside NCCL's.
    pub fn of(budget: &Budget, extra: f64, from: f64, to: f64) -> Loss {
        let without = Budget { buffers: budget.buffers - extra, ..budget.clone() };
        Loss {
            from,
            to,
            by_buffers: extra * budget.lost_to_buffers(),
            fractions: [without.fraction_for(from), budget.fraction_for(to)],
        }
    }

    /// The part of the loss that the buffers explain.
    pub fn share_of_buffers(&self) -> f64 {
        self.by_buffers / (self.from - self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(rule: Share) -> Budget {
        Budget {
            rule,
            fraction: 0.8,
            total: 100.0,
            context: 1.0,
            buffers: 4.0,
            weights: 60.0,
            graphs: 2.0,
            activations: 3.0,
        }
    }

    #[test]
    fn what_is_left_is_for_the_kv_cache() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let free = budget(Share::ShareOfFree);
        // 0.8 x 95 - 60; 0.2 x 95 - 2 - 3.
        near(free.kv_cache(), 16.0);
        near(free.spare(), 14.0);
        let total = budget(Share::ShareOfTotal);
        // 80 - 1 - 4 - 60 - 3; 20 - 2.
        near(total.kv_cache(), 12.0);
        near(total.spare(), 18.0);
        for one in [&free, &total] {
            near(one.fraction_for(one.kv_cache()), 0.8);
        }
        near(free.weights_for(10.0), 66.0);
        // 2 of the 4 GiB are the experiment's: 1.6 GiB of KV cache, and the rest is another share:
        // (20 + 60) / 97 before, (10 + 60) / 95 after.
        let loss = Loss::of(&free, 2.0, 20.0, 10.0);
        near(loss.by_buffers, 1.6);
        near(loss.share_of_buffers(), 0.16);
        near(loss.fractions[0], 80.0 / 97.0);
        near(loss.fractions[1], 70.0 / 95.0);
        near(Loss::of(&total, 2.0, 20.0, 10.0).by_buffers, 2.0);
    }
}
