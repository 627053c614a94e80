//! A plan that somebody wrote: what each thread block of each GPU sends, receives, adds and copies,
//! in chunks of the data. NCCL's primitives run it, as MSCCL's runtime does, or stores into the memory
//! of peers with semaphores, as MSCCL++'s executor does.

mod one_sided;
mod one_sided_build;
mod primitives;
mod primitives_build;

use super::kernel::Implementation;
use super::{BYTES_MAX, Protocol, Request};
use crate::error::{Error, Result, Span};
use crate::schedule::{BufferId, Collective, Role, Schedule};

pub use one_sided::{Move, OneSidedBlock, OneSidedGpu, OneSidedKind, OneSidedStep, Piece};
pub use primitives::{PlanBlock, PlanGpu, PlanStep, Primitives, StepKind};

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it computes; nothing where the file tells messages only.
    pub collective: Option<Collective>,
    /// How data lie on the wire.
    pub protocol: Protocol,
    /// Chunks of the data that the sizes of a call count.
    pub chunks: u32,
    /// Results take the place of the inputs.
    pub in_place: bool,
    /// Threads of a block; nothing: as many as the protocol has.
    pub threads: Option<u32>,
    /// Bytes of a call, where the file fixes them.
    pub bytes: Option<u64>,
    /// What its GPUs do.
    pub body: Body,
}

/// What the GPUs of a plan do, by rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// NCCL's primitives over connections.
    Primitives(Primitives),
    /// Stores and loads of peers' memory, ordered by semaphores.
    OneSided(Vec<OneSidedGpu>),
}

/// Memory of a GPU as plans name it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Space {
    /// The call's input.
    Input,
    /// The call's output.
    Output,
    /// In between.
    Scratch,
}

/// All that is wrong with a plan, each with its place.
type Faults = Vec<(String, Span)>;

impl Plan {
    /// Ranks.
    pub fn ranks(&self) -> usize {
        match &self.body {
            Body::Primitives(primitives) => primitives.gpus.len(),
            Body::OneSided(gpus) => gpus.len(),
        }
    }

    /// Whose kernel runs it.
    pub fn implementation(&self) -> Implementation {
        match self.body {
            Body::Primitives(_) => Implementation::Nccl,
            Body::OneSided(_) => Implementation::Mscclpp,
        }
    }

    /// What people call what it computes.
    pub fn title(&self) -> &'static str {
        self.collective.map_or("messages", Collective::title)
    }

    /// Bytes, at least `bytes`, that split into the plan's chunks; those of the file where it fixes
    /// them.
    pub fn round_up(&self, bytes: u64) -> u64 {
        let split = || bytes.max(1).next_multiple_of(16 * u64::from(self.chunks) * self.pieces());
        self.bytes.unwrap_or_else(split)
    }

    /// Pieces that both the ranks and the chunks must split the data into evenly.
    fn pieces(&self) -> u64 {
        let n = self.ranks() as u64;
        let in_pieces = self.collective.is_some_and(Collective::in_pieces);
        let split = in_pieces && !u64::from(self.chunks).is_multiple_of(n);
        if split { n } else { 1 }
    }

    /// All that is wrong with it, each with its place.
    pub fn faults(&self) -> Faults {
        match &self.body {
            Body::Primitives(primitives) => primitives.faults(self),
            Body::OneSided(gpus) => one_sided::faults(self, gpus),
        }
    }

    /// Chunks of a space of a GPU with so many chunks of scratch.
    fn room(&self, scratch: u32, space: Space) -> u32 {
        let piece = self.chunks / (self.ranks() as u32).max(1);
        match (space, self.collective) {
            (Space::Scratch, _) => scratch,
            (Space::Input, Some(Collective::AllGather)) => piece,
            (Space::Output, Some(Collective::ReduceScatter)) => piece,
            _ => self.chunks,
        }
    }

    /// What is wrong with a range of chunks.
    fn outside(&self, scratch: u32, space: Space, offset: u32, count: u32) -> Option<String> {
        let room = self.room(scratch, space);
        let end = offset.checked_add(count);
        end.is_none_or(|end| end > room)
            .then(|| format!("chunks {offset} and {count} on are outside the {room} of {space:?}"))
    }

    /// The buffers of input, output and scratch of a rank, with the first byte of each; `add` makes
    /// one.
    fn spaces(
        &self,
        (rank, scratch): (u32, u32),
        bytes: u64,
        mut add: impl FnMut(Role, u64) -> BufferId,
    ) -> [(BufferId, u32); 3] {
        let chunk = bytes / u64::from(self.chunks);
        let piece = (bytes / self.ranks() as u64) as u32;
        let (input, output) = match self.in_place {
            true => {
                let both = add(Role::InPlace, bytes);
                (both, both)
            }
            false => (add(Role::Input, bytes), add(Role::Output, bytes)),
        };
        let scratch = add(Role::Scratch, (chunk * u64::from(scratch)).max(16));
        // A rank's own piece lies where it belongs among all pieces.
        let own = |of| if self.collective == Some(of) { rank * piece } else { 0 };
        let input = (input, own(Collective::AllGather));
        [input, (output, own(Collective::ReduceScatter)), (scratch, 0)]
    }
}

/// The schedule of a plan.
///
/// # Errors
/// [`Error::Request`] when the ranks are not as many as the plan's, when the bytes do not split into
/// its chunks, or when something is wrong with it.
pub fn build(plan: &Plan, request: &Request<'_>) -> Result<Schedule> {
    let ranks = plan.ranks();
    if request.gpus.len() != ranks {
        return Err(Error::request(
            format!("{} is for {ranks} ranks, not {}", plan.name, request.gpus.len()),
            "choose as many GPUs with --gpus",
        ));
    }
    if request.bytes > BYTES_MAX {
        return Err(Error::request(
            format!("{} bytes are more than one schedule moves", request.bytes),
            format!("up to {BYTES_MAX}"),
        ));
    }
    if request.bytes != plan.round_up(request.bytes) {
        return Err(Error::request(
            format!("{} bytes do not split into {} chunks", request.bytes, plan.chunks),
            format!("round up to {}", plan.round_up(request.bytes)),
        ));
    }
    if let Some((fault, _)) = plan.faults().into_iter().next() {
        return Err(Error::request(format!("{}: {fault}", plan.name), "mend the plan"));
    }
    Ok(match &plan.body {
        Body::Primitives(primitives) => primitives_build::build(plan, primitives, request),
        Body::OneSided(gpus) => one_sided_build::build(plan, gpus, request),
    })
}
