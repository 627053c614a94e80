//! Settings of NCCL as a person gives them: `NCCL_ALGO=ring NCCL_P2P_LEVEL=SYS`. What is honoured
//! stands in [`super::variables`].

use super::lists::ByCollective;
use super::path::PeerOptions;
use super::tables::index;
use super::transport::TransportOptions;
use super::variables::{VARIABLES, WITHOUT_EFFECT};
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, Collective};
use crate::error::{Error, Result};
use crate::suggestion::did_you_mean;

/// Whether a protocol may be taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// Switched off.
    No,
    /// Switched on, also where NCCL would not trust it.
    Yes,
    /// As NCCL decides: LL128 where it is safe.
    Default,
}

/// All settings; those not given are as NCCL has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub(super) algorithms: Option<ByCollective>,
    pub(super) protocols: Option<ByCollective>,
    /// Which peers write to each other's memory.
    pub peers: PeerOptions,
    /// How hops are carried.
    pub transports: TransportOptions,
    /// Fewest and most channels (`NCCL_MIN_NCHANNELS`, `NCCL_MAX_NCHANNELS`).
    pub channels: (Option<u32>, Option<u32>),
    /// Fewest and most blocks (`NCCL_MIN_CTAS`, `NCCL_MAX_CTAS`).
    pub blocks: (Option<u32>, Option<u32>),
    /// Fewest and most channels of send and receive.
    pub p2p_channels: (Option<u32>, Option<u32>),
    /// A system file that stands for the machine.
    pub topology_file: Option<String>,
    /// A graph file that stands for the search.
    pub graph_file: Option<String>,
    /// Buffers of a connection, bytes: LL, LL128, Simple.
    pub buffers: [Option<u64>; 3],
    /// Most threads: LL and Simple; LL128.
    pub threads: (Option<u32>, Option<u32>),
    /// Bytes a thread of Tree and Ring: LL, LL128, Simple of each.
    pub thresholds: [[Option<u64>; 3]; 2],
    /// NVLS: off, or on whatever the driver says.
    pub nvls: Option<bool>,
    /// Channels of NVLS.
    pub nvls_channels: Option<u32>,
    /// From Hopper on, LL128 also by NICs behind chip-to-chip links.
    pub ll128_over_c2c: bool,
    /// Steps of send and receive, bytes: PCIe, NVLink everywhere.
    pub p2p_chunks: (Option<u64>, Option<u64>),
    /// Send and receive use LL up to this a channel, bytes.
    pub p2p_ll_max: Option<u64>,
    /// Variables that were given and change nothing here, with the reason.
    pub without_effect: Vec<(String, &'static str)>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            algorithms: None,
            protocols: None,
            peers: PeerOptions::default(),
            transports: TransportOptions::default(),
            channels: (None, None),
            blocks: (None, None),
            p2p_channels: (None, None),
            topology_file: None,
            graph_file: None,
            buffers: [None; 3],
            threads: (None, None),
            thresholds: [[None; 3]; 2],
            nvls: None,
            nvls_channels: None,
            ll128_over_c2c: true,
            p2p_chunks: (None, None),
            p2p_ll_max: None,
            without_effect: Vec::new(),
        }
    }
}

impl Settings {
    /// Reads assignments, `NAME=VALUE` one after another; a value may hold spaces.
    ///
    /// # Errors
    /// A variable that NCCL does not have, with the nearest that it has; a value that it would not
    /// take, with what it expects; words that are no assignment.
    pub fn parse(text: &str) -> Result<Settings> {
        Settings::default().with(text)
    }

