//! Why NCCL's kernels on symmetric memory do not run (`sym_kernels.cc`).

use super::graph::PathType;
use super::version::Version;

/// The reason, or `None` where they may run: on calls whose buffers the application registered as
/// symmetric windows, and on no others. `pairs` are the paths of all pairs of ranks.
///
/// No setting lifts the gate: over PCIe they are never taken, also where peers may write.
pub fn refusal(version: Version, machines: u32, pairs: &[PathType]) -> Option<String> {
    if version < (Version { major: 2, minor: 27, patch: 0 }) {
        return Some("came with NCCL 2.27".to_owned());
    }
    if machines > 1 {
        return Some("several machines are not modelled".to_owned());
    }
    let far = pairs.iter().copied().filter(|path| *path > PathType::Nvl).max()?;
    Some(format!("needs NVLink between every two GPUs ({} is among them)", far.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetric_kernels_never_run_over_pcie() {
        let version = |text: &str| Version::parse(text).expect("a version");
        let nvlink = [PathType::Nvl; 3];
        assert_eq!(refusal(version("2.30.7"), 1, &nvlink), None);
        for path in [PathType::Nvb, PathType::Pix, PathType::Phb, PathType::Sys] {
            let pairs = [PathType::Nvl, path];
            let told = refusal(version("2.30.7"), 1, &pairs).expect("a reason");
            assert!(told.contains(path.name()), "{told}");
        }
        assert!(refusal(version("2.26.2"), 1, &nvlink).is_some());
    }
}
