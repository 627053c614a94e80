//! Conditions of the rules: whether they hold, and in words what is the case when they do not.

use serde::Deserialize;

use super::facts::Facts;
use super::rules::Engine;
use super::settings::Settings;
use crate::selection::gpu::Capability;
use crate::units::format_thousands;

/// A condition on the machine, the call or what the user set.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Needs {
    /// So many GPUs, one of these numbers.
    Ranks(Vec<u32>),
    /// At most so many GPUs.
    RanksUpTo(u32),
    /// More GPUs than this have NVLink between all pairs.
    AllNvlinkAbove(u32),
    /// Every GPU has NVLink to two others, or the two GPUs to each other: a ring may run on NVLink.
    NvlinkRing,
    /// An NVSwitch that multicasts and reduces.
    Multicast,
    /// GPUs may address each other.
    PeerAccess,
    /// An AMD GPU; no machine here has one.
    Rocm,
    /// Bytes a multiple of this.
    MultipleOf(u64),
    /// This compute capability or a later one.
    CapabilityAtLeast(Capability),
    /// One of these.
    Capabilities(Vec<Capability>),
    /// One whose major number is one of these.
    CapabilityMajors(Vec<u32>),
    /// Fewer bytes than this.
    BytesBelow(u64),
    /// At most these bytes.
    BytesUpTo(u64),
    /// At most these bytes of all ranks together.
    BytesTimesRanksUpTo(u64),
    /// At least these bytes for each rank.
    BytesAtLeastARank(u64),
    /// By number of ranks, at least these bytes.
    BytesAtLeastByRanks(Vec<(u32, u64)>),
    /// By number of ranks, at most the first or at least the second.
    BytesOutside(Vec<(u32, u64, u64)>),
    /// A limit by compute capability and number of ranks.
    SizeTable(SizeTable),
    /// A switch is on, or a choice was made.
    SettingOn(String),
    /// A switch is off.
    SettingOff(String),
    /// A choice is one of these words.
    SettingChoice(String, Vec<String>),
    /// Elements of one of these types.
    Dtypes(Vec<String>),
    /// None of these candidates takes the call.
    OtherRefused(Vec<String>),
}

/// Limits of bytes; the first row that fits holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeTable {
    rows: Vec<SizeRow>,
    /// A call of exactly the limit is taken.
    inclusive: bool,
    /// Where no row fits; none is no limit: other rules tell which GPUs and ranks there are.
    #[serde(default)]
    otherwise: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeRow {
    /// Of the GPU; none is any.
    #[serde(default)]
    capability: Option<Capability>,
    /// Number of ranks; none is any.
    #[serde(default)]
    ranks: Option<u32>,
    bytes: u64,
}

/// What conditions are held against.
pub(super) struct Situation<'a> {
    pub(super) engine: &'a Engine,
    pub(super) facts: &'a Facts,
    pub(super) settings: &'a Settings,
    pub(super) bytes: u64,
    pub(super) dtype: &'a str,
    /// Whether another candidate, by its name, would take the call.
    pub(super) takes: &'a dyn Fn(&str) -> bool,
}

impl Needs {
    /// Whether it holds.
    pub(super) fn holds(&self, situation: &Situation<'_>) -> bool {
        self.unmet(situation).is_none()
    }

    /// What is the case instead; none when it holds.
    pub(super) fn unmet(&self, situation: &Situation<'_>) -> Option<String> {
        let (facts, bytes, ranks) = (situation.facts, situation.bytes, situation.facts.ranks);
        let told = |fails: bool, what: &dyn Fn() -> String| fails.then(what);
        match self {
            Needs::Ranks(known) => told(!known.contains(&ranks), &|| {
                format!("{ranks} GPUs; it runs on {}", list(known))
            }),
            Needs::RanksUpTo(most) => told(ranks > *most, &|| format!("more than {most} GPUs")),
            Needs::AllNvlinkAbove(free) => {
                told(ranks > *free && facts.pairs_without_nvlink > 0, &|| without_nvlink(facts))
            }
            Needs::NvlinkRing => {
                let wanted = if ranks == 2 { 1 } else { 2 };
                let (gpu, peers) = facts.fewest_nvlinks;
                let others = ranks - 1;
                told(peers < wanted, &|| {
                    format!("GPU {gpu} has NVLink to {peers} of the other {others} GPUs")
                })
            }
            Needs::Multicast => told(!facts.multicast(), &|| no_multicast(facts)),
            Needs::PeerAccess => told(!facts.peer_access, &|| {
                "GPUs may not address each other (P2P is off)".to_owned()
            }),
            Needs::Rocm => Some(format!("{} is no AMD GPU", facts.gpu)),
            Needs::MultipleOf(unit) => told(!bytes.is_multiple_of(*unit), &|| {
                format!("{} B are no multiple of {unit}", format_thousands(bytes))
            }),
            Needs::CapabilityAtLeast(least) => told(facts.capability < *least, &|| {
                format!("{}; it needs {least} or later", capability(facts))
            }),
            Needs::Capabilities(known) => told(!known.contains(&facts.capability), &|| {
                format!("{}; it knows {}", capability(facts), list(known))
            }),
            Needs::CapabilityMajors(known) => {
                told(!known.contains(&facts.capability.major), &|| {
                    let known: Vec<String> =
                        known.iter().map(|major| format!("{major}.x")).collect();
                    format!("{}; it knows {}", capability(facts), list(&known))
                })
            }
            Needs::Dtypes(known) => told(!known.iter().any(|one| one == situation.dtype), &|| {
                format!("elements of {}; it reduces {}", situation.dtype, list(known))
            }),
            Needs::OtherRefused(names) => {
                let other = names.iter().find(|name| (situation.takes)(name));
                other.map(|name| format!("{name} comes first"))
            }
            Needs::SettingOn(_) | Needs::SettingOff(_) | Needs::SettingChoice(..) => {
                self.setting_unmet(situation)
            }
            _ => self.size_unmet(situation),
        }
    }

