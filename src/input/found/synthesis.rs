//! A tree that has the paths of a matrix, where nothing else is known.

use super::{Address, Found, Function, Kind, Matrix, Parent, Relation, Tree};
use crate::topology::PathType;

/// Domain of functions that no file names.
const INVENTED: u32 = u32::MAX;

/// The functions of a tree with these paths: devices that are PIX hang on one switch, those that are
/// PXB on switches below one, PHB on one host bridge, NODE on one NUMA node.
pub(super) fn functions(matrix: &Matrix) -> Found {
    let devices: Vec<usize> = (0..matrix.names.len()).collect();
    let is = |a: usize, b: usize, paths: &[PathType]| match matrix.relation(a, b) {
        Relation::Path(path) => paths.contains(&path),
        _ => false,
    };
    let leaf = groups(&devices, |a, b| is(a, b, &[PathType::Pix]));
    let top = groups(&devices, |a, b| is(a, b, &[PathType::Pix, PathType::Pxb]));
    let root = groups(&devices, |a, b| is(a, b, &[PathType::Pix, PathType::Pxb, PathType::Phb]));
    let node = numa_nodes(matrix, &root);
    let mut found = Found { tree: Tree::None, ..Found::default() };
    let gpus = matrix.gpus();
    let holds_gpu = |group: &[usize], own: usize| gpus.iter().any(|&gpu| group[gpu] == group[own]);
    let count = |group: &[usize], own: usize| group.iter().filter(|&&g| g == group[own]).count();
    let mut switches: Vec<((bool, usize), usize)> = Vec::new();
    // GPUs and NICs so far.
    let mut numbers = [0_usize; 2];
    for &device in &devices {
        let mut parent = Parent::Root(INVENTED, (root[device] % 256) as u8);
        // A group of NICs alone is one adapter with several ports.
        let two_levels = count(&top, device) > count(&leaf, device) && holds_gpu(&top, device);
        if two_levels {
            parent = switch(&mut found, &mut switches, (true, top[device]), parent, node[device]);
        }
        if two_levels || count(&leaf, device) > 1 && holds_gpu(&leaf, device) {
            parent = switch(&mut found, &mut switches, (false, leaf[device]), parent, node[device]);
        }
        let gpu = gpus.contains(&device);
        let kind = if gpu { Kind::Gpu } else { Kind::Nic };
        let place = if gpu { matrix.places.get(numbers[0]).copied() } else { None };
        let invented = Address {
            domain: INVENTED,
            bus: u8::from(!gpu),
            device: (device % 256) as u8,
            function: (device / 256) as u8,
        };
        let mut function = Function::new(place.unwrap_or(invented), parent, kind);
        function.numa = node[device];
        if matrix.numa[device].is_some_and(|said| node[device] != Some(said)) {
            let name = &matrix.names[device];
            found.conflict(
                format!("{name} is SYS to a device of its own NUMA node"),
                "the path was believed: it has a node of its own, on another socket perhaps",
            );
        }
        function.number = Some(numbers[usize::from(!gpu)] as u32);
        numbers[usize::from(!gpu)] += 1;
        found.functions.push(function);
    }
    found
}

/// The switch of a group, made when it is first needed.
fn switch(
    found: &mut Found,
    known: &mut Vec<((bool, usize), usize)>,
    key: (bool, usize),
    parent: Parent,
    numa: Option<u32>,
) -> Parent {
    if let Some(&(_, at)) = known.iter().find(|entry| entry.0 == key) {
        return Parent::Below(at);
    }
    let at = found.functions.len();
    let address = Address {
        domain: INVENTED,
        bus: 2 + u8::from(key.0),
        device: (key.1 % 256) as u8,
        function: (key.1 / 256) as u8,
    };
    let mut function = Function::new(address, parent, Kind::Switch);
    function.numa = numa;
    found.functions.push(function);
    known.push((key, at));
    Parent::Below(at)
}

/// For each device the first device of its group: the closure of a relation.
fn groups(devices: &[usize], related: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut group = devices.to_vec();
    for &a in devices {
        for &b in devices {
            if a < b && group[a] != group[b] && related(a, b) {
                let (keep, lose) = (group[a].min(group[b]), group[a].max(group[b]));
                group.iter_mut().filter(|g| **g == lose).for_each(|g| *g = keep);
            }
        }
    }
    group
}

/// NUMA node of each device: what the matrix says, where that agrees with the paths; devices that
/// are SYS to each other never share a number.
fn numa_nodes(matrix: &Matrix, root: &[usize]) -> Vec<Option<u32>> {
    let devices: Vec<usize> = (0..matrix.names.len()).collect();
    let near = |a: usize, b: usize| {
        root[a] == root[b] || matrix.relation(a, b) == Relation::Path(PathType::Node)
    };
    let group = groups(&devices, near);
    let far = |a: usize, b: usize| {
        let apart = |x: usize, y: usize| {
            let sys = Relation::Path(PathType::Sys);
            group[x] == a && group[y] == b && matrix.relation(x, y) == sys
        };
        devices.iter().any(|&x| devices.iter().any(|&y| apart(x, y)))
    };
    if matrix.numa.iter().all(Option::is_none) && group.iter().all(|head| *head == group[0]) {
        return matrix.numa.clone();
    }
    let mut taken: Vec<(usize, u32)> = Vec::new();
    let mut heads: Vec<usize> = group.clone();
    heads.sort_unstable();
    heads.dedup();
    for &head in &heads {
        let said = devices.iter().filter(|&&d| group[d] == head).find_map(|&d| matrix.numa[d]);
        // Groups that no cell tells apart, as NVLinks hide the paths, may share a node.
        let clash = |number: u32| taken.iter().any(|&(other, n)| n == number && far(head, other));
        let number = match said {
            Some(number) if !clash(number) => number,
            None if taken.is_empty() => 0,
            _ => {
                let joined = taken.iter().find(|&&(other, _)| said.is_none() && !far(head, other));
                let fresh = (0..)
                    .find(|n| taken.iter().all(|t| t.1 != *n) && !matrix.numa.contains(&Some(*n)));
                joined.map(|entry| entry.1).or(fresh).unwrap_or(0)
            }
        };
        taken.push((head, number));
    }
    group.iter().map(|g| taken.iter().find(|entry| entry.0 == *g).map(|entry| entry.1)).collect()
}
