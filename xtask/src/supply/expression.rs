//! SPDX licence expressions: `MIT OR (Apache-2.0 AND BSD-3-Clause)`, with `/` for OR as old manifests have
//! it.

use crate::Result;

/// Whether some choice that the expression leaves is allowed.
pub(super) fn holds(text: &str, allowed: &[String]) -> Result<bool> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, at: 0, allowed };
    let result = reader.any();
    match result {
        Some(result) if reader.at == words.len() => Ok(result),
        _ => Err(format!("\"{text}\" is no licence expression")),
    }
}

struct Reader<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Option<bool> {
        let mut result = self.all()?;
        while self.takes("OR") {
            result |= self.all()?;
        }
        Some(result)
    }

    fn all(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.takes("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let inner = self.any()?;
            return self.takes(")").then_some(inner);
        }
        let mut name = self.next().filter(|word| !["AND", "OR", "WITH", ")"].contains(word))?.to_owned();
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_demands_and_exceptions_are_understood() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for (text, wanted) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT AND ISC", true),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("GPL-3.0 OR MIT AND BSD-3-Clause", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
        ] {
            assert_eq!(holds(text, &allowed), Ok(wanted), "{text}");
        }
        for text in ["", "MIT OR", "(MIT", "MIT ISC", "AND", "MIT WITH"] {
            assert!(holds(text, &allowed).is_err(), "{text}");
        }
    }
}
