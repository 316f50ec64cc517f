//! A row quoted, or with its quotes escaped, in another way than the file's: `'a,b'` among `"a,b"`, `\"`
//! among `""`.

use howdah_model::{Dialect, Escape};

/// The file's dialect with every other escape.
pub(crate) fn escapes(dialect: &Dialect) -> Vec<Dialect> {
    let others: &[Escape] = match (dialect.quote, dialect.escape) {
        (None, _) => &[],
        (_, Escape::Doubled) => &[Escape::Backslash],
        (_, Escape::Backslash) => &[Escape::Doubled],
        (_, Escape::None) => &[Escape::Doubled, Escape::Backslash],
    };
    others.iter().map(|&escape| Dialect { escape, eol: None, ..dialect.clone() }).collect()
}

/// The file's dialect with every other quote. Backslashes keep their meaning; in COPY's text format, which
/// has no quotes, they have another one, so quotes are doubled there.
pub(crate) fn quotes(dialect: &Dialect) -> Vec<Dialect> {
    let escape = if dialect.quote.is_none() { Escape::Doubled } else { dialect.escape };
    let others = [b'"', b'\'']
        .into_iter()
        .filter(|&quote| dialect.quote != Some(quote) && !dialect.delimiter.as_bytes().contains(&quote));
    others.map(|quote| Dialect { quote: Some(quote), escape, eol: None, ..dialect.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_style_is_tried() {
        let csv = Dialect::csv();
        assert_eq!(escapes(&csv).iter().map(|other| other.escape).collect::<Vec<_>>(), [Escape::Backslash]);
        assert_eq!(quotes(&csv).iter().map(|other| other.quote).collect::<Vec<_>>(), [Some(b'\'')]);
        let bare = Dialect { quote: None, escape: Escape::None, ..csv };
        assert!(escapes(&bare).is_empty());
        let found: Vec<_> = quotes(&bare).iter().map(|other| (other.quote, other.escape)).collect();
        assert_eq!(found, [(Some(b'"'), Escape::Doubled), (Some(b'\''), Escape::Doubled)]);
    }
}
