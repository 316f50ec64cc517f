//! The few ways a field is appended to a row.

/// IMDb's (and COPY text's) spelling of an absent value.
pub(crate) const NULL: &[u8] = b"\\N";

/// Appends a decimal number.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    push_padded(out, number, 1);
}

/// Appends a decimal number with zeros in front up to `digits` digits (at most 20).
pub(crate) fn push_padded(out: &mut Vec<u8>, mut number: u64, digits: usize) {
    let mut text = [b'0'; 20];
    let mut start = text.len();
    while number > 0 {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&text[start.min(text.len() - digits)..]);
}

/// Appends an identifier such as `tt0000001`: at least seven digits.
pub(crate) fn push_id(out: &mut Vec<u8>, prefix: &[u8; 2], number: u32) {
    out.extend_from_slice(prefix);
    push_padded(out, u64::from(number), 7);
}

/// Ends a field.
pub(crate) fn tab(out: &mut Vec<u8>) {
    out.push(b'\t');
}

/// Replaces the last separator by the end of the line.
pub(crate) fn end_line(out: &mut [u8]) {
    if let Some(last) = out.last_mut() {
        *last = b'\n';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_at_least_seven_digits() {
        let mut out = Vec::new();
        push_id(&mut out, b"tt", 42);
        push_id(&mut out, b"nm", 12_345_678);
        push_number(&mut out, 0);
        push_number(&mut out, u64::MAX);
        assert_eq!(out, b"tt0000042nm12345678018446744073709551615");
    }
}
