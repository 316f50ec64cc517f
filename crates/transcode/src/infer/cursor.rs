//! A place in a value from which the parsers take what they expect.

/// The bytes not yet taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    /// Takes this byte if it is next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((&first, rest)) if first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes the next byte if it is one of these.
    pub(super) fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if !bytes.contains(&first) {
            return None;
        }
        self.0 = rest;
        Some(first)
    }

    /// Takes all digits that come next, perhaps none.
    pub(super) fn digits(&mut self) -> &'a [u8] {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        digits
    }

    /// Takes a number of one or two digits, leaving none behind; gives how many with it.
    pub(super) fn short(&mut self) -> Option<(u8, usize)> {
        let digits = self.digits();
        match *digits {
            [one] => Some((one - b'0', 1)),
            [ten, one] => Some(((ten - b'0') * 10 + (one - b'0'), 2)),
            _ => None,
        }
    }

    /// Takes the blanks that come next; tells whether there were any.
    pub(super) fn blanks(&mut self) -> bool {
        let before = self.0.len();
        self.0 = self.0.trim_ascii_start();
        self.0.len() < before
    }

    pub(super) fn is_done(self) -> bool {
        self.0.is_empty()
    }
}

/// The value without spaces and tabs around it. PostgreSQL passes over them in front of and behind
/// numbers, dates and words for true and false.
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
