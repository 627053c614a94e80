//! Expert parallelism: the two exchanges around a mixture-of-experts layer, as DeepEP does them.
//!
//! Dispatch stores each token at every rank that holds one of its experts, once a rank; combine
//! stores what those ranks made of it back at the token's rank, which adds. Both are all-to-alls of
//! uneven pieces, each behind a fence and a flag. No proof stands behind these: what arrives depends
//! on the routing, so bytes by pair are tested instead.

use std::collections::BTreeSet;

use super::Request;
use super::one_shot_pull::THREADS;
use crate::error::{Error, Result};
use crate::schedule::build::{Builder, trips};
use crate::schedule::{Action, BufferId, Op, Role, Schedule};

/// DeepEP's default for its normal kernels.
const BLOCKS_MAX: u32 = 20;
/// Most tokens of a rank that a schedule is built for.
const TOKENS_MAX: u32 = 4096;

/// Which experts a token goes to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Experts of a token lie evenly apart: as many ranks as can be.
    Spread,
    /// Experts are drawn by a hash of token and seed, as an even router would.
    Hashed {
        /// Of the hash.
        seed: u64,
    },
}

/// A mixture-of-experts layer and its load.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Tokens that each rank brings.
    pub tokens: u32,
    /// Experts of the layer, in equal runs over the ranks.
    pub experts: u32,
    /// Experts that a token uses.
    pub used: u32,
    /// Bytes of a token on its way to an expert.
    pub dispatch_bytes: u32,
    /// Bytes of a token on its way back.
    pub combine_bytes: u32,
    /// Which experts.
    pub pattern: Pattern,
}

impl Layer {
    /// A layer of `experts` experts, `used` a token, for tokens of `hidden` values: on the way there one
    /// byte each and a scale of four bytes for each 128 of them (fp8), or two bytes (bf16); two bytes on
    /// the way back.
    pub fn of(tokens: u32, experts: u32, used: u32, hidden: u32, fp8: bool) -> Layer {
        Layer {
            tokens,
            experts,
            used,
            dispatch_bytes: if fp8 { hidden + hidden.div_ceil(128) * 4 } else { 2 * hidden },
            combine_bytes: 2 * hidden,
            pattern: Pattern::Hashed { seed: 0 },
        }
    }

    /// DeepSeek-V3's layer, 256 experts, 8 used, 7,168 values, with fp8 on the way there.
    pub fn deepseek_v3(tokens: u32) -> Layer {
        Layer::of(tokens, 256, 8, 7168, true)
    }

    /// Ranks that hold an expert of a rank's token, of `ranks` in all.
    pub fn ranks_of(&self, rank: u32, token: u32, ranks: u32) -> BTreeSet<u32> {
        let holder = |expert: u64| (expert * u64::from(ranks) / u64::from(self.experts)) as u32;
        let number = u64::from(rank) * u64::from(self.tokens) + u64::from(token);
        let experts = u64::from(self.experts);
        let used = u64::from(self.used.min(self.experts));
        match self.pattern {
            Pattern::Spread => {
                (0..used).map(|index| holder((number + index * experts / used) % experts)).collect()
            }
            Pattern::Hashed { seed } => {
                // Without replacement: draws of an expert twice are drawn again.
                let mut drawn = BTreeSet::new();
                let mut state = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                while (drawn.len() as u64) < used {
                    state = split_mix(state);
                    drawn.insert(state % experts);
                }
                drawn.into_iter().map(holder).collect()
            }
        }
    }

    /// Tokens that each rank sends to each: `[from][to]`, tokens that stay included.
    pub fn tokens_between(&self, ranks: u32) -> Vec<Vec<u32>> {
        let row = |from: u32| {
            let mut row = vec![0; ranks as usize];
            for token in 0..self.tokens {
                for to in self.ranks_of(from, token, ranks) {
                    row[to as usize] += 1;
                }
            }
            row
        };
        (0..ranks).map(row).collect()
    }

    /// Mean number of different ranks that hold a token's experts.
    pub fn ranks_per_token(&self, ranks: u32) -> f64 {
        let sent: u32 = self.tokens_between(ranks).iter().flatten().sum();
        f64::from(sent) / f64::from(self.tokens * ranks)
    }

