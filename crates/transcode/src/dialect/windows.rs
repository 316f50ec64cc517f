//! The sample as text: each window decoded to UTF-8, with the way back from an offset in the text to one
//! in the file.

use super::Sample;
use super::encoding::{Decoding, Encoding, nuls};
use std::borrow::Cow;
use std::ops::Range;

/// One window of the file.
pub(super) struct Window<'a> {
    /// UTF-8, or the file's own bytes where only the server knows the encoding. Sequences that mean nothing
    /// are as they are in UTF-8, else replaced.
    pub(super) text: Cow<'a, [u8]>,
    /// Where the first record that is whole may begin.
    pub(super) from: usize,
    /// It may begin inside a record: it is not the file's first one.
    pub(super) begins_inside: bool,
    /// The file ends with this window.
    pub(super) at_end: bool,
    /// Behind the text stood lines of NULs or Ctrl-Z alone, with which the file was filled up.
    pub(super) padded: bool,
    raw: &'a [u8],
    /// The offset in the file of `raw`, if known.
    raw_start: Option<u64>,
    decoding: Option<Decoding>,
}

/// All windows. The middle and the tail are missing when the head is all of the file.
pub(super) struct Windows<'a> {
    pub(super) head: Window<'a>,
    pub(super) middle: Option<Window<'a>>,
    pub(super) tail: Option<Window<'a>>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(sample: &Sample<'a>, encoding: &Encoding) -> Windows<'a> {
        let decoding = encoding.decoding();
        let head = &sample.head[encoding.bom_bytes.min(sample.head.len())..];
        let head_start = (sample.head.len() - head.len()) as u64;
        let tail_start = sample.size_bytes.map(|size| size.saturating_sub(sample.tail.len() as u64));
        let later = |bytes: &'a [u8], at_end, start| {
            let mut window = Window::new(bytes, at_end, start, decoding.clone());
            window.begins_inside = true;
            window.skip_to_record();
            (!sample.whole && window.from < window.text.len()).then_some(window)
        };
        Windows {
            head: Window::new(head, sample.whole, Some(head_start), decoding.clone()),
            middle: later(sample.middle, false, None),
            tail: later(sample.tail, true, tail_start),
        }
    }

    /// Leaves out the line `\.` with which COPY text ends.
    pub(super) fn cut_end_marker(&mut self) {
        for window in std::iter::once(&mut self.head).chain(&mut self.middle).chain(&mut self.tail) {
            if let Some(end) = window.end_marker() {
                window.cut(end);
            }
        }
    }

    /// Keeps these parts, of each window one: what is whole records. A window without any is left out.
    pub(super) fn keep(&mut self, parts: &[Range<usize>]) {
        let windows = std::iter::once(&mut self.head).chain(&mut self.middle).chain(&mut self.tail);
        windows.zip(parts).for_each(|(window, part)| window.keep(part));
        self.middle.take_if(|window| window.from >= window.text.len());
        self.tail.take_if(|window| window.from >= window.text.len());
    }

    /// Head, middle and tail, as far as they are there.
    pub(super) fn all(&self) -> impl Iterator<Item = &Window<'a>> {
        std::iter::once(&self.head).chain(&self.middle).chain(&self.tail)
    }
}

impl<'a> Window<'a> {
    /// Text that begins with a record and is not looked for in the file.
    pub(super) fn of_text(text: &'a [u8], at_end: bool) -> Window<'a> {
        Window {
            text: Cow::Borrowed(text),
            from: 0,
            begins_inside: false,
            at_end,
            padded: false,
            raw: &[],
            raw_start: None,
            decoding: None,
        }
    }

    pub(super) fn new(
        bytes: &'a [u8],
        at_end: bool,
        start: Option<u64>,
        decoding: Option<Decoding>,
    ) -> Window<'a> {
        let shift = decoding.as_ref().map_or(0, |decoding| alignment(decoding, bytes, start));
        let raw = &bytes[shift.min(bytes.len())..];
        let text = match &decoding {
            Some(decoding) => match decoding.text(raw) {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
            None => Cow::Borrowed(raw),
        };
        let end = if at_end { filled_up(&text) } else { None };
        let text = match (end, text) {
            (None, text) => text,
            (Some(end), Cow::Borrowed(text)) => Cow::Borrowed(&text[..end]),
            (Some(end), Cow::Owned(mut text)) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        };
        let raw_start = start.map(|start| start + shift as u64);
        Window {
            text,
            from: 0,
            begins_inside: false,
            at_end,
            padded: end.is_some(),
            raw,
            raw_start,
            decoding,
        }
    }

    /// The same bytes. For scoring: its offsets do not lead back to the file.
    pub(super) fn borrow(&self) -> Window<'_> {
        self.view(0, self.text.len())
    }

