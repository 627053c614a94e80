//! The JSON form of a topology: reading with all faults collected, and writing.
//!
//! Enums are externally tagged and nothing is flattened, because only then serde keeps the place of
//! an error.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json_error::{other_version, read_own};
use super::kinds::TOPOLOGY;
use super::places::Places;
use crate::error::{Error, Problem, Result};
use crate::suggestion::did_you_mean;
use crate::topology::{
    Assumption, Link, LinkKind, Node, NodeId, NodeKind, Regime, Settings, Topology, checks,
};

/// The form's version; a later incompatible one counts up.
const SCHEMA_VERSION: u32 = 1;

/// A machine: what is plugged into what.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Topology")]
struct TopologyForm {
    /// Where editors find the schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// Version of this form: 1.
    schema_version: u32,
    /// Short name, the file's stem.
    name: String,
    /// One line for a person.
    #[serde(default)]
    title: String,
    /// Where the description comes from.
    #[serde(default)]
    sources: Vec<String>,
    /// What the sources do not say and was assumed, each with its effect on the answer.
    #[serde(default)]
    assumptions: Vec<Assumption>,
    /// Switches of the whole machine.
    #[serde(default)]
    settings: Settings,
    /// All nodes by name; GPUs are numbered in this order.
    nodes: NodesForm,
    /// All cables, traces and bonded links.
    #[serde(default)]
    links: Vec<LinkForm>,
    /// Behaviour that no width explains, declared with its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    regimes: Vec<Regime>,
}

/// A link, its ends by name.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Link")]
struct LinkForm {
    /// One end; for PCIe the end nearer to the endpoint, by custom.
    a: String,
    /// The other end.
    b: String,
    /// What runs over it.
    kind: LinkKind,
}

/// An object whose order and repeated keys are kept.
#[derive(JsonSchema)]
#[schemars(rename = "Nodes")]
struct NodesForm(#[schemars(with = "BTreeMap<String, NodeKind>")] Vec<(String, NodeKind)>);

impl<'de> Deserialize<'de> for NodesForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = NodesForm;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of nodes by name")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<NodesForm, A::Error> {
                let mut nodes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    nodes.push(entry);
                }
                Ok(NodesForm(nodes))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for NodesForm {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, kind)| (name, kind)))
    }
}

/// Reads a topology and checks all but what needs the calibration. `file` names the text in errors.
///
/// # Errors
/// [`Error::Input`] with all that is wrong, in the order of the text.
pub fn parse(file: &str, text: &str) -> Result<Topology> {
    parse_with(file, text, &|_| Vec::new())
}

/// As [`parse`], with more checks of the caller.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(
    file: &str,
    text: &str,
    more: &dyn Fn(&Topology) -> Vec<Problem>,
) -> Result<Topology> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let form: TopologyForm = read_own(file, text, TOPOLOGY)?;
    let mut problems = Vec::from_iter(other_version(form.schema_version, SCHEMA_VERSION));
    let places = Places::new(text);
    problems.extend(repeated_names(&form.nodes.0, &places));
    let (topology, link_numbers, dangling) = resolve(form);
    // A missing end would make its neighbours look unreachable; those are told once it is mended.
    let found = if dangling.is_empty() && problems.is_empty() {
        let mut found = checks::check(&topology);
        found.extend(more(&topology));
        found
    } else {
        checks::check_parts(&topology)
    };
    problems.extend(dangling);
    problems.extend(found.into_iter().map(|mut problem| {
        problem.path = renumber(&problem.path, &link_numbers);
        problem
    }));
    if problems.is_empty() {
        return Ok(topology);
    }
    for problem in &mut problems {
        if problem.span.is_none() {
            problem.span = place(&places, &problem.path);
        }
    }
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    Err(failed(problems))
}

/// Problems of a node as a whole are shown at its name.
fn place(places: &Places<'_>, path: &str) -> Option<crate::error::Span> {
    let whole_node = path.starts_with("nodes.") && !path["nodes.".len()..].contains('.');
    if whole_node { places.key(path) } else { places.value(path) }
}

