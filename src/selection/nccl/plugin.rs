//! Files of NCCL's example tuner plugin: which algorithm, protocol and channels to take for calls
//! of a size. One rule a line, fields between commas, the first rule that fits wins:
//!
//! `collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff`
//!
//! Both sizes are inclusive; the last two fields may be left out; -1 stands for any. The plugin
//! takes words in small letters, and reads those that it does not know as all-reduce, ring and
//! Simple without a word, so that a reader here refuses them.
//!
//! Two traps of the plugin as of NCCL 2.29. It allows one channel before it looks for a rule: a
//! call that no rule fits, and a rule with -1 channels, run on one channel. So a file should state
//! channels and cover every size of every collective. And it cannot take what NCCL has ruled out:
//! a rule for LL128 over PCIe changes nothing but the channels.

use std::fmt::Write as _;

use super::tune::PROTOCOLS;
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, CHANNELS_MAX, Collective};
use crate::error::{Error, Problem, Result, Span};
use crate::suggestion::did_you_mean;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// For which collective.
    pub collective: Collective,
    /// Smallest size, bytes as nccl-tests counts them.
    pub min_bytes: u64,
    /// Largest size.
    pub max_bytes: u64,
    /// What to take.
    pub algorithm: Algorithm,
    /// In which protocol.
    pub protocol: Protocol,
    /// Most channels; `None` is written as -1.
    pub channels: Option<u32>,
    /// Only with so many machines.
    pub machines: Option<u32>,
    /// Only with so many ranks.
    pub ranks: Option<u32>,
    /// Only for so many calls at once.
    pub operations: Option<u32>,
    /// Only where the buffers are registered, or are not.
    pub registered: Option<bool>,
}

/// What to take for a size: algorithm, protocol, channels.
pub type Pick = (Algorithm, Protocol, u32);

/// Rules that take `pick` of each size up to that size: neighbours that agree share a rule, and the
/// last goes on without end. `sizes` ascend.
pub fn rules(
    collective: Collective,
    machines: u32,
    ranks: u32,
    sizes: &[u64],
    mut pick: impl FnMut(u64) -> Option<Pick>,
) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut from = 0;
    for (at, &size) in sizes.iter().enumerate() {
        let max_bytes = if at + 1 == sizes.len() { u64::MAX } else { size };
        let Some((algorithm, protocol, channels)) = pick(size) else {
            from = max_bytes.saturating_add(1);
            continue;
        };
        let rule = Rule {
            collective,
            min_bytes: from,
            max_bytes,
            algorithm,
            protocol,
            channels: Some(channels),
            machines: Some(machines),
            ranks: Some(ranks),
            operations: None,
            registered: None,
        };
        from = max_bytes.saturating_add(1);
        match rules.last_mut() {
            Some(last)
                if last.max_bytes.saturating_add(1) == rule.min_bytes
                    && (last.algorithm, last.protocol, last.channels)
                        == (rule.algorithm, rule.protocol, rule.channels) =>
            {
                last.max_bytes = rule.max_bytes;
            }
            _ => rules.push(rule),
        }
    }
    rules
}

impl Rule {
    /// Whether the rule fits a call of one operation on buffers that are not registered.
    pub fn fits(&self, collective: Collective, bytes: u64, machines: u32, ranks: u32) -> bool {
        self.collective == collective
            && (self.min_bytes..=self.max_bytes).contains(&bytes)
            && self.machines.is_none_or(|only| only == machines)
            && self.ranks.is_none_or(|only| only == ranks)
            && self.operations.is_none_or(|only| only == 1)
            && self.registered != Some(true)
    }
}

