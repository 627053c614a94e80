//! The machines that come with the program, found by name from any directory.

/// A topology file within the program.
pub struct Embedded {
    /// The name, its file's stem.
    pub name: &'static str,
    /// The JSON text.
    pub text: &'static str,
}

impl Embedded {
    /// What errors call it.
    pub fn file_name(&self) -> String {
        format!("{}.json", self.name)
    }
}

macro_rules! machines {
    ($($name:literal),* $(,)?) => {
        &[$(Embedded {
            name: $name,
            text: include_str!(concat!("../../topologies/", $name, ".json")),
        }),*]
    };
}

/// All of them, in the order in which they are listed.
pub const MACHINES: &[Embedded] = machines!["rtxpro6000x8",];

/// The machine of this name, with or without `.json`.
pub fn find(name: &str) -> Option<&'static Embedded> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    MACHINES.iter().find(|machine| machine.name == stem)
}

/// All names, in the order in which they are listed.
pub fn names() -> Vec<&'static str> {
    MACHINES.iter().map(|machine| machine.name).collect()
}
