//! A short name for an input's content: FNV-1a of 64 bits.

use crate::fabric::Calibration;

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
pub fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Of the constants that a prediction is made with: their names, values and confidences.
pub fn calibration_hash(calibration: &Calibration) -> u64 {
    let lines = calibration.iter().map(|(class, device, name, constant)| {
        let (value, unit) = (constant.value, &constant.unit);
        format!("{}/{device}/{name} {value} {unit} {:?}\n", class.word(), constant.confidence)
    });
    let lines: Vec<String> = lines.collect();
    fnv1a(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

/// As 16 hexadecimal digits.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        // http://www.isthe.com/chongo/tech/comp/fnv/: "" and "foobar".
        assert_eq!(fnv1a(&[""]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(&["foo", "bar"]), 0x8594_4171_f739_67e8);
    }
}
