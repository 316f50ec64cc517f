//! A row that ends in another way than the file's: `\n` in a file of `\r\n`, and the like.

use howdah_model::{Dialect, Eol};

/// The dialect with any line ending.
pub(super) fn dialect(dialect: &Dialect) -> Dialect {
    Dialect { eol: None, ..dialect.clone() }
}

/// Does the row, its line ending included, end in another way than `eol`? A last row without any does not.
pub(super) fn ends_otherwise(row: &[u8], eol: Option<Eol>) -> bool {
    let found = match row {
        [.., b'\r', b'\n'] => Eol::CrLf,
        [.., b'\n'] => Eol::Lf,
        [.., b'\r'] => Eol::Cr,
        _ => return false,
    };
    eol.is_some_and(|eol| eol != found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_are_compared_with_the_files() {
        assert!(ends_otherwise(b"a\r\n", Some(Eol::Lf)) && ends_otherwise(b"a\n", Some(Eol::CrLf)));
        assert!(ends_otherwise(b"a\r", Some(Eol::Lf)) && !ends_otherwise(b"a\r", Some(Eol::Cr)));
        assert!(!ends_otherwise(b"a", Some(Eol::Lf)) && !ends_otherwise(b"a\r", None));
    }
}
