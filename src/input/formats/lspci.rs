//! `lspci -vvv` (as root, best with `-nn`): every bridge with its link, capability and settings.

use super::Format;
use super::text::{after, leading_number};
use crate::error::{Error, Problem, Result};
use crate::input::found::{Address, Found, Function, Kind, LinkFact, Parent, Tree};
use crate::lines::{Line, lines, problem};

/// The format.
pub(super) const FORMAT: Format = Format { name: "lspci", title: "lspci -vvv", sniff, read };

fn sniff(text: &str) -> bool {
    lines(text).any(|line| head(&line.text).is_some())
}

/// Address and the rest of a line that starts a device.
fn head(line: &str) -> Option<(Address, &str)> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let (place, rest) = line.split_once(' ')?;
    // `00:01.1 PCI bridge: ..`: class and name stand apart by a colon.
    Some((Address::parse(place)?, rest)).filter(|(_, rest)| rest.contains(": "))
}

/// A device with the buses below it.
struct Device {
    function: Option<Function>,
    address: Address,
    /// The bus just below a bridge.
    below: Option<u8>,
}

fn read(file: &str, text: &str) -> Result<Found> {
    let mut reader = Reader { devices: Vec::new(), denied: false, problems: Vec::new() };
    for line in lines(text) {
        match head(&line.text) {
            Some((address, rest)) => reader.start(address, rest),
            None => reader.detail(&line),
        }
    }
    let failed = |problems| Error::Input { file: file.into(), text: text.into(), problems };
    if !reader.problems.is_empty() {
        return Err(failed(reader.problems));
    }
    let bridge = |device: &&Device| device.function.as_ref().is_some_and(|f| f.kind.is_bridge());
    let bridges: Vec<&Device> = reader.devices.iter().filter(bridge).collect();
    if !bridges.is_empty() && bridges.iter().all(|device| device.below.is_none()) {
        let help = "run `sudo lspci -vvv`, or `lspci -tv` for the tree without links";
        let message = "this list of devices does not say what hangs on what";
        return Err(failed(vec![Problem::new(message, "").help(help)]));
    }
    let mut found = Found::from_source(file, FORMAT.title);
    found.tree = if reader.denied { Tree::Shape } else { Tree::Full };
    if reader.denied {
        found.remark(
            "lspci was not run as root: links and ACS of some devices are hidden",
            "links that trained low and ACS redirect would be missed; run `sudo lspci -vvv`",
        );
    }
    found.functions = reader.functions();
    Ok(found.trimmed())
}

struct Reader {
    devices: Vec<Device>,
    denied: bool,
    problems: Vec<Problem>,
}

impl Reader {
    fn start(&mut self, address: Address, rest: &str) {
        let (class, title) = rest.split_once(": ").unwrap_or((rest, ""));
        let parent = Parent::Root(address.domain, address.bus);
        let function = kind(class, title).map(|kind| {
            let mut function = Function::new(address, parent, kind);
            function.ids = ids(title).or_else(|| device_only(title));
            title.clone_into(&mut function.title);
            function
        });
        self.devices.push(Device { function, address, below: None });
    }

    /// A line that says something of the last device.
    fn detail(&mut self, line: &Line) {
        let Some(device) = self.devices.last_mut() else { return };
        let Some(function) = &mut device.function else { return };
        let text = line.text.trim();
        if let Some(buses) = text.strip_prefix("Bus: ") {
            let below = after(buses, "secondary=").and_then(|bus| u8::from_str_radix(bus, 16).ok());
            if below.is_none() {
                let help = "Bus: primary=00, secondary=01, subordinate=02";
                self.problems.push(problem(line, "no bus below this bridge", help));
            }
            device.below = below;
        } else if let Some(node) = text.strip_prefix("NUMA node:") {
            function.numa = node.trim().parse().ok();
        } else if text.contains("<access denied>") {
            self.denied = true;
        } else if text.contains("] Express ") {
            function.kind = port(text, function.kind);
        } else if let Some(link) = text.strip_prefix("LnkCap:") {
            function.able = link_of(link);
        } else if let Some(link) = text.strip_prefix("LnkSta:") {
            function.trained = link_of(link);
        } else if let Some(control) = text.strip_prefix("ACSCtl:") {
            function.redirect = flag(control, "ReqRedir");
        } else if text.starts_with("MaxPayload ") || text.starts_with("DevCtl:") {
            let bytes = |key| after(text, key).and_then(leading_number).map(|bytes| bytes as u32);
            function.payload = bytes("MaxPayload ").or(function.payload);
            function.read_request = bytes("MaxReadReq ").or(function.read_request);
        }
        tags(function, text);
    }

