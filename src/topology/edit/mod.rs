//! Changes of a machine in words: `link:gpu3=gen4x8`, `move:gpu3=vs2`, `p2p=off`.
//!
//! An [`Edit`] is a sentence of three parts, `NAME:OF=TO`; a [`Kind`] knows one name and changes a
//! topology by it, one file a kind. Edits act one after another on a copy; whether what comes out
//! can be a machine is for [`super::checks`] to say, as for any other topology.

mod bridge;
mod link;
mod node;
mod partition;
mod relocate;
mod root;
mod setting;
mod socket;

use std::fmt;

use super::{Link, LinkKind, NodeId, NodeKind, Topology};
use crate::error::{Error, Result};
use crate::suggestion::did_you_mean;

/// One change, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is changed: the name of a [`Kind`], or of a kind of another layer.
    pub name: String,
    /// Of what; empty when the name says it.
    pub of: String,
    /// To what.
    pub to: String,
}

/// A kind of change of something of type `T`.
pub struct Kind<T> {
    /// The name that edits begin with.
    pub name: &'static str,
    /// How to write it.
    pub form: &'static str,
    /// What it does, a few words.
    pub what: &'static str,
    /// Does it; what was done is told in a few words.
    pub apply: fn(&mut T, &Edit) -> Result<String>,
}

/// All kinds of change of a machine.
pub const KINDS: &[Kind<Topology>] = &[
    link::KIND,
    relocate::KIND,
    node::GPU,
    node::SWITCH,
    partition::KIND,
    node::NIC,
    root::KIND,
    socket::KIND,
    bridge::KIND,
    setting::PEER_TO_PEER,
    setting::ACS,
    setting::IOMMU,
    setting::PAYLOAD,
    setting::READ_REQUEST,
    setting::NUMA,
];

impl Edit {
    /// Reads `NAME:OF=TO` or `NAME=TO`.
    ///
    /// # Errors
    /// When it is not of this form, with an example.
    pub fn parse(text: &str) -> Result<Edit> {
        let wrong = |reason: &str| {
            Err(Error::request(
                format!("`{text}` is no edit: {reason}"),
                "write NAME=VALUE or NAME:OF=VALUE, such as p2p=off or link:gpu0=gen4x8",
            ))
        };
        let Some((left, to)) = text.split_once('=') else {
            return wrong("there is no `=`");
        };
        let (name, of) = left.split_once(':').unwrap_or((left, ""));
        let [name, of, to] = [name, of, to].map(|part| part.trim().to_owned());
        match (name.is_empty(), left.contains(':') && of.is_empty(), to.is_empty()) {
            (true, ..) => wrong("nothing stands before the `=`"),
            (_, true, _) => wrong("nothing stands between `:` and `=`"),
            (.., true) => wrong("nothing stands after the `=`"),
            _ => Ok(Edit { name, of, to }),
        }
    }

    /// An error that quotes the edit.
    pub fn refused(&self, reason: impl fmt::Display, help: impl Into<String>) -> Error {
        Error::request(format!("`{self}`: {reason}"), help)
    }

    /// `on` or `off`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn switch(&self) -> Result<bool> {
        match self.to.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(self.refused(format!("`{other}` is neither on nor off"), "")),
        }
    }

    /// A whole number within limits.
    ///
    /// # Errors
    /// When it is none, or outside.
    pub fn number(&self, least: u64, most: u64) -> Result<u64> {
        let number = self.to.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| {
            let help = format!("a whole number, such as {}={least}", self.name);
            self.refused(format!("`{}` is no number from {least} to {most}", self.to), help)
        })
    }

    /// That nothing stands after the name.
    ///
    /// # Errors
    /// When something does.
    pub fn of_nothing(&self) -> Result<()> {
        if self.of.is_empty() {
            return Ok(());
        }
        let Edit { name, to, .. } = self;
        Err(self.refused("it is of the whole", format!("write {name}={to}")))
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of.is_empty() {
            true => write!(out, "{}={}", self.name, self.to),
            false => write!(out, "{}:{}={}", self.name, self.of, self.to),
        }
    }
}

