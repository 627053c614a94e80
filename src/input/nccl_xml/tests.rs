//! What is wrong with a file is told with its place.

use super::{read_graphs, read_system};
use crate::error::Error;

/// The problems of a text as `line: message`.
fn problems<T: std::fmt::Debug>(read: crate::error::Result<T>) -> Vec<String> {
    let Err(Error::Input { text, problems, .. }) = read else { panic!("{read:?}") };
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    problems
        .iter()
        .map(|problem| {
            let start = problem.span.as_ref().map_or(0, |span| span.start);
            format!("{}: {}", line(start), problem.message)
        })
        .collect()
}

const TWO: &str = r#"<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="191" modelid="2">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="120" rank="0" gdr="1"/>
    </pci>
    <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s" link_width="16">
      <gpu dev="1" sm="120" rank="1" gdr="1"/>
    </pci>
  </cpu>
</system>
"#;

#[test]
fn all_faults_are_told_with_their_lines() {
    let text = TWO.replace("numaid=\"0\"", "").replace("link_width=\"16\"", "link_width=\"x16\"");
    assert_eq!(
        problems(read_system("two.xml", &text)),
        [
            "2: <cpu> needs `numaid`",
            "3: `x16` is no number that link_width can be",
            "6: `x16` is no number that link_width can be",
        ]
    );
    let twice = TWO.replace("0000:02", "0000:01");
    assert_eq!(problems(read_system("two.xml", &twice)), ["6: bus id 0000:01:00.0 stands twice"]);
}

#[test]
fn other_files_are_recognised() {
    let found = problems(read_system("graph.xml", "<graphs version=\"1\"/>"));
    assert_eq!(found, ["1: expected <system>, found <graphs>"]);
    let found = problems(read_system(
        "old.xml",
        "<system version=\"2\"><cpu numaid=\"0\" arch=\"arm64\"/></system>",
    ));
    assert_eq!(found, ["1: version 2 of <system>: NCCL reads version 1"]);
    let found =
        problems(read_system("cut.xml", "<system version=\"1\">\n  <cpu numaid=0/></system>"));
    assert!(found[0].starts_with("2: this is no XML"), "{found:?}");
}

#[test]
fn a_speed_in_no_known_spelling_counts_as_gen3() {
    let machine = read_system("two.xml", TWO).expect("a system");
    let speeds: Vec<Option<f64>> = machine.devices().iter().map(|pci| pci.gt_per_s).collect();
    assert_eq!(speeds, [Some(32.0), None]);
    assert_eq!(
        machine.assumed,
        ["link_speed `32.0 GT/s` is none that NCCL knows: it counts as Gen3"]
    );
}

#[test]
fn channels_must_hold_every_gpu_once() {
    let machine = read_system("two.xml", TWO).expect("a system");
    let graph = |channel: &str, count: u32| {
        format!(
            "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"{count}\" \
             speedintra=\"24\" speedinter=\"24\" typeintra=\"PHB\" typeinter=\"PIX\" \
             samechannels=\"1\">\n<channel>\n{channel}</channel>\n</graph>\n</graphs>"
        )
    };
    let read = |channel: &str, count| read_graphs("g.xml", &graph(channel, count), &machine);
    let ring = read("<gpu dev=\"0x1\"/><gpu dev=\"0\"/>", 1).expect("a graph").ring;
    assert_eq!(ring.map(|graph| graph.channels), Some(vec![vec![1, 0]]));
    let twice = read("<gpu dev=\"0\"/>\n<gpu dev=\"0\"/>", 1);
    assert_eq!(problems(twice), ["5: GPU 0 stands twice in this channel"]);
    assert_eq!(problems(read("<gpu dev=\"7\"/>", 1)), ["4: no GPU 7 on this machine"]);
    let short = problems(read("<gpu dev=\"0\"/>", 1));
    assert_eq!(short, ["3: a channel of 1 GPUs, 2 have a rank"]);
    let count = problems(read("<gpu dev=\"0\"/><gpu dev=\"1\"/>", 2));
    assert_eq!(count, ["2: nchannels is 2, but 1 channels are listed"]);
}
