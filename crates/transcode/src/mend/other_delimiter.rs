//! A row with another delimiter than the file's, as pasted in from another file.

use howdah_model::Dialect;

/// Delimiters that files have, the most usual first.
const DELIMITERS: [&str; 7] = [",", ";", "\t", "|", "^", "~", "\u{1f}"];

/// Delimiters that also stand in many values.
const WEAK_DELIMITERS: [&str; 2] = [":", " "];

/// Rows with fewer fields look like words and times of day where the delimiter is weak.
const WEAK_WIDTH_MIN: usize = 3;

/// The file's dialect with every other delimiter that a row of this width may have.
pub(super) fn dialects(dialect: &Dialect, width: usize) -> Vec<Dialect> {
    let weak: &[&str] = if width < WEAK_WIDTH_MIN { &[] } else { &WEAK_DELIMITERS };
    let spaced = format!("{} ", dialect.delimiter);
    let spaced = if dialect.delimiter.trim().is_empty() { None } else { Some(spaced.as_str()) };
    let others = spaced.into_iter().chain(DELIMITERS).chain(weak.iter().copied());
    // Where the file's own is one of these repeated, a row in it would fall into fields and gaps.
    let others = others.filter(|&other| width > 1 && !dialect.delimiter.replace(other, "").is_empty());
    let with =
        |other: &str| Dialect { delimiter: other.to_owned(), repeats: false, eol: None, ..dialect.clone() };
    others.map(with).collect()
}

/// This delimiter counts only in a row that the file's own does not split, and that looks like those behind
/// it.
pub(super) fn is_weak(delimiter: &str) -> bool {
    WEAK_DELIMITERS.contains(&delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_delimiter_is_tried() {
        let found = |width| -> Vec<String> {
            dialects(&Dialect::csv(), width).into_iter().map(|other| other.delimiter).collect()
        };
        assert_eq!(found(2), [", ", ";", "\t", "|", "^", "~", "\u{1f}"]);
        assert_eq!(found(3)[7..], [":", " "]);
        assert!(found(1).is_empty());
        let bars = Dialect { delimiter: "||".to_owned(), ..Dialect::csv() };
        assert!(dialects(&bars, 2).iter().all(|other| other.delimiter != "|"));
    }
}