/// The text of a file; `about` becomes comments, a line each.
pub fn write(rules: &[Rule], about: &[String]) -> String {
    let mut text = String::new();
    for line in about {
        let _ = writeln!(text, "# {line}");
    }
    text.push_str("# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,");
    text.push_str("numPipeOps,regBuff\n");
    for rule in rules {
        let any = |value: Option<u32>| value.map_or("-1".to_owned(), |value| value.to_string());
        let fields = [
            rule.collective.name().to_lowercase(),
            rule.min_bytes.to_string(),
            rule.max_bytes.to_string(),
            algorithm_word(rule.algorithm).to_owned(),
            rule.protocol.name().to_lowercase(),
            any(rule.channels),
            any(rule.machines),
            any(rule.ranks),
            any(rule.operations),
            any(rule.registered.map(u32::from)),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn algorithm_word(algorithm: Algorithm) -> &'static str {
    Algorithm::ALL.iter().find(|entry| entry.0 == algorithm).map_or("", |entry| entry.2)
}

/// Faults told at most: a file with more is another file.
const PROBLEMS_MAX: usize = 1000;

/// Reads a file.
///
/// # Errors
/// All faults with their lines: fields too few or too many, unknown words, sizes out of order,
/// numbers that are none.
pub fn read(file: &str, text: &str) -> Result<Vec<Rule>> {
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let told = line.trim_end();
        // The plugin knows comments by their first letter.
        if !told.is_empty() && !line.starts_with('#') {
            match rule(told) {
                Ok(rule) => rules.push(rule),
                Err((message, help)) => {
                    let mut problem = Problem::new(message, format!("line {}", number + 1));
                    problem.help = help;
                    problem.span = Some(Span { start, end: start + told.len() });
                    problems.push(problem);
                    if problems.len() == PROBLEMS_MAX {
                        break;
                    }
                }
            }
        }
        start += line.len() + 1;
    }
    if problems.is_empty() {
        return Ok(rules);
    }
    Err(Error::Input { file: file.to_owned(), text: text.to_owned(), problems })
}

/// What is wrong with a line, and what helps.
type Fault = (String, String);

fn rule(line: &str) -> std::result::Result<Rule, Fault> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if !(8..=10).contains(&fields.len()) {
        let message = format!("{} fields, expected 8 to 10", fields.len());
        let help = "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks, then \
                    numPipeOps and regBuff if need be";
        return Err((message, help.to_owned()));
    }
    let collectives: Vec<String> =
        Collective::ALL.iter().map(|entry| entry.1.to_lowercase()).collect();
    let collectives: Vec<&str> = collectives.iter().map(String::as_str).collect();
    let algorithms = Algorithm::ALL.map(|entry| entry.2);
    let collective = Collective::ALL[word("collective", fields[0], &collectives)?].0;
    let algorithm = Algorithm::ALL[word("algorithm", fields[3], &algorithms)?].0;
    let protocol = PROTOCOLS[word("protocol", fields[4], &["ll", "ll128", "simple"])?];
    let (min_bytes, max_bytes) = (size(fields[1])?, size(fields[2])?);
    if min_bytes > max_bytes {
        let message = format!("from {min_bytes} to {max_bytes} bytes there is nothing");
        return Err((message, "write the smaller size first".to_owned()));
    }
    let field = |at: usize| fields.get(at).copied().unwrap_or("-1");
    Ok(Rule {
        collective,
        min_bytes,
        max_bytes,
        algorithm,
        protocol,
        channels: any("channels", fields[5], 1, CHANNELS_MAX)?,
        machines: any("nNodes", fields[6], 1, u32::MAX)?,
        ranks: any("nRanks", fields[7], 1, u32::MAX)?,
        operations: any("numPipeOps", field(8), 1, u32::MAX)?,
        registered: any("regBuff", field(9), 0, 1)?.map(|value| value == 1),
    })
}

/// Place of a word among those known.
fn word(what: &str, found: &str, known: &[&str]) -> std::result::Result<usize, Fault> {
    known.iter().position(|&known| known == found).ok_or_else(|| {
        let help = match did_you_mean(found, known.iter().copied()) {
            empty if empty.is_empty() => format!("known: {}", known.join(", ")),
            help => help,
        };
        (format!("there is no {what} `{found}`"), help)
    })
}

fn size(found: &str) -> std::result::Result<u64, Fault> {
    let help = || "bytes, a plain number".to_owned();
    found.parse().map_err(|_| (format!("`{found}` is no size"), help()))
}

