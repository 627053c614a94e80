//! The pictures that the repository shows: which kinds, of which machines.

use std::fmt::Write;

/// A picture of the gallery.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A built-in machine.
    pub machine: &'static str,
    /// A kind of picture.
    pub kind: &'static str,
}

const fn entry(machine: &'static str, kind: &'static str) -> Entry {
    Entry { machine, kind }
}

/// All, those of one machine together.
pub const ENTRIES: &[Entry] = &[
    entry("rtxpro6000x8", "machine"),
    entry("rtxpro6000x8", "time"),
    entry("rtxpro6000x8", "latency"),
    entry("rtxpro6000x8", "waterfall"),
    entry("rtxpro6000x8", "step"),
    entry("rtxpro6000x8", "distribution"),
    entry("rtxpro6000x8", "pareto"),
    entry("rtxpro6000x8", "timeline"),
    entry("rtxpro6000x8", "contention"),
    entry("rtxpro6000x8", "peers"),
    entry("h100x8-nvswitch", "machine"),
    entry("h100x8-nvswitch", "bus-bandwidth"),
    entry("rtxpro6000x16-flat", "machine"),
    entry("rtxpro6000x16-flat", "peers"),
];

/// The picture of everything that was checked: drawn with `docs/accuracy.md` by the test that checks all,
/// and by `simulate check --plot FILE.svg`, since that takes minutes.
pub const ACCURACY: &str = "accuracy.svg";

impl Entry {
    /// Name of its file.
    pub fn file_name(&self) -> String {
        format!("{}-{}.svg", self.kind, self.machine)
    }
}

/// The page that shows them, by file name and title.
pub fn page(pictures: &[(String, String)]) -> String {
    let mut out = String::from(
        "# Pictures\n\nDrawn by `simulate plot gallery --out plots`; `cargo test` compares them with \
         what the code draws. One picture of any machine: `simulate plot time --topo NAME --out \
         time.svg`; all kinds: `simulate plot list`.\n",
    );
    for (file, title) in pictures {
        let _ = write!(out, "\n## {title}\n\n![{title}]({file})\n");
    }
    let title = "Predicted over measured, by machine and regime";
    let _ = write!(out, "\n## {title}\n\n`simulate check --plot {ACCURACY}`\n\n");
    let _ = writeln!(out, "![{title}]({ACCURACY})");
    out
}