    /// The same bytes from `from` to `to`. For scoring: its offsets do not lead back to the file.
    pub(super) fn view(&self, from: usize, to: usize) -> Window<'_> {
        Window {
            from: self.from.saturating_sub(from),
            begins_inside: self.begins_inside || from > 0,
            ..Window::of_text(&self.text[from..to], self.at_end && to == self.text.len())
        }
    }

    /// A later window begins anywhere: what is before the first line ending is not looked at.
    pub(super) fn skip_to_record(&mut self) {
        let Some(at) = memchr::memchr2(b'\n', b'\r', &self.text) else {
            self.from = self.text.len();
            return;
        };
        let pair = self.text[at] == b'\r' && self.text.get(at + 1) == Some(&b'\n');
        self.from = at + 1 + usize::from(pair);
    }

    /// Where the line `\.` begins with which the file ends, as COPY text may. In any other dialect it is a
    /// record.
    pub(super) fn end_marker(&self) -> Option<usize> {
        let is_ending = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = self.text.iter().rposition(|byte| !is_ending(byte)).filter(|_| self.at_end)?;
        let before = self.text[..=end].strip_suffix(b"\\.")?;
        let begins_line = before.last().is_none_or(is_ending) && before.len() >= self.from;
        // A line ending behind a backslash is a datum.
        let escaped = before.trim_ascii_end().ends_with(b"\\");
        (begins_line && !escaped).then_some(before.len())
    }

    /// Nothing from here on is data.
    fn cut(&mut self, end: usize) {
        self.truncate(end);
        self.padded = true;
    }

    /// Leaves out what is before and behind whole records.
    fn keep(&mut self, part: &Range<usize>) {
        self.from = part.start;
        if part.end < self.text.len() {
            self.truncate(part.end);
            self.at_end = false;
        }
    }

    fn truncate(&mut self, end: usize) {
        match &mut self.text {
            Cow::Borrowed(text) => *text = &text[..end],
            Cow::Owned(text) => text.truncate(end),
        }
    }

    /// The offset in the file of an offset in the text.
    pub(super) fn plain_byte(&self, text_byte: usize) -> Option<u64> {
        Some(self.raw_start? + self.raw_bytes(text_byte) as u64)
    }

    fn raw_bytes(&self, text_byte: usize) -> usize {
        self.decoding.as_ref().map_or(text_byte, |decoding| decoding.bytes_read(self.raw, text_byte))
    }
}

/// Where the data ends in a file that was filled up with NULs, or ended with Ctrl-Z as DOS did, on lines of
/// their own.
fn filled_up(text: &[u8]) -> Option<usize> {
    let is_filling = |byte: &u8| matches!(byte, 0 | 0x1A);
    let data = text.iter().rposition(|byte| !is_filling(byte) && !matches!(byte, b'\n' | b'\r'));
    let behind = data.map_or(0, |last| last + 1);
    let first = behind + text[behind..].iter().position(is_filling)?;
    // What follows a record directly may be its last field's.
    (behind == 0 || first > behind).then_some(first)
}

/// How many bytes to leave out so that units of two bytes begin at the border of a window.
fn alignment(decoding: &Decoding, bytes: &[u8], start: Option<u64>) -> usize {
    let Some(little) = decoding.units() else { return 0 };
    if let Some(start) = start {
        return usize::from(start % 2 == 1);
    }
    let (even, odd) = nuls(bytes);
    usize::from(if little { even > odd } else { odd > even })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(name: &str) -> Encoding {
        Encoding { name: name.to_owned(), bom_bytes: 0, recoded: name.starts_with("UTF-16") }
    }

    #[test]
    fn offsets_lead_back_to_the_file() {
        let text = "zoë,日本\n1,2\n";
        let raw = encoding_rs::SHIFT_JIS.encode(&text.replace('ë', "本")).0.into_owned();
        let sample = Sample::of_whole(&raw);
        let windows = Windows::new(&sample, &encoding("SJIS"));
        let line = windows.head.text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let raw_line = raw.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(windows.head.plain_byte(line), Some(raw_line as u64));
        assert_eq!(windows.head.plain_byte(windows.head.text.len()), Some(raw.len() as u64));
        assert_eq!(windows.head.plain_byte(0), Some(0));
    }

    #[test]
    fn later_windows_begin_at_a_line_and_at_a_unit() {
        let raw: Vec<u8> = "ab\ncd\nef\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let sample = Sample {
            head: &raw[..4],
            middle: &raw[3..12],
            tail: &raw[9..],
            whole: false,
            size_bytes: Some(raw.len() as u64),
        };
        let windows = Windows::new(&sample, &encoding("UTF-16LE"));
        let middle = windows.middle.unwrap();
        assert_eq!(&middle.text[middle.from..], b"cd\n");
        let tail = windows.tail.unwrap();
        assert_eq!((&tail.text[tail.from..], tail.plain_byte(tail.from)), (&b"ef\n"[..], Some(12)));
    }
}
