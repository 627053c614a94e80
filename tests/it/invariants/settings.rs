//! Do the switches of a machine do what they say?

use collsim::algorithm::probe::chase;
use collsim::algorithm::streams::{Stream, streams};
use collsim::engine::Fidelity;
use collsim::topology::{Settings, Topology};

use crate::rig::{Rig, anomaly, choices, topology};

fn with(name: &str, settings: Settings) -> Rig {
    Rig::of(Topology { settings, ..topology(name) })
}

/// Nodes of a path.
fn nodes(rig: &Rig, from: u32, to: u32) -> Vec<u32> {
    let links = rig.fabric.path(from, to).expect("a path");
    links.iter().map(|&link| rig.fabric.links[link as usize].to).collect()
}

#[test]
fn without_peer_to_peer_all_goes_by_host_memory() {
    for name in ["rtxpro6000x8-direct", "rtxpro6000x8-flat", "rtx4090x8-rome"] {
        let peer = with(name, Settings { peer_to_peer: true, ..Settings::default() });
        let host = with(name, Settings { peer_to_peer: false, ..Settings::default() });
        for choice in choices() {
            let schedule = host.schedule(choice, 14_336);
            let flows = schedule.flows();
            assert!(!flows.is_empty());
            for flow in flows {
                let by_host = !host.fabric.is_gpu(flow.target);
                assert!(by_host, "{name}, {}: {flow:?}", schedule.name);
            }
            let flags = schedule.messages.iter();
            let away = flags.filter(|flag| flag.from != flag.to && host.fabric.is_gpu(flag.home));
            assert_eq!(away.count(), 0, "{name}, {}", schedule.name);
            for (fidelity, model) in Fidelity::ALL {
                let (by_host, by_peer) = (
                    host.time(&schedule, fidelity),
                    peer.time(&peer.schedule(choice, 14_336), fidelity),
                );
                let place = format!("{name}, {}, {model}", schedule.name);
                assert!(by_host > by_peer, "{place}: {by_host} by host, {by_peer} by peer");
            }
        }
    }
}

#[test]
fn acs_redirect_goes_by_the_root_complex_and_takes_longer() {
    let name = "rtxpro6000x8-flat";
    let direct = with(name, Settings::default());
    let redirected = with(name, Settings { acs_redirect: true, ..Settings::default() });
    let socket = direct.fabric.endpoint_count() as u32;
    assert!(!nodes(&direct, 0, 1).contains(&socket));
    assert!(nodes(&redirected, 0, 1).contains(&socket));
    // Between switches the way is the same.
    assert_eq!(nodes(&direct, 0, 4), nodes(&redirected, 0, 4));
    for choice in choices() {
        for (fidelity, model) in Fidelity::ALL {
            let before = direct.time(&direct.schedule(choice, 43_008), fidelity);
            let after = redirected.time(&redirected.schedule(choice, 43_008), fidelity);
            let place = format!("{} {:?}, {model}", choice.0.name, choice.1);
            // The slowest step of a ring or a barrier passes the root complex anyway.
            let least = before.as_us() * (1.0 - anomaly(fidelity, choice));
            assert!(after.as_us() >= least, "{place}: {before} before, {after} after");
        }
    }
    let read = chase(&[(0, 1)], 128, 10);
    for (fidelity, _) in Fidelity::ALL {
        assert!(redirected.time(&read, fidelity) > direct.time(&read, fidelity));
    }
}

#[test]
fn the_iommu_slows_what_passes_a_root_port() {
    for (name, peer) in [("rtxpro6000x8-direct", 1), ("rtxpro6000x8-flat", 7)] {
        let off = with(name, Settings::default());
        let on = with(name, Settings { iommu: true, ..Settings::default() });
        let far = [Stream::write(0, peer, 4 << 20), Stream::read(peer, 0, 4 << 20)];
        for (fidelity, model) in Fidelity::ALL {
            for stream in far {
                let copy = streams(&[stream]);
                let ratio = on.time(&copy, fidelity).as_us() / off.time(&copy, fidelity).as_us();
                assert!(ratio > 1.1, "{name}, {model}: {ratio}");
            }
            let read = chase(&[(0, peer)], 128, 10);
            assert!(on.time(&read, fidelity) > off.time(&read, fidelity), "{name}, {model}");
        }
        for choice in choices() {
            for (fidelity, model) in Fidelity::ALL {
                let before = off.time(&off.schedule(choice, 43_008), fidelity);
                let after = on.time(&on.schedule(choice, 43_008), fidelity);
                let place = format!("{name}, {} {:?}, {model}", choice.0.name, choice.1);
                let least = before.as_us() * (1.0 - anomaly(fidelity, choice));
                assert!(after.as_us() >= least, "{place}: {before} before, {after} after");
            }
        }
    }
}
