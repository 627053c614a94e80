//! hwloc's XML (`lstopo --of xml`): packages, NUMA nodes, the PCI tree with its links.

use roxmltree::Node;

use super::Format;
use crate::error::Result;
use crate::input::found::{Address, CpuName, Found, Function, Kind, LinkFact, Numa, Parent, Tree};
use crate::input::xml::{document, starts_with};

/// The format.
pub(super) const FORMAT: Format =
    Format { name: "hwloc", title: "hwloc XML", sniff: |text| starts_with(text, "topology"), read };

const HELP: &str = "write it with `lstopo --of xml`";
/// Files nest far less; deeper ones would overflow the stack.
const DEPTH_MAX: usize = 200;

fn read(file: &str, text: &str) -> Result<Found> {
    let document = document(file, text, HELP)?;
    let mut reader = Reader { found: Found::from_source(file, FORMAT.title), roots: 0 };
    reader.found.tree = Tree::Links;
    let around = Around { parent: None, numa: None, package: None, depth: 0 };
    reader.children(document.root_element(), around);
    Ok(reader.found.trimmed())
}

/// What an object stands in.
#[derive(Copy, Clone)]
struct Around {
    parent: Option<Parent>,
    numa: Option<u32>,
    package: Option<u32>,
    depth: usize,
}

struct Reader {
    found: Found,
    roots: u8,
}

impl Reader {
    fn children(&mut self, node: Node, around: Around) {
        if around.depth > DEPTH_MAX {
            return;
        }
        let around = Around { depth: around.depth + 1, ..around };
        for child in node.children().filter(|child| child.has_tag_name("object")) {
            self.object(child, around);
        }
    }

    fn object(&mut self, node: Node, mut around: Around) {
        let number = |name: &str| node.attribute(name).and_then(|text| text.parse::<u32>().ok());
        if let Some(only) = node.attribute("nodeset").and_then(only_bit) {
            around.numa = Some(only);
        }
        match node.attribute("type").unwrap_or("") {
            "Package" | "Socket" => {
                around.package = number("os_index");
                let cpu = cpu(node);
                if self.found.cpu.is_none() && !cpu.title.is_empty() {
                    self.found.cpu = Some(cpu);
                }
            }
            "NUMANode" => {
                let number = number("os_index").unwrap_or(0);
                // Before version 2 a node holds its package.
                let inner = node
                    .descendants()
                    .find(|child| matches!(child.attribute("type"), Some("Package" | "Socket")));
                let inside = inner.and_then(|inner| inner.attribute("os_index")?.parse().ok());
                let package = around.package.or(inside);
                self.found.numa.push(Numa { number, package, cpu: None });
                around.numa = Some(number);
            }
            "Bridge" if node.attribute("bridge_type").is_some_and(|kind| kind.starts_with('0')) => {
                self.roots = self.roots.wrapping_add(1);
                let (domain, bus) = root(node).unwrap_or((u32::MAX, self.roots));
                around.parent = Some(Parent::Root(domain, bus));
            }
            "Bridge" | "PCIDev" => {
                if let Some(at) = self.function(node, around) {
                    around.parent = Some(Parent::Below(at));
                }
            }
            _ => {}
        }
        self.children(node, around);
    }

    fn function(&mut self, node: Node, around: Around) -> Option<usize> {
        let address = Address::parse(node.attribute("pci_busid")?)?;
        let class = node.attribute("pci_type").unwrap_or("");
        let vendor_and_device = class.split(['[', ']']).nth(1).and_then(|ids| ids.split_once(':'));
        let hex = |text: &str| u16::from_str_radix(text, 16).ok();
        let ids = vendor_and_device.and_then(|(v, d)| Some((hex(v)?, hex(d)?)));
        let nvidia = ids.is_some_and(|ids| ids.0 == crate::input::found::devices::NVIDIA);
        let kind = match class.get(..4).unwrap_or("") {
            "0604" => Kind::Bridge,
            "0302" | "0380" | "1200" => Kind::Gpu,
            "0300" if nvidia => Kind::Gpu,
            "0200" | "0207" => Kind::Nic,
            _ => return None,
        };
        let parent = around.parent.unwrap_or(Parent::Root(address.domain, address.bus));
        let mut function = Function::new(address, parent, kind);
        function.ids = ids;
        function.numa = around.numa;
        let name = |key: &str| info(node, key).unwrap_or("");
        function.title = format!("{} {}", name("PCIVendor"), name("PCIDevice")).trim().to_owned();
        let speed = node.attribute("pci_link_speed").and_then(|text| text.parse::<f64>().ok());
        function.trained = speed.map_or(LinkFact::default(), link);
        self.found.functions.push(function);
        Some(self.found.functions.len() - 1)
    }
}

/// hwloc gives a link's rate in GB/s: the widest link of that rate, of which others are as fast.
fn link(gb_per_s: f64) -> LinkFact {
    let lanes = [16_u8, 8, 4, 2, 1];
    let rates = [0.25, 0.5, 0.985, 1.969, 3.938, 7.563];
    let near = |rate: f64| (rate - gb_per_s).abs() < 0.04 * rate;
    let fits = |generation: usize, width: u8| near(rates[generation] * f64::from(width));
    let both = lanes.iter().flat_map(|&width| (0..rates.len()).map(move |g| (g, width)));
    let found = both.into_iter().find(|&(generation, width)| fits(generation, width));
    found.map_or(LinkFact::default(), |(generation, width)| LinkFact {
        generation: Some(generation as u8 + 1),
        width: Some(width),
    })
}

/// `0000:[40-7f]` of a host bridge.
fn root(node: Node) -> Option<(u32, u8)> {
    let (domain, range) = node.attribute("bridge_pci")?.split_once(":[")?;
    let bus = range.split(['-', ']']).next()?;
    Some((u32::from_str_radix(domain, 16).ok()?, u8::from_str_radix(bus, 16).ok()?))
}

/// The one bit of a set such as `0x00000002` or `0x1,0x0`; `None` of several or none.
fn only_bit(set: &str) -> Option<u32> {
    let words: Vec<u32> = set
        .split(',')
        .map(|word| u32::from_str_radix(word.trim().trim_start_matches("0x"), 16).ok())
        .collect::<Option<_>>()?;
    let mut bits = words.iter().rev().enumerate().flat_map(|(at, word)| {
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u32 * 32 + bit)
    });
    let first = bits.next()?;
    bits.next().is_none().then_some(first)
}

fn info<'a>(node: Node<'a, '_>, key: &str) -> Option<&'a str> {
    let infos = node.children().filter(|child| child.has_tag_name("info"));
    infos.into_iter().find(|info| info.attribute("name") == Some(key))?.attribute("value")
}

fn cpu(node: Node) -> CpuName {
    let number = |key: &str| info(node, key).and_then(|text| text.parse::<u32>().ok());
    CpuName {
        title: info(node, "CPUModel").unwrap_or("").to_owned(),
        vendor: info(node, "CPUVendor").unwrap_or("").to_owned(),
        family: number("CPUFamilyNumber").zip(number("CPUModelNumber")),
    }
}
