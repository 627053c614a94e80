//! Configuration space of a PCI function: what kind of port it is, and settings that Linux shows
//! nowhere else (PCI Express base specification 5.0, sections 7.5.3 and 7.7.8).

use crate::input::found::{Function, Kind};

/// Capability of PCI Express.
const EXPRESS: u8 = 0x10;
/// Extended capability of Access Control Services.
const ACS: u16 = 0x000d;
/// Extended capabilities begin here.
const EXTENDED: usize = 0x100;
/// Lists of capabilities are no longer.
const CAPABILITIES_MAX: usize = 96;

/// Reads what the space shows; false when it is cut short, as it is without root.
pub(super) fn read(bytes: &[u8], function: &mut Function) -> bool {
    if let Some(at) = capability(bytes) {
        express(bytes, at, function);
    }
    let whole = bytes.len() > EXTENDED;
    if let Some(at) = extended(bytes, ACS) {
        // Control stands 6 bytes behind the header; bit 2 is P2P Request Redirect.
        function.redirect = word(bytes, at + 6).map(|control| control & 1 << 2 != 0);
    } else if whole && function.kind.is_bridge() {
        function.redirect = Some(false);
    }
    whole || bytes.len() >= 256
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(word(bytes, at)?) | u32::from(word(bytes, at + 2)?) << 16)
}

/// Where the Express capability stands.
fn capability(bytes: &[u8]) -> Option<usize> {
    let mut at = usize::from(*bytes.get(0x34)?) & !3;
    for _ in 0..CAPABILITIES_MAX {
        if at < 0x40 {
            return None;
        }
        if *bytes.get(at)? == EXPRESS {
            return Some(at);
        }
        at = usize::from(*bytes.get(at + 1)?) & !3;
    }
    None
}

/// Where an extended capability stands.
fn extended(bytes: &[u8], wanted: u16) -> Option<usize> {
    let mut at = EXTENDED;
    for _ in 0..CAPABILITIES_MAX {
        let header = double(bytes, at)?;
        if header == 0 || header == u32::MAX {
            return None;
        }
        if header as u16 == wanted {
            return Some(at);
        }
        at = (header >> 20) as usize & !3;
        if at < EXTENDED {
            return None;
        }
    }
    None
}

fn express(bytes: &[u8], at: usize, function: &mut Function) {
    let port = word(bytes, at + 2).map(|flags| flags >> 4 & 0xf);
    if function.kind.is_bridge() {
        function.kind = match port {
            Some(4) => Kind::RootPort,
            Some(5) => Kind::Upstream,
            Some(6) => Kind::Downstream,
            _ => function.kind,
        };
    }
    if let Some(control) = word(bytes, at + 8) {
        function.payload = Some(128 << (control >> 5 & 7));
        function.read_request = Some(128 << (control >> 12 & 7));
    }
    // Bit 17 of the second capabilities: may ask with 10-bit tags; bit 12 of the control: does.
    if let Some((able, control)) = double(bytes, at + 0x24).zip(word(bytes, at + 0x28)) {
        function.tags = Some((able & 1 << 17 != 0, control & 1 << 12 != 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::found::{Address, Parent};

    fn function() -> Function {
        Function::new(Address::default(), Parent::Root(0, 0), Kind::Bridge)
    }

    #[test]
    fn a_space_that_points_to_itself_or_is_cut_ends() {
        let mut loops = vec![0_u8; 4096];
        (loops[0x34], loops[0x40], loops[0x41]) = (0x40, 1, 0x40);
        (loops[0x100], loops[0x102], loops[0x103]) = (1, 0, 0x10);
        let mut one = function();
        assert!(read(&loops, &mut one));
        assert_eq!((one.kind, one.redirect), (Kind::Bridge, Some(false)));
        for end in 0..=256 {
            let mut bytes = vec![0xff_u8; end];
            if end > 0x34 {
                bytes[0x34] = 0xfc;
            }
            read(&bytes, &mut function());
        }
    }
}
