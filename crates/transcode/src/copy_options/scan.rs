//! Cuts the text of an option list into tokens, by PostgreSQL's lexical rules.
//!
//! See <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>: quoted identifiers, `'...'`,
//! `E'...'` with backslash escapes, `$tag$...$tag$`. Comments and Unicode escapes (`U&'...'`) are refused.

use howdah_model::{Error, ErrorKind, Result};

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An unquoted name, folded to lower case, or a number.
    Word(String),
    /// A quoted name.
    Quoted(String),
    /// A string constant.
    Text(String),
    /// `(`, `)`, `,` or `*`.
    Mark(char),
}

/// Walks over the text.
pub(super) struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text.chars().peekable() }
    }

    /// The next token; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>> {
        while self.rest.next_if(|letter| letter.is_whitespace()).is_some() {}
        let Some(first) = self.rest.next() else { return Ok(None) };
        let token = match first {
            '(' | ')' | ',' | '*' => Token::Mark(first),
            '\'' => Token::Text(self.until('\'', false)?),
            '"' => Token::Quoted(self.until('"', false)?),
            '$' => Token::Text(self.dollar()?),
            'e' | 'E' if self.rest.next_if_eq(&'\'').is_some() => Token::Text(self.until('\'', true)?),
            _ if is_word(first) => Token::Word(self.word(first)),
            _ => return Err(syntax(&format!("unexpected character {first:?}"))),
        };
        Ok(Some(token))
    }

    fn word(&mut self, first: char) -> String {
        let mut word = first.to_lowercase().to_string();
        while let Some(letter) = self.rest.next_if(|letter| is_word(*letter)) {
            word.extend(letter.to_lowercase());
        }
        word
    }

    /// The text up to the closing quote; a doubled quote stands for one.
    fn until(&mut self, quote: char, escapes: bool) -> Result<String> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None => return Err(syntax("a quoted text does not end")),
                Some(letter) if letter == quote => {
                    if self.rest.next_if_eq(&quote).is_none() {
                        return Ok(text);
                    }
                    text.push(quote);
                }
                Some('\\') if escapes => text.push(self.escape()?),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let letter = self.rest.next().ok_or_else(|| syntax("a backslash at the end"))?;
        match letter {
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'x' => self.number(16, 2, None),
            'u' => self.number(16, 4, None),
            'U' => self.number(16, 8, None),
            '0'..='7' => self.number(8, 3, Some(letter)),
            other => Ok(other),
        }
    }

    /// A character by its code of at most `digits_max` digits.
    fn number(&mut self, radix: u32, digits_max: usize, first: Option<char>) -> Result<char> {
        let mut digits: String = first.into_iter().collect();
        while digits.len() < digits_max
            && let Some(digit) = self.rest.next_if(|letter| letter.is_digit(radix))
        {
            digits.push(digit);
        }
        let code = u32::from_str_radix(&digits, radix).ok();
        // Codes above ASCII are bytes of the database encoding in PostgreSQL; no option needs them.
        code.and_then(char::from_u32)
            .filter(|_| radix == 16 && digits_max > 2 || code.is_some_and(|code| code < 128))
            .ok_or_else(|| syntax("an escape that is not a character"))
    }

    fn dollar(&mut self) -> Result<String> {
        let mut tag = String::from("$");
        loop {
            match self.rest.next() {
                Some('$') => break,
                Some(letter) if is_word(letter) => tag.push(letter),
                _ => return Err(syntax("a dollar sign that begins no text")),
            }
        }
        tag.push('$');
        let mut text = String::new();
        for letter in self.rest.by_ref() {
            text.push(letter);
            if text.ends_with(&tag) {
                text.truncate(text.len() - tag.len());
                return Ok(text);
            }
        }
        Err(syntax("a dollar-quoted text does not end"))
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '+' | '.')
}

/// The error of a text that is not an option list.
pub(super) fn syntax(message: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the COPY options cannot be read: {message}"))
        .with_hint("write them as COPY takes them: \"(FORMAT csv, HEADER true, DELIMITER E'\\t')\"")
}