    fn setting_unmet(&self, situation: &Situation<'_>) -> Option<String> {
        let (engine, settings) = (situation.engine, situation.settings);
        let how = |name: &str| match settings.told(name) {
            Some(value) if !name.starts_with('-') => format!("{name}={value}"),
            Some(_) => name.to_owned(),
            None => format!("{name} is not set"),
        };
        match self {
            Needs::SettingOn(name) => (!settings.on(engine, name)).then(|| how(name)),
            Needs::SettingOff(name) => settings.on(engine, name).then(|| how(name)),
            Needs::SettingChoice(name, words) => {
                let value = settings.choice(engine, name).unwrap_or_default();
                (!words.iter().any(|word| word == value)).then(|| format!("{name} is {value}"))
            }
            _ => None,
        }
    }

    fn size_unmet(&self, situation: &Situation<'_>) -> Option<String> {
        let (facts, bytes, ranks) = (situation.facts, situation.bytes, situation.facts.ranks);
        let size = || format!("{} B", format_thousands(bytes));
        let most = |limit: u64, inclusive: bool| {
            let fits = if inclusive { bytes <= limit } else { bytes < limit };
            let word = if inclusive { "at most" } else { "less than" };
            (!fits).then(|| format!("{}; it takes {word} {} B", size(), format_thousands(limit)))
        };
        let least = |limit: u64| {
            let limit_told = format_thousands(limit);
            (bytes < limit).then(|| format!("{}; it takes {limit_told} B and more", size()))
        };
        match self {
            Needs::BytesBelow(limit) => most(*limit, false),
            Needs::BytesUpTo(limit) => most(*limit, true),
            Needs::BytesTimesRanksUpTo(limit) => most(limit / u64::from(ranks.max(1)), true),
            Needs::BytesAtLeastARank(each) => least(each * u64::from(ranks)),
            Needs::BytesAtLeastByRanks(rows) => {
                rows.iter().find(|row| row.0 == ranks).and_then(|row| least(row.1))
            }
            Needs::BytesOutside(rows) => {
                let row = rows.iter().find(|row| row.0 == ranks)?;
                let inside = row.1 < bytes && bytes < row.2;
                let ends = [row.1, row.2].map(format_thousands);
                inside.then(|| format!("{} lie between {} and {} B", size(), ends[0], ends[1]))
            }
            Needs::SizeTable(table) => {
                let fits = |row: &&SizeRow| {
                    row.capability.is_none_or(|one| one == facts.capability)
                        && row.ranks.is_none_or(|one| one == ranks)
                };
                let row = table.rows.iter().find(fits).map(|row| row.bytes).or(table.otherwise);
                row.and_then(|limit| most(limit, table.inclusive))
            }
            _ => None,
        }
    }
}

fn capability(facts: &Facts) -> String {
    format!("{} has compute capability {}", facts.gpu, facts.capability)
}

fn without_nvlink(facts: &Facts) -> String {
    let Facts { ranks, pairs, pairs_without_nvlink, .. } = facts;
    let which = match facts.first_without_nvlink {
        Some((a, b, path)) => format!(" (GPU {a} and GPU {b} are joined by {path})"),
        None => String::new(),
    };
    match pairs_without_nvlink {
        all if all == pairs => {
            if *pairs == 1 {
                format!("the two GPUs have no NVLink{which}")
            } else {
                format!("none of the {pairs} pairs of {ranks} GPUs has NVLink{which}")
            }
        }
        some => format!("{some} of the {pairs} pairs of {ranks} GPUs have no NVLink{which}"),
    }
}

fn no_multicast(facts: &Facts) -> String {
    if !facts.nvswitch {
        return format!("no NVSwitch joins the {} GPUs", facts.ranks);
    }
    format!(
        "the NVSwitch of {} (compute capability {}) does not multicast",
        facts.gpu, facts.capability
    )
}

/// `2, 4 or 8`.
fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let words: Vec<String> = items.iter().map(T::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
