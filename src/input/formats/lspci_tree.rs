//! `lspci -tv`: the shape of the PCI tree, drawn with characters.

use super::Format;
use super::lspci::{device_only, ids};
use crate::error::{Error, Problem, Result};
use crate::input::found::{Address, Found, Function, Kind, Parent, Tree};
use crate::lines::{Line, lines, problem};

/// The format.
pub(super) const FORMAT: Format = Format { name: "lspci-tree", title: "lspci -tv", sniff, read };

fn sniff(text: &str) -> bool {
    lines(text).any(|line| {
        let rest = line.text.trim_start_matches(['-', '+', ' ', '\\', '|']);
        line.text.starts_with(['-', ' ']) && root(rest).is_some()
    })
}

/// Domain, bus and what follows `[0000:40]`.
fn root(text: &str) -> Option<(u32, u8, &str)> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (domain, bus) = inner.split_once(':')?;
    // `[0000:00-3f]` of old versions.
    let bus = bus.split('-').next()?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some((hex(domain)?, u8::try_from(hex(bus)?).ok()?, rest))
}

/// What devices hang on at a place of the drawing.
#[derive(Copy, Clone)]
struct Bus {
    domain: u32,
    bus: u8,
    parent: Parent,
}

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    found.tree = Tree::Shape;
    // Columns at which branches leave a bus.
    let mut branches: Vec<(usize, Option<Bus>)> = Vec::new();
    let mut named = false;
    for line in lines(text).filter(|line| !line.text.trim().is_empty()) {
        let reader = Reader { line: &line, at: 0, found: &mut found };
        match reader.read(&mut branches) {
            Ok(has_name) => named |= has_name,
            Err(wrong) => {
                let problems = vec![*wrong];
                return Err(Error::Input { file: file.into(), text: text.into(), problems });
            }
        }
    }
    if !named {
        let wrong = Problem::new("the tree has no names, so GPUs cannot be told", "");
        let problems = vec![wrong.help("run `lspci -tv`, best `lspci -tvnn`")];
        return Err(Error::Input { file: file.into(), text: text.into(), problems });
    }
    Ok(found.trimmed())
}

/// Reads a line from the left.
struct Reader<'a> {
    line: &'a Line<'a>,
    at: usize,
    found: &'a mut Found,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.line.text.get(self.at..).unwrap_or("")
    }

    /// Whether the line names a device.
    fn read(
        mut self,
        branches: &mut Vec<(usize, Option<Bus>)>,
    ) -> std::result::Result<bool, Box<Problem>> {
        self.at = self.line.text.find(|c| c != ' ' && c != '|').unwrap_or(0);
        let mut bus = None;
        if self.rest().starts_with(['+', '\\']) {
            let known = branches.iter().find(|entry| entry.0 == self.at);
            let Some(&(_, of)) = known else {
                let help = "lines of `lspci -tv` must keep their spaces";
                return Err(Box::new(problem(self.line, "a branch of nothing above it", help)));
            };
            bus = of;
            branches.retain(|entry| entry.0 <= self.at);
            self.at += 1;
        } else {
            branches.clear();
        }
        loop {
            // Lines between nodes; a plus or a backslash among them starts branches.
            let skip = self.rest().find(|c| c != '-').unwrap_or(self.rest().len());
            self.at += skip;
            let rest = self.rest();
            if rest.starts_with(['+', '\\']) {
                branches.push((self.at, bus));
                self.at += 1;
            } else if let Some((domain, number, after)) = root(rest) {
                self.at = self.line.text.len() - after.len();
                bus = Some(Bus { domain, bus: number, parent: Parent::Root(domain, number) });
            } else if let Some(on) = bus {
                return self.device(on, branches);
            } else if rest.is_empty() {
                return Ok(false);
            } else {
                let help = "expected `[0000:00]`, a root bus";
                return Err(Box::new(problem(self.line, "a device on no bus", help)));
            }
        }
    }

    /// A device, and what hangs on it on the same line.
    fn device(
        mut self,
        on: Bus,
        branches: &mut Vec<(usize, Option<Bus>)>,
    ) -> std::result::Result<bool, Box<Problem>> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_hexdigit() || c == '.')).unwrap_or(rest.len());
        let Some(address) =
            Address::parse(&format!("{:x}:{:02x}:{}", on.domain, on.bus, &rest[..end]))
        else {
            // An empty slot, or a range of functions that we do not need.
            return Ok(false);
        };
        let after = rest[end..].to_owned();
        self.at += end;
        let below = after.strip_prefix("-[").and_then(|inner| inner.split_once(']'));
        let Some((range, _)) = below else {
            let title = after.trim();
            if let Some(kind) = kind(address, title) {
                let mut function = Function::new(address, on.parent, kind);
                function.ids = ids(title).or_else(|| device_only(title));
                title.clone_into(&mut function.title);
                self.found.functions.push(function);
            }
            return Ok(!title.is_empty());
        };
        self.at += 2 + range.len() + 1;
        let first = range.split('-').next().unwrap_or(range);
        let Ok(bus) = u8::from_str_radix(first, 16) else {
            let help = "expected buses such as `[01-06]`";
            return Err(Box::new(problem(
                self.line,
                format!("`[{range}]` is no range of buses"),
                help,
            )));
        };
        let parent = Parent::Below(self.found.functions.len());
        self.found.functions.push(Function::new(address, on.parent, Kind::Bridge));
        let on = Bus { domain: on.domain, bus, parent };
        let skip = self.rest().find(|c| c != '-').unwrap_or(self.rest().len());
        self.at += skip;
        while self.rest().starts_with(['+', '\\']) {
            branches.push((self.at, Some(on)));
            self.at += 1;
            let skip = self.rest().find(|c| c != '-').unwrap_or(self.rest().len());
            self.at += skip;
        }
        if self.rest().trim().is_empty() {
            return Ok(false);
        }
        self.device(on, branches)
    }
}

/// The drawing has no classes: GPUs and NICs are told by their names.
fn kind(address: Address, title: &str) -> Option<Kind> {
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
    let other = ["Audio", "USB", "UCSI", "NVSwitch", "Serial bus", "BlueField Auxiliary"];
    if has(&["NVIDIA"]) && !has(&other) {
        // Further functions are the audio and USB ports of the card.
        return (address.function == 0).then_some(Kind::Gpu);
    }
    let nic =
        ["Ethernet", "ConnectX", "Infiniband", "InfiniBand", "BlueField", "Mellanox", "NetXtreme"];
    has(&nic).then_some(Kind::Nic)
}