/// A number, or -1 for any.
fn any(what: &str, found: &str, least: u32, most: u32) -> std::result::Result<Option<u32>, Fault> {
    if found == "-1" {
        return Ok(None);
    }
    let range =
        if most == u32::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    match found.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
        _ => Err((format!("{what} is `{found}`"), format!("expected {range}, or -1 for any"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LL up to 64 KiB, with more channels as calls grow, then Simple.
    fn pick(bytes: u64) -> Option<Pick> {
        Some(match bytes {
            0..=32_768 => (Algorithm::Ring, Protocol::Ll, 1),
            32_769..=65_536 => (Algorithm::Ring, Protocol::Ll, 2),
            _ => (Algorithm::Ring, Protocol::Simple, 8),
        })
    }

    #[test]
    fn rules_cover_every_size_and_neighbours_that_agree_share_one() {
        let sizes = [1024, 32_768, 65_536, 1 << 20, 1 << 24];
        let found = rules(Collective::AllReduce, 1, 8, &sizes, pick);
        assert_eq!(
            write(&found, &["rings".to_owned()]),
            "# rings\n\
             # collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,\
             regBuff\n\
             allreduce,0,32768,ring,ll,1,1,8,-1,-1\n\
             allreduce,32769,65536,ring,ll,2,1,8,-1,-1\n\
             allreduce,65537,18446744073709551615,ring,simple,8,1,8,-1,-1\n"
        );
        for bytes in [0, 1, 32_768, 32_769, 65_537, u64::MAX] {
            let fitting: Vec<&Rule> =
                found.iter().filter(|r| r.fits(Collective::AllReduce, bytes, 1, 8)).collect();
            assert_eq!(fitting.len(), 1, "{bytes}");
            let taken = (fitting[0].algorithm, fitting[0].protocol, fitting[0].channels);
            let wanted = pick(bytes).expect("a pick");
            assert_eq!(taken, (wanted.0, wanted.1, Some(wanted.2)), "{bytes}");
        }
        assert!(!found[0].fits(Collective::AllReduce, 1, 1, 4));
        assert!(!found[0].fits(Collective::Reduce, 1, 1, 8));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut all = Vec::new();
        for (collective, _) in Collective::ALL {
            for (algorithm, _, _) in Algorithm::ALL {
                for protocol in PROTOCOLS {
                    all.push(Rule {
                        collective,
                        min_bytes: 16,
                        max_bytes: 1 << 40,
                        algorithm,
                        protocol,
                        channels: (algorithm != Algorithm::Tree).then_some(4),
                        machines: (protocol != Protocol::Ll).then_some(2),
                        ranks: (protocol != Protocol::Simple).then_some(16),
                        operations: (collective == Collective::Reduce).then_some(1),
                        registered: (collective == Collective::AllGather).then_some(true),
                    });
                }
            }
        }
        let text = write(&all, &[]);
        assert_eq!(read("tuner.conf", &text).expect("rules"), all);
        // Two fields may be left out, and blanks stand around words.
        let short = read("tuner.conf", "allgather, 0,1024 ,ring,ll128,-1,1,-1\n").expect("a rule");
        assert_eq!((short[0].operations, short[0].registered), (None, None));
    }

    #[test]
    fn faults_are_told_with_their_lines() {
        let text = "# a comment\n\
                    allreduce,0,1024,ring,LL,1,1,8\n\
                    all_reduce,0,1024,ring,ll,1,1,8\n\
                    allreduce,0,1K,ring,ll,1,1,8\n\
                    allreduce,9,8,ring,ll,1,1,8\n\
                    allreduce,0,8,ring,ll,65,1,8\n\
                    allreduce,0,8,ring,ll\n\
                    allreduce,0,8,ring,ll,1,1,8,-1,2\n";
        let Err(Error::Input { problems, .. }) = read("tuner.conf", text) else {
            panic!("seven faults")
        };
        let told: Vec<String> = problems
            .iter()
            .map(|fault| format!("{}: {}: {}", fault.path, fault.message, fault.help))
            .collect();
        assert_eq!(
            told,
            [
                "line 2: there is no protocol `LL`: did you mean `ll`?",
                "line 3: there is no collective `all_reduce`: did you mean `allreduce`?",
                "line 4: `1K` is no size: bytes, a plain number",
                "line 5: from 9 to 8 bytes there is nothing: write the smaller size first",
                "line 6: channels is `65`: expected 1 to 64, or -1 for any",
                "line 7: 5 fields, expected 8 to 10: collective,min_bytes,max_bytes,algorithm,\
                 protocol,channels,nNodes,nRanks, then numPipeOps and regBuff if need be",
                "line 8: regBuff is `2`: expected 0 to 1, or -1 for any",
            ]
        );
        let span = problems[1].span.clone().expect("a place");
        assert_eq!(&text[span.start..span.end], "all_reduce,0,1024,ring,ll,1,1,8");
    }
}
