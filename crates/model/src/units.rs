//! How messages write numbers.

/// A count for people: `4,000,000`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (no, digit) in digits.chars().enumerate() {
        if no > 0 && (digits.len() - no).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
