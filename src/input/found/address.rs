//! Where a PCI function is.

use std::fmt;

/// Domain, bus, device and function.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Domain (segment).
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device on it.
    pub device: u8,
    /// Function of it.
    pub function: u8,
}

impl Address {
    /// Reads `0000:3b:00.0`, `3b:00.0` or NVIDIA's `00000000:3B:00.0`.
    pub fn parse(text: &str) -> Option<Address> {
        let (rest, function) = text.trim().rsplit_once('.')?;
        let parts: Vec<&str> = rest.split(':').collect();
        let (domain, bus, device) = match parts.as_slice() {
            [bus, device] => ("0", *bus, *device),
            [domain, bus, device] => (*domain, *bus, *device),
            _ => return None,
        };
        let short = bus.len() <= 2 && device.len() <= 2 && function.len() == 1;
        let hex = |text: &str| {
            let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
            if digits { u32::from_str_radix(text, 16).ok() } else { None }
        };
        let address = Address {
            domain: hex(domain)?,
            bus: u8::try_from(hex(bus)?).ok()?,
            device: u8::try_from(hex(device)?).ok()?,
            function: u8::try_from(hex(function)?).ok()?,
        };
        short.then_some(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { domain, bus, device, function } = self;
        write!(out, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn all_spellings_are_one_place() {
        let told = |text| Address::parse(text).map(|address| address.to_string());
        for text in ["0000:3b:00.0", "3b:00.0", "00000000:3B:00.0", " 3b:00.0 "] {
            assert_eq!(told(text).as_deref(), Some("0000:3b:00.0"), "{text}");
        }
        assert_eq!(told("10000:e1:1f.7").as_deref(), Some("10000:e1:1f.7"));
        for text in ["", "3b:00", "3b.0", "xx:00.0", "00:3b:00:00.0", "+1:00.0", "3b:000.0"] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