fn repeated_names(nodes: &[(String, NodeKind)], places: &Places<'_>) -> Vec<Problem> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, _) in nodes {
        let count = seen.entry(name).or_insert(0);
        if *count > 0 {
            let message = format!("node `{name}` is defined twice");
            let mut problem =
                Problem::new(message, format!("nodes.{name}")).help("give each node its own name");
            problem.span = places.repeated_key("nodes", name, *count);
            problems.push(problem);
        }
        *count += 1;
    }
    problems
}

/// Suggestions are costly in a file of a million wrong names; the first few are all anyone reads.
const SUGGESTIONS: usize = 20;

/// Names -> numbers. Links with a dangling end are left out; the numbers of those kept are told.
fn resolve(form: TopologyForm) -> (Topology, Vec<usize>, Vec<Problem>) {
    let nodes: Vec<Node> = form.nodes.0.into_iter().map(|(id, kind)| Node { id, kind }).collect();
    let by_name: BTreeMap<&str, NodeId> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| (node.id.as_str(), NodeId(index as u32)))
        .collect();
    let (mut links, mut numbers, mut dangling) = (Vec::new(), Vec::new(), Vec::new());
    for (number, link) in form.links.into_iter().enumerate() {
        let mut end = |name: &str, key: &str| {
            let found = by_name.get(name).copied();
            if found.is_none() {
                let message = format!("link {number} names node `{name}`, which is not in `nodes`");
                let help = if dangling.len() < SUGGESTIONS {
                    did_you_mean(name, by_name.keys().copied())
                } else {
                    String::new()
                };
                dangling.push(Problem::new(message, format!("links[{number}].{key}")).help(help));
            }
            found
        };
        if let (Some(a), Some(b)) = (end(&link.a, "a"), end(&link.b, "b")) {
            let kind = link.kind;
            links.push(Link { a, b, kind });
            numbers.push(number);
        }
    }
    let topology = Topology {
        name: form.name,
        title: form.title,
        sources: form.sources,
        assumptions: form.assumptions,
        settings: form.settings,
        nodes,
        links,
        regimes: form.regimes,
    };
    (topology, numbers, dangling)
}

/// `links[i]` of the topology -> `links[j]` of the file.
fn renumber(path: &str, link_numbers: &[usize]) -> String {
    let renumbered = path.strip_prefix("links[").and_then(|rest| {
        let (index, rest) = rest.split_once(']')?;
        let number = link_numbers.get(index.parse::<usize>().ok()?)?;
        Some(format!("links[{number}]{rest}"))
    });
    renumbered.unwrap_or_else(|| path.to_owned())
}

/// Writes a topology in the form that [`parse`] reads: a node or a link a line.
///
/// # Errors
/// A value that JSON cannot hold (a rate that is not finite), told as a request.
pub fn write(topology: &Topology) -> Result<String> {
    let form = TopologyForm {
        schema: Some("topology.schema.json".to_owned()),
        schema_version: SCHEMA_VERSION,
        name: topology.name.clone(),
        title: topology.title.clone(),
        sources: topology.sources.clone(),
        assumptions: topology.assumptions.clone(),
        settings: topology.settings.clone(),
        nodes: NodesForm(
            topology.nodes.iter().map(|node| (node.id.clone(), node.kind.clone())).collect(),
        ),
        links: topology
            .links
            .iter()
            .map(|link| LinkForm {
                a: topology.id(link.a).to_owned(),
                b: topology.id(link.b).to_owned(),
                kind: link.kind,
            })
            .collect(),
        regimes: topology.regimes.clone(),
    };
    super::layout::to_json(&form, 2).map_err(|error| {
        Error::request(format!("cannot write topology {}: {error}", topology.name), "")
    })
}

/// The JSON Schema of the form, as text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(TopologyForm);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