    /// All functions, each below the bridge whose bus it is on.
    fn functions(self) -> Vec<Function> {
        let kept: Vec<Device> =
            self.devices.into_iter().filter(|device| device.function.is_some()).collect();
        let above = |place: Address| {
            let holds = |device: &Device| {
                device.address.domain == place.domain
                    && device.below == Some(place.bus)
                    && device.address.bus != place.bus
            };
            kept.iter().position(holds)
        };
        let parents: Vec<Option<usize>> = kept.iter().map(|device| above(device.address)).collect();
        let functions = kept.into_iter().zip(parents).filter_map(|(device, parent)| {
            let mut function = device.function?;
            if let Some(parent) = parent {
                function.parent = Parent::Below(parent);
            }
            Some(function)
        });
        let mut functions: Vec<Function> = functions.collect();
        roots_of_circles(&mut functions);
        functions
    }
}

/// A list that was edited may hold circles: a function above itself is put on its root bus.
fn roots_of_circles(functions: &mut [Function]) {
    for start in 0..functions.len() {
        let mut at = start;
        for _ in 0..functions.len() {
            match functions[at].parent {
                Parent::Below(parent) => at = parent,
                _ => break,
            }
            if at == start {
                let place = functions[start].address;
                functions[start].parent = Parent::Root(place.domain, place.bus);
                break;
            }
        }
    }
}

/// What a class of lspci is to us.
fn kind(class: &str, title: &str) -> Option<Kind> {
    let class = class.split(" [").next().unwrap_or(class);
    let gpu = ["NVIDIA", "Instinct", "Arc", "Gaudi", "Data Center GPU"];
    let is_gpu = gpu.iter().any(|word| title.contains(word));
    match class {
        "PCI bridge" => Some(Kind::Bridge),
        "VGA compatible controller"
        | "3D controller"
        | "Display controller"
        | "Processing accelerators"
            if is_gpu =>
        {
            Some(Kind::Gpu)
        }
        "Ethernet controller" | "Infiniband controller" | "Network controller" => Some(Kind::Nic),
        _ => None,
    }
}

/// Vendor and device of `.. [10de:2bb5] (rev a1)`.
pub(super) fn ids(title: &str) -> Option<(u16, u16)> {
    let hex = |text: &str| u16::from_str_radix(text, 16).ok().filter(|_| text.len() == 4);
    title.split('[').find_map(|part| {
        let (vendor, device) = part.split(']').next()?.split_once(':')?;
        Some((hex(vendor)?, hex(device)?))
    })
}

/// The device of `NVIDIA Corporation Device 2bb1`, a name that pci.ids does not have.
pub(super) fn device_only(title: &str) -> Option<(u16, u16)> {
    let (vendor, device) = title.split_once(" Device ")?;
    let device = device.split_whitespace().next()?;
    let device = u16::from_str_radix(device, 16).ok().filter(|_| device.len() == 4)?;
    let vendors = [
        ("NVIDIA", 0x10de),
        ("Broadcom / LSI", 0x1000),
        ("PLX", 0x10b5),
        ("Microchip", 0x11f8),
        ("PMC-Sierra", 0x11f8),
    ];
    vendors.iter().find(|entry| vendor.starts_with(entry.0)).map(|entry| (entry.1, device))
}

/// What a bridge is, by its Express capability.
fn port(text: &str, kind: Kind) -> Kind {
    let ports = [
        ("Root Port", Kind::RootPort),
        ("Upstream Port", Kind::Upstream),
        ("Downstream Port", Kind::Downstream),
    ];
    let named = ports.iter().find(|entry| text.contains(entry.0));
    if kind.is_bridge() { named.map_or(kind, |entry| entry.1) } else { kind }
}

/// `Speed 16GT/s (downgraded), Width x8`.
fn link_of(text: &str) -> LinkFact {
    let rate = after(text, "Speed ").and_then(leading_number);
    let width = after(text, "Width x").and_then(leading_number).map(|lanes| lanes as u32);
    LinkFact::new(rate, width)
}

/// `Name+` or `Name-`.
fn flag(text: &str, name: &str) -> Option<bool> {
    let (_, rest) = text.split_once(name)?;
    rest.chars().next().and_then(|c| match c {
        '+' => Some(true),
        '-' => Some(false),
        _ => None,
    })
}

/// 10-bit tags: `10BitTagReq` stands once among capabilities and once among settings.
fn tags(function: &mut Function, text: &str) {
    let Some(set) = flag(text, "10BitTagReq") else { return };
    function.tags = match function.tags {
        None => Some((set, false)),
        Some((able, _)) => Some((able, set)),
    };
}
