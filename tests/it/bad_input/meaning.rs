//! Texts that are sound JSON of the right shape, and no machine.

use collsim::input::render;
use collsim::input::topology_json::{parse, parse_with};
use collsim::topology::edit::{Edit, KINDS};
use collsim::topology::{Topology, checks};

use super::{GOOD, broken, extended, pcie, picture, problems, refused};

#[test]
fn the_unbroken_one_is_accepted() {
    parse("two.json", GOOD).expect("valid");
}

#[test]
fn a_dangling_name() {
    let text = broken(r#"{"a": "gpu1", "b": "sw0""#, r#"{"a": "gpu1", "b": "sw1x""#);
    let message = "link 1 names node `sw1x`, which is not in `nodes`";
    refused(&text, "two.json:14:24", message, "");
    let text = broken(r#"{"a": "gpu1", "b": "sw0""#, r#"{"a": "gpu1", "b": "swo""#);
    refused(&text, "two.json:14:24", "`swo`", "did you mean `sw0`?");
}

#[test]
fn all_faults_are_told_at_once_in_order() {
    let text = broken(r#""quadrant": 0"#, r#""quadrant": 4"#);
    let text = text.replace(r#""b": "root0""#, r#""b": "rot0""#);
    let text = text.replacen(r#""width": 16"#, r#""width": 32"#, 1);
    let error = parse("two.json", &text).expect_err("faults");
    let paths: Vec<&str> = problems(&error).iter().map(|p| p.path.as_str()).collect();
    let expected = ["nodes.root0.host_bridge.quadrant", "links[0].kind.pcie.width", "links[2].b"];
    assert_eq!(paths, expected);
}

#[test]
fn a_bridge_without_its_socket() {
    let text = broken(r#"{"socket": "cpu0", "quadrant""#, r#"{"socket": "cpuO", "quadrant""#);
    let message = "`root0` names socket `cpuO`, which is not in `nodes`";
    refused(&text, "two.json:8:41", message, "did you mean `cpu0`?");
    let text = broken(r#"{"socket": "cpu0", "quadrant""#, r#"{"socket": "gpu0", "quadrant""#);
    refused(&text, "two.json:8:41", "`root0` names `gpu0`, which is a GPU", "name a socket");
}

#[test]
fn a_gpu_without_path() {
    let lonely = "\n,\"gpu2\": {\"gpu\": {\"model\": \"h200\"}}";
    refused(&extended(lonely, &[]), "two.json:11:2", "GPU `gpu2` has no link", "add one to");
    let island = format!(
        "{lonely}, \"root1\": {{\"host_bridge\": {{\"socket\": \"cpu1\"}}}}, \
         \"cpu1\": {{\"socket\": {{\"model\": \"epyc-turin\"}}}}"
    );
    let text = extended(&island, &[pcie("gpu2", "root1")]);
    let message = "no path from GPU `gpu2` to any other GPU or to host memory";
    refused(&text, "two.json:11:2", message, "");
}

/// What no edit sets no file has either.
#[test]
fn settings_have_the_limits_of_their_edits() {
    let set = |key: &str, value: u32| {
        let settings = format!("\"name\": \"two\",\n  \"settings\": {{\"{key}\": {value}}},");
        broken("\"name\": \"two\",", &settings)
    };
    let takes = |name: &str, value: u32, mut topology: Topology| {
        let edit = Edit::parse(&format!("{name}={value}")).expect("an edit");
        let kind = KINDS.iter().find(|kind| kind.name == name).expect("a kind");
        (kind.apply)(&mut topology, &edit).is_ok()
    };
    let kinds = [
        ("max_payload", "mps", &[128, 4096][..], &[0, 1, 100, 127, 4097, 65535][..]),
        ("max_read_request", "mrrs", &[128, 4096], &[0, 1, 100, 127, 384, 4097, 65535]),
        ("numa_per_socket", "nps", &[1, 2, 4], &[0, 3, 5, 255]),
    ];
    for (key, edit, sound, wrong) in kinds {
        for &value in sound {
            let topology = parse("two.json", &set(key, value)).expect(key);
            assert!(takes(edit, value, topology), "{edit}={value}");
        }
        for &value in wrong {
            let place = format!("two.json:4:{}", "  \"settings\": {\"\": ".len() + key.len() + 1);
            let message = if key == "numa_per_socket" { "1, 2 or 4" } else { "PCIe knows 128" };
            refused(&set(key, value), &place, message, "");
            assert!(!takes(edit, value, parse("two.json", GOOD).expect("valid")), "{edit}={value}");
        }
    }
}

#[test]
fn numbers_that_do_not_exist() {
    let width = |to: &str| GOOD.replacen(r#""width": 16"#, &format!(r#""width": {to}"#), 1);
    refused(&width("32"), "two.json:13:75", "PCIe width x32 does not exist", "");
    refused(&width("-16"), "two.json:13:75", "invalid value: integer `-16`", "");
    refused(&width("1e400"), "two.json:13:", "number out of range", "");
    refused(&width("99999999999999999999999"), "two.json:13:75", "expected an integer", "");
    let text = GOOD.replacen(r#""generation": 5"#, r#""generation": 9"#, 1);
    refused(&text, "two.json:13:63", "PCIe generation 9 does not exist: 1 to 6", "");
}

#[test]
fn a_cap_that_is_not_plausible() {
    for cap in ["-2.7", "0", "1e9"] {
        let regime = format!(
            r#""regimes": [{{"name": "x", "traffic": "sm_read", "sources_behind_uplink_min": 2,
              "destination_roots_min": 2, "scope": "uplink", "cap_gb_per_s": {cap},
              "source": "", "confidence": "measured"}}], "links": ["#
        );
        let text = broken(r#""links": ["#, &regime);
        refused(&text, "two.json:13:78", "GB/s is not plausible", "");
        refused(&text, "two.json:14:25", "a regime without a source", "who measured it");
    }
}

#[test]
fn a_link_to_itself_and_a_link_twice() {
    let text = extended("", &[pcie("sw0", "sw0"), pcie("sw0", "gpu0")]);
    refused(&text, "two.json:16:23", "a link from `sw0` to itself", "");
    refused(&text, "two.json:17:5", "`sw0` and `gpu0` are joined by PCIe twice", "widen the first");
}

#[test]
fn ends_that_a_link_cannot_join() {
    let socket = extended("", &[pcie("sw0", "cpu0")]);
    refused(
        &socket,
        "two.json:16:23",
        "PCIe cannot join PCIe switch `sw0` and socket `cpu0`",
        "host_bridge",
    );
    let peers = extended("", &[pcie("gpu0", "gpu1")]);
    refused(&peers, "two.json:16:5", "PCIe cannot join GPU `gpu0` and GPU `gpu1`", "NVLink");
    let nvlink = r#"{"a": "gpu0", "b": "sw0", "kind": {"nvlink": {"generation": 4, "links": 18}}}"#;
    let text = extended("", &[nvlink.to_owned()]);
    refused(&text, "two.json:16:5", "NVLink cannot join GPU `gpu0` and PCIe switch `sw0`", "");
    let xgmi = r#"{"a": "gpu0", "b": "cpu0", "kind": {"xgmi": {"links": 3, "gt_per_s": 32}}}"#;
    let text = extended("", &[xgmi.to_owned()]);
    refused(&text, "two.json:16:5", "xGMI cannot join GPU `gpu0` and socket `cpu0`", "");
    let cable = r#"{"a": "gpu0", "b": "gpu1", "kind": {"network": {"gbit_per_s": 400}}}"#;
    let text = extended("", &[cable.to_owned()]);
    refused(&text, "two.json:16:5", "network cannot join GPU `gpu0`", "joins two NICs");
}

#[test]
fn two_uplinks() {
    let root = ", \"root1\": {\"host_bridge\": {\"socket\": \"cpu0\", \"quadrant\": 1}}";
    let switch = extended(root, &[pcie("sw0", "root1")]);
    let message = "PCIe switch `sw0` has two uplinks, to `root0` and to `root1`";
    refused(&switch, "two.json:16:5", message, "with the same `chip`");
    let gpu = extended(root, &[pcie("gpu0", "root1")]);
    refused(&gpu, "two.json:16:5", "GPU `gpu0` has two PCIe uplinks, to `sw0` and to `root1`", "");
}

#[test]
fn a_circle_of_virtual_switches() {
    let switch = |name: &str, chip: &str| {
        format!(
            ", \"{name}\": {{\"pcie_switch\": {{\"model\": \"pm50100\", \"chip\": \"{chip}\"}}}}"
        )
    };
    let nodes = [switch("vs0", "A"), switch("vs1", "B"), switch("vs2", "C")].concat();
    let links = [pcie("vs0", "sw0"), pcie("vs1", "vs0"), pcie("vs2", "vs1"), pcie("vs0", "vs2")];
    let text = extended(&nodes, &links);
    let message = "PCIe switches form a circle: `vs0`, `vs1`, `vs2`, `vs0`";
    refused(&text, "two.json:19:5", message, "PCIe is a tree");

    let nodes = [switch("vs0", "A"), switch("vs1", "A")].concat();
    let text = extended(&nodes, &[pcie("vs0", "sw0"), pcie("vs1", "vs0")]);
    let message = "`vs1` and `vs0` are virtual switches of one chip `A`";
    refused(&text, "two.json:17:5", message, "remove the link");
}

#[test]
fn a_switch_without_host_bridge() {
    let text = broken(&format!(",\n    {}", pcie("sw0", "root0").replace(": 8", ": 16")), "");
    refused(&text, "two.json:7:5", "no host bridge above PCIe switch `sw0`", "host_bridge");
}

#[test]
fn names_that_are_none() {
    let text = broken(r#""name": "two""#, r#""name": " ""#);
    refused(&text, "two.json:3:11", "the name is empty", "");
    let long = format!(", \"{}\": {{\"nic\": {{\"model\": \"connectx-7\"}}}}", "n".repeat(61));
    refused(&extended(&long, &[]), "two.json:10:50", "61 characters: the limit is 60", "");
}

#[test]
fn no_gpu() {
    let text = r#"{"schema_version": 1, "name": "none", "nodes": {}}"#;
    refused(text, "two.json:1:48", "there is no GPU", "add one");
}

#[test]
fn models_and_lanes_the_caller_knows() {
    let known = |kind: &str| match kind {
        "gpu" => vec!["h200".to_owned(), "h100-sxm".to_owned()],
        "pcie_switch" => vec!["pm50100".to_owned()],
        _ => vec!["epyc-turin".to_owned()],
    };
    let text = GOOD.replacen(r#""h200""#, r#""h20O""#, 1);
    let error = parse_with("two.json", &text, &|topology| {
        let mut problems = checks::models(topology, &known);
        problems.extend(checks::lanes(topology, |_| Some(40)));
        problems
    });
    let picture = render(&error.expect_err("faults"), false);
    for part in [
        "two.json:5:31",
        "`h20O` is no GPU model the calibration knows",
        "did you mean `h200`? known: h200, h100-sxm",
        "two.json:7:5",
        "switch `sw0` has 40 lanes (pm50100), its links use 48",
    ] {
        assert!(picture.contains(part), "no `{part}` in:\n{picture}");
    }
}

#[test]
fn a_million_faults_are_told_quickly_and_briefly() {
    let link = pcie("gpu0", "nowhere");
    let links: Vec<String> = vec![link; 30_000];
    let text = extended("", &links);
    assert!(text.len() < 4 << 20);
    let picture = picture(&text);
    assert!(picture.lines().count() < 80, "{picture}");
    assert!(picture.contains("and 29992 more"), "{picture}");
    let nodes: String =
        (0..60_000).map(|n| format!(",\"n{n}\":{{\"gpu\":{{\"model\":\"x\"}}}}")).collect();
    refused(&extended(&nodes, &[]), "two.json:4:12", "60006 nodes are too many", "");
}
