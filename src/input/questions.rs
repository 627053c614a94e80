//! The classic questions that come with the program: `scenarios/questions/`.

/// Name and text of each, in the order in which they are listed.
pub const QUESTIONS: &[(&str, &str)] = &[
    ("switch-or-socket", include_str!("../../scenarios/questions/switch-or-socket.json")),
    ("x8-slots", include_str!("../../scenarios/questions/x8-slots.json")),
    ("gen4-or-gen5", include_str!("../../scenarios/questions/gen4-or-gen5.json")),
    ("nvlink-bridges", include_str!("../../scenarios/questions/nvlink-bridges.json")),
    ("flat-or-hierarchy", include_str!("../../scenarios/questions/flat-or-hierarchy.json")),
    ("shared-root", include_str!("../../scenarios/questions/shared-root.json")),
    ("uplink-width", include_str!("../../scenarios/questions/uplink-width.json")),
    ("batch-and-drafts", include_str!("../../scenarios/questions/batch-and-drafts.json")),
    ("custom-on-4", include_str!("../../scenarios/questions/custom-on-4.json")),
    ("custom-on-8", include_str!("../../scenarios/questions/custom-on-8.json")),
    ("tp8-or-tp4", include_str!("../../scenarios/questions/tp8-or-tp4.json")),
    ("eight-to-sixteen", include_str!("../../scenarios/questions/eight-to-sixteen.json")),
    ("channels", include_str!("../../scenarios/questions/channels.json")),
    ("p2p-unlocked", include_str!("../../scenarios/questions/p2p-unlocked.json")),
    ("copies-beside", include_str!("../../scenarios/questions/copies-beside.json")),
];