/// Edits whose value of one part and of the whole are the same thing: `calls=5` sets what
/// `calls:decode=7` sets.
const PART_OF_WHOLE: [&str; 1] = ["calls"];

/// Two edits of one thing that differ: no order of them can be meant.
///
/// # Errors
/// The first two that contradict each other.
pub fn agree(edits: &[Edit]) -> Result<()> {
    for (index, edit) in edits.iter().enumerate() {
        let same = |other: &&Edit| {
            let whole = edit.of.is_empty() || other.of.is_empty();
            let part = whole && PART_OF_WHOLE.contains(&edit.name.as_str());
            other.name == edit.name && (other.of == edit.of || part)
        };
        if let Some(other) = edits[..index].iter().find(same) {
            return Err(Error::request(
                format!("`{other}` and `{edit}` are two edits of one thing"),
                "leave one out",
            ));
        }
    }
    Ok(())
}

/// The node of this name.
fn node(topology: &Topology, edit: &Edit, name: &str) -> Result<NodeId> {
    topology.find(name).ok_or_else(|| {
        let names: Vec<&str> = topology.nodes.iter().map(|node| node.id.as_str()).collect();
        let guess = did_you_mean(name, names.iter().copied());
        let space = if guess.is_empty() { "" } else { " " };
        let help =
            format!("{guess}{space}`simulate topo show {} --json` lists them", topology.name);
        edit.refused(format!("there is no node `{name}`"), help)
    })
}

/// That no node has this name yet.
fn unused(topology: &Topology, edit: &Edit, name: &str) -> Result<()> {
    match topology.find(name) {
        Some(_) => Err(edit.refused(format!("there is a node `{name}` already"), "another name")),
        None => Ok(()),
    }
}

/// Two nodes, `gpu0-gpu1`; names may hold `-` themselves.
fn pair(topology: &Topology, text: &str) -> Option<(NodeId, NodeId)> {
    text.match_indices('-')
        .find_map(|(at, _)| Some((topology.find(&text[..at])?, topology.find(&text[at + 1..])?)))
}

/// The link by which a device or switch hangs on what is above it.
fn uplink(topology: &Topology, id: NodeId) -> Option<usize> {
    let above = *topology.ancestors(id).get(1)?;
    topology.links.iter().position(|link| {
        let ends = [(link.a, link.b), (link.b, link.a)];
        matches!(link.kind, LinkKind::Pcie(_)) && ends.contains(&(id, above))
    })
}

/// Takes a node and its links away; those after it move up.
fn remove(topology: &mut Topology, id: NodeId) {
    topology.nodes.remove(id.index());
    topology.links.retain(|link| link.a != id && link.b != id);
    let moved = |end: NodeId| NodeId(end.0 - u32::from(end > id));
    for link in &mut topology.links {
        (link.a, link.b) = (moved(link.a), moved(link.b));
    }
}

/// Hangs a node below another by PCIe.
fn hang(topology: &mut Topology, below: NodeId, above: NodeId, kind: LinkKind) {
    topology.links.push(Link { a: below, b: above, kind });
}

/// Whether PCIe devices can hang below it.
fn holds_devices(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::PcieSwitch(_) | NodeKind::HostBridge(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_written_as_it_is_read() {
        for text in ["p2p=off", "link:gpu0=gen4x8", "gpu:gpu8=rtx-pro-6000@vs0,gen5x16"] {
            assert_eq!(Edit::parse(text).expect("an edit").to_string(), text);
        }
        for text in ["p2p", "=off", "link:=x8", "p2p=", ""] {
            assert!(Edit::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn contradictions_are_told() {
        let edits = |texts: &[&str]| -> Vec<Edit> {
            texts.iter().map(|text| Edit::parse(text).expect("an edit")).collect()
        };
        assert!(agree(&edits(&["p2p=off", "acs=on", "link:gpu0=x8", "link:gpu1=x8"])).is_ok());
        let error = agree(&edits(&["p2p=off", "acs=on", "p2p=on"])).expect_err("contradiction");
        assert_eq!(error.to_string(), "`p2p=off` and `p2p=on` are two edits of one thing");
    }
}