    /// These, and more assignments.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn with(&self, text: &str) -> Result<Settings> {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for word in text.split_whitespace() {
            match (word.split_once('='), pairs.last_mut()) {
                (Some((name, value)), _) => pairs.push((name, value.to_owned())),
                (None, Some(last)) => last.1 = format!("{} {word}", last.1),
                (None, None) => {
                    let help = "write NAME=VALUE, such as NCCL_ALGO=ring";
                    return Err(Error::request(format!("`{word}` sets nothing"), help));
                }
            }
        }
        let mut settings = self.clone();
        for (index, (name, value)) in pairs.iter().enumerate() {
            if let Some(other) = pairs[..index].iter().find(|one| one.0 == *name && one.1 != *value)
            {
                return Err(Error::request(
                    format!("{name} is set twice: to `{}` and to `{value}`", other.1),
                    "leave one of them",
                ));
            }
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    /// Sets one variable.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) {
            return (variable.set)(self, value).ok_or_else(|| {
                Error::request(
                    format!("{name}=`{value}` is not understood"),
                    format!("expected {}", variable.expects),
                )
            });
        }
        if let Some((_, reason)) = WITHOUT_EFFECT.iter().find(|entry| name.starts_with(entry.0)) {
            self.without_effect.push((name.to_owned(), reason));
            return Ok(());
        }
        let known = VARIABLES.iter().map(|variable| variable.name);
        let help = match did_you_mean(name, known) {
            empty if empty.is_empty() => "it is no variable of NCCL that is known here".to_owned(),
            help => help,
        };
        Err(Error::request(format!("there is no variable `{name}`"), help))
    }

    /// Whether algorithms and protocols are left to NCCL.
    pub fn forces_none(&self) -> bool {
        self.algorithms.is_none() && self.protocols.is_none()
    }

    /// Whether an algorithm may be taken.
    pub fn algorithm_is_on(&self, collective: Collective, algorithm: Algorithm) -> bool {
        let row = self.algorithms.as_ref().and_then(|on| on[collective as usize].as_ref());
        row.is_none_or(|on| on[algorithm as usize])
    }

    /// Whether a protocol may be taken.
    pub fn protocol(&self, collective: Collective, protocol: Protocol) -> Enabled {
        match self.protocols.as_ref().and_then(|on| on[collective as usize].as_ref()) {
            Some(on) if on[index(protocol)] => Enabled::Yes,
            Some(_) => Enabled::No,
            None => Enabled::Default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::nccl::graph::PathType;

    fn told(text: &str) -> String {
        match Settings::parse(text) {
            Err(Error::Request { message, help }) => format!("{message}: {help}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn settings_are_read() {
        let text = "NCCL_ALGO=ring;allreduce:tree NCCL_PROTO=^LL128 NCCL_P2P_LEVEL=SYS \
                    NCCL_THREAD_THRESHOLDS=-1 16 32 8 NCCL_BUFFSIZE=0x100000 NCCL_DEBUG=INFO \
                    NCCL_MAX_NCHANNELS=4 NCCL_NTHREADS=256 NCCL_NVLS_ENABLE=0";
        let settings = Settings::parse(text).expect("settings");
        let on = |collective, algorithm| settings.algorithm_is_on(collective, algorithm);
        assert!(on(Collective::AllGather, Algorithm::Ring));
        assert!(!on(Collective::AllReduce, Algorithm::Ring));
        assert!(on(Collective::AllReduce, Algorithm::Tree));
        assert_eq!(settings.protocol(Collective::Reduce, Protocol::Ll128), Enabled::No);
        assert_eq!(settings.protocol(Collective::Reduce, Protocol::Ll), Enabled::Yes);
        assert_eq!(settings.peers.level, Some(PathType::Sys));
        let thresholds = [[None, Some(16), Some(32)], [Some(8), None, None]];
        assert_eq!(settings.thresholds, thresholds);
        assert_eq!(settings.buffers, [None, None, Some(1 << 20)]);
        assert_eq!((settings.channels, settings.threads.0), ((None, Some(4)), Some(256)));
        assert_eq!(settings.nvls, Some(false));
        assert_eq!(settings.without_effect.len(), 1);
        assert_eq!(Settings::parse("").expect("nothing"), Settings::default());
    }

    #[test]
    fn levels_have_names_and_old_digits() {
        let found = |value: &str| Settings::parse(&format!("NCCL_P2P_LEVEL={value}"));
        let level = |value: &str| found(value).expect("a level").peers.level;
        let known =
            [("0", "LOC"), ("1", "PIX"), ("2", "PXB"), ("3", "PHB"), ("5", "SYS"), ("NVB", "NVB")];
        for (value, name) in known {
            assert_eq!(level(value), PathType::from_name(name), "{value}");
        }
        for wrong in ["NET", "sys", "far", "-1", ""] {
            assert!(found(wrong).is_err(), "{wrong}");
        }
        let both = Settings::parse("NCCL_P2P_DISABLE=1 NCCL_P2P_LEVEL=SYS").expect("settings");
        assert_eq!(both.peers.level, Some(PathType::Loc));
    }

    #[test]
    fn mistakes_say_what_was_meant() {
        let known = [
            ("NCCL_ALGOS=ring", "there is no variable `NCCL_ALGOS`: did you mean `NCCL_ALGO`?"),
            ("MAX=1", "there is no variable `MAX`: it is no variable of NCCL that is known here"),
            ("ring", "`ring` sets nothing: write NAME=VALUE, such as NCCL_ALGO=ring"),
            (
                "NCCL_MAX_NCHANNELS=65",
                "NCCL_MAX_NCHANNELS=`65` is not understood: expected a number from 1 to 64",
            ),
            (
                "NCCL_BUFFSIZE=4M",
                "NCCL_BUFFSIZE=`4M` is not understood: expected bytes from 4096 to 1073741824, a \
                 plain number",
            ),
        ];
        for (text, message) in known {
            assert_eq!(told(text), message);
        }
    }

    #[test]
    fn every_variable_refuses_nonsense_and_no_two_share_a_name() {
        for (at, variable) in VARIABLES.iter().enumerate() {
            let mut settings = Settings::default();
            if !variable.name.ends_with("_FILE") {
                assert!(settings.set(variable.name, "nonsense").is_err(), "{}", variable.name);
            }
            assert!(settings.set(variable.name, "").is_err(), "{}", variable.name);
            assert!(!VARIABLES[..at].iter().any(|other| other.name == variable.name));
            assert!(!WITHOUT_EFFECT.iter().any(|entry| variable.name.starts_with(entry.0)));
            assert!(!variable.effect.is_empty() && !variable.expects.is_empty());
        }
    }
}