    /// What the alternative moves: an all-gather of all tokens, then a reduce-scatter of all results;
    /// bytes of both calls as nccl-tests counts them.
    pub fn gathered_bytes(&self, ranks: u32) -> [u64; 2] {
        let tokens = u64::from(self.tokens) * u64::from(ranks);
        [self.dispatch_bytes, self.combine_bytes].map(|bytes| tokens * u64::from(bytes))
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Which way tokens go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the experts.
    Dispatch,
    /// Back, to be added.
    Combine,
}

/// One exchange of a layer. The request's bytes are not looked at: the layer says what moves.
///
/// # Errors
/// Layers without tokens or experts, with more experts used than there are, or with token sizes that
/// do not split into elements of 16 bytes.
pub fn exchange(request: &Request<'_>, layer: &Layer, way: Way) -> Result<Schedule> {
    check(layer)?;
    let n = request.ranks();
    let there = layer.tokens_between(n);
    let (tokens, each) = match way {
        Way::Dispatch => (there.clone(), layer.dispatch_bytes),
        Way::Combine => (turned(&there), layer.combine_bytes),
    };
    let largest = tokens.iter().flatten().copied().max().unwrap_or(0) * each;
    let by_size = largest.div_ceil(THREADS * 16).clamp(1, BLOCKS_MAX);
    let blocks = request.blocks.unwrap_or(by_size) as usize;
    let mut builder = Builder::new("experts", &request.gpus, blocks, THREADS);
    let room = |lists: &[Vec<u32>], rank: usize| u64::from(lists[rank].iter().sum::<u32>() * each);
    let arriving = turned(&tokens);
    let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
    for rank in 0..n {
        let gpu = request.gpus[rank as usize];
        outgoing.push(builder.buffer(rank, gpu, Role::Scratch, room(&tokens, rank as usize)));
        let home = request.home(rank);
        incoming.push(builder.buffer(rank, home, Role::Scratch, room(&arriving, rank as usize)));
    }
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let exchange = Exchange { n, blocks, each, tokens: &tokens, arriving: &arriving };
    exchange.send(&mut builder, &outgoing, &incoming);
    builder.barrier(true, |rank| request.flag_home(rank));
    if way == Way::Combine {
        let results = builder.buffers(Role::Scratch, u64::from(layer.tokens * each), |rank| {
            request.gpus[rank as usize]
        });
        exchange.add(&mut builder, layer.tokens, &incoming, &results);
    }
    builder.push_all(Op::Delay(request.kernel.end));
    let total = tokens.iter().flatten().map(|&count| u64::from(count * each)).sum::<u64>();
    Ok(builder.finish(total / u64::from(n), None))
}

fn check(layer: &Layer) -> Result<()> {
    let sound =
        (1..=TOKENS_MAX).contains(&layer.tokens) && (1..=layer.experts).contains(&layer.used);
    if !sound {
        return Err(Error::request(
            format!(
                "{} tokens a rank and {} of {} experts are no layer that can be simulated",
                layer.tokens, layer.used, layer.experts
            ),
            format!("1 to {TOKENS_MAX} tokens, and at least one expert, no more than there are"),
        ));
    }
    for bytes in [layer.dispatch_bytes, layer.combine_bytes] {
        if bytes == 0 || !bytes.is_multiple_of(16) {
            return Err(Error::request(
                format!("a token of {bytes} bytes does not split into elements of 16 bytes"),
                "round up to a multiple of 16",
            ));
        }
    }
    Ok(())
}

/// Rows for columns.
fn turned(lists: &[Vec<u32>]) -> Vec<Vec<u32>> {
    (0..lists.len()).map(|to| lists.iter().map(|row| row[to]).collect()).collect()
}

struct Exchange<'a> {
    n: u32,
    blocks: usize,
    each: u32,
    /// `[from][to]`.
    tokens: &'a [Vec<u32>],
    /// `[to][from]`.
    arriving: &'a [Vec<u32>],
}

impl Exchange<'_> {
    /// Every rank stores its tokens at each rank, from the next rank on; its own stay where they are.
    fn send(&self, builder: &mut Builder, outgoing: &[BufferId], incoming: &[BufferId]) {
        for rank in 0..self.n {
            for block in 0..self.blocks {
                for step in 1..self.n {
                    let peer = (rank + step) % self.n;
                    let before =
                        |row: &[u32], end: u32| row[..end as usize].iter().sum::<u32>() * self.each;
                    let from_offset = before(&self.tokens[rank as usize], peer);
                    let to_offset = before(&self.arriving[peer as usize], rank);
                    let length = self.tokens[rank as usize][peer as usize] * self.each;
                    for part in trips(0, length, block, self.blocks, THREADS) {
                        let op = Op::Move {
                            from: outgoing[rank as usize],
                            from_offset: from_offset + part.offset,
                            to: incoming[peer as usize],
                            to_offset: to_offset + part.offset,
                            bytes: part.bytes,
                        };
                        builder.push(rank, block, op);
                    }
                }
            }
        }
    }

    /// Every rank adds what came back of each of its tokens.
    fn add(&self, builder: &mut Builder, tokens: u32, incoming: &[BufferId], results: &[BufferId]) {
        for rank in 0..self.n {
            let copies: u32 = self.arriving[rank as usize].iter().sum();
            for block in 0..self.blocks {
                let loads = trips(0, copies * self.each, block, self.blocks, THREADS);
                for part in loads {
                    builder.load(rank, block, incoming[rank as usize], part, Action::Discard);
                }
                builder.push(rank, block, Op::WaitLoads);
                for part in trips(0, tokens * self.each, block, self.blocks, THREADS) {
                    let (buffer, offset, bytes) = (results[rank as usize], part.offset, part.bytes);
                    let data = offset;
                    builder.push(rank, block, Op::Write { buffer, offset, bytes, data });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_reach_about_as_many_ranks_as_an_even_router_gives() {
        // 8 of 256 experts without replacement over 8 ranks: 8 (1 - C(224, 8) / C(256, 8)) = 5.31;
        // over 16: 16 (1 - C(240, 8) / C(256, 8)) = 6.51; over 32: 7.22.
        for (ranks, wanted) in [(8, 5.31), (16, 6.51), (32, 7.22)] {
            let found = Layer::deepseek_v3(512).ranks_per_token(ranks);
            assert!((found - wanted).abs() < 0.06, "{ranks} ranks: {found}");
        }
        let spread = Layer { pattern: Pattern::Spread, ..Layer::deepseek_v3(16) };
        assert_eq!(spread.ranks_per_token(8), 8.0);
    }

    #[test]
    fn a_token_takes_7392_bytes_there_and_14336_back() {
        let layer = Layer::deepseek_v3(128);
        // 7,168 + 56 x 4; 2 x 7,168. All tokens of 8 ranks: 1,024 of each.
        assert_eq!((layer.dispatch_bytes, layer.combine_bytes), (7392, 14_336));
        assert_eq!(layer.gathered_bytes(8), [7_569_408, 14_680_064]);
    }
}
