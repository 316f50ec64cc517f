//! Character encodings: those the server reads itself, and the way to UTF-8 for all others.
//!
//! Conversion is strict: a byte sequence that stands for no character is an error at its offset, or is marked
//! for whoever mends records, never a replacement character.

use super::OwnReading;
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use howdah_model::{Error, ErrorKind, Result};
use std::io::{self, Read};

/// All encodings PostgreSQL knows, by every name (`pg_encname_tbl` in `encnames.c`).
pub(super) const SERVER_ENCODINGS: &[&str] = &[
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso88591",
    "iso885910",
    "iso885913",
    "iso885914",
    "iso885915",
    "iso885916",
    "iso88592",
    "iso88593",
    "iso88594",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "iso88599",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin1",
    "latin10",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "sqlascii",
    "tcvn",
    "tcvn5712",
    "uhc",
    "unicode",
    "utf8",
    "vscii",
    "win",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
    "win866",
    "win874",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows1250",
    "windows1251",
    "windows1252",
    "windows1253",
    "windows1254",
    "windows1255",
    "windows1256",
    "windows1257",
    "windows1258",
    "windows866",
    "windows874",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];

/// What becomes of a byte sequence that stands for no character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Reading ends with an error, behind the text before it.
    Refused,
    /// [`BROKEN`] takes its place.
    Marked,
}

/// The beginning of a character of UTF-8 that does not end: no text, one U+FFFD to those who mend, and as
/// long as that.
const BROKEN: &[u8] = b"\xF0\x9F\x98";

/// Room enough for any character.
const SPARE_BYTES: usize = 64;

/// Plain bytes read at a time.
const INPUT_BYTES: usize = 64 << 10;

/// Must a file in this encoding be converted before the server can read it? `false` for every encoding
/// PostgreSQL has a name for.
///
/// # Errors
/// `Usage` if nobody knows the encoding.
pub fn needs_utf8(encoding: &str) -> Result<bool> {
    if SERVER_ENCODINGS.binary_search(&normalised(encoding).as_str()).is_ok() {
        return Ok(false);
    }
    find(encoding).map(|_| true)
}

/// Files in this encoding can be converted here.
///
/// # Errors
/// `Usage` if nobody knows the encoding; `Unsupported` if the server alone does.
pub fn expect_convertible(encoding: &str) -> Result<()> {
    find(encoding).map(drop)
}

/// The bytes of `plain` in UTF-8, a byte order mark taken off. `encoding` is any label of the WHATWG
/// Encoding Standard; `UTF-16` without an `LE` or `BE` obeys the byte order mark and is little-endian
/// without one.
///
/// Reading fails with an [`io::Error`] that carries an [`Error`] (kind `Record`) with the offset of the
/// offending byte; [`crate::decompress::error`] takes it out. Where such bytes are `malformed` as
/// [`Malformed::Marked`], it does not fail for them.
///
/// # Errors
/// As for [`expect_convertible`].
pub fn to_utf8<'a, R: Read + Send + 'a>(
    encoding: &str,
    plain: R,
    malformed: Malformed,
) -> Result<Box<dyn Read + Send + 'a>> {
    let found = find(encoding)?;
    let decoder = match normalised(encoding).as_str() {
        // Takes either byte order mark for what it says.
        "utf16" => found.new_decoder(),
        _ => found.new_decoder_with_bom_removal(),
    };
    // PostgreSQL's name where its word goes.
    let own = OwnReading::of(encoding);
    let name = if own.is_some() { encoding } else { found.name() }.to_owned();
    let input = vec![0; INPUT_BYTES].into_boxed_slice();
    Ok(Box::new(Converted {
        plain,
        name,
        decoder,
        own,
        malformed,
        broken: None,
        input,
        start: 0,
        end: 0,
        is_starved: true,
        phase: Phase::Reading,
        consumed_bytes: 0,
        spare: io::Cursor::default(),
    }))
}

/// The bytes of UTF-8 text in the encoding of the file that they were read from with [`to_utf8`], whose
/// characters it has. Of the few characters that an East Asian encoding spells in two ways the usual spelling
/// is given. `None` for what the file cannot have held.
pub fn from_utf8(encoding: &str, utf8: &[u8]) -> Option<Vec<u8>> {
    let (found, text) = (whatwg(encoding)?, std::str::from_utf8(utf8).ok()?);
    if let Some(own) = OwnReading::of(encoding) {
        return own.bytes(text);
    }
    let units = text.encode_utf16();
    if found == UTF_16LE {
        return Some(units.flat_map(u16::to_le_bytes).collect());
    }
    if found == UTF_16BE {
        return Some(units.flat_map(u16::to_be_bytes).collect());
    }
    let (bytes, _, has_errors) = found.encode(text);
    (!has_errors).then(|| bytes.into_owned())
}

/// What a file in this encoding begins with, so that editors know it: UTF-16 has a byte order mark, all
/// others nothing.
pub fn byte_order_mark(encoding: &str) -> &'static [u8] {
    match whatwg(encoding) {
        Some(found) if found == UTF_16LE => b"\xFF\xFE",
        Some(found) if found == UTF_16BE => b"\xFE\xFF",
        _ => b"",
    }
}

/// A short piece of text in an encoding of the server or of the WHATWG.
///
/// # Errors
/// `Record` if it is not valid; `Unsupported` if only the server knows the encoding and the text is not
/// ASCII.
pub(crate) fn decode(encoding: Option<&str>, bytes: &[u8]) -> Result<String> {
    let name = encoding.unwrap_or("UTF8");
    let invalid = || Error::new(ErrorKind::Record, format!("the header is not valid {name}"));
    if let Some(own) = OwnReading::of(name) {
        return own.strict_text(bytes).ok_or_else(invalid);
    }
    let found = match normalised(name).as_str() {
        "utf8" | "unicode" | "sqlascii" => UTF_8,
        _ if bytes.is_ascii() => UTF_8,
        _ => whatwg(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("column names in {name} that are not ASCII are not read"),
            )
            .with_hint("name the columns with --columns")
        })?,
    };
    let text = found.decode_without_bom_handling_and_without_replacement(bytes);
    text.map(std::borrow::Cow::into_owned).ok_or_else(invalid)
}

/// May COPY take these bytes of a file for text? `false` for a NUL and for a broken character: in UTF-8 any,
/// in extended Unix codes any that the server's own check refuses. Of single-byte encodings the server
/// judges.
pub(crate) fn is_text(encoding: Option<&str>, bytes: &[u8]) -> bool {
    if bytes.contains(&0) {
        return false;
    }
    match normalised(encoding.unwrap_or("UTF8")).as_str() {
        "utf8" | "unicode" => std::str::from_utf8(bytes).is_ok(),
        "eucjp" | "eucjis2004" => consists_of(japanese_character, bytes),
        "euctw" => consists_of(taiwanese_character, bytes),
        name if name.starts_with("euc") => consists_of(two_byte_character, bytes),
        _ => true,
    }
}

/// Text from end to end: each time the length of the first character, `None` if it is broken.
fn consists_of(character: fn(&[u8]) -> Option<usize>, mut bytes: &[u8]) -> bool {
    while let Some(first) = bytes.first() {
        let length = if first.is_ascii() { Some(1) } else { character(bytes) };
        match length.and_then(|length| bytes.get(length..)) {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    true
}

/// `pg_euckr_verifychar` in `wchar.c`, which is `pg_euccn_verifychar` too.
fn two_byte_character(bytes: &[u8]) -> Option<usize> {
    matches!(bytes, [0xA1..=0xFE, 0xA1..=0xFE, ..]).then_some(2)
}

/// `pg_eucjp_verifychar`, also for EUC_JIS_2004.
fn japanese_character(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0x8E, 0xA1..=0xDF, ..] => Some(2),
        [0x8F, 0xA1..=0xFE, 0xA1..=0xFE, ..] => Some(3),
        _ => two_byte_character(bytes),
    }
}

/// `pg_euctw_verifychar`, which looks no further at the first of two bytes.
fn taiwanese_character(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0x8E, 0xA1..=0xA7, 0xA1..=0xFE, 0xA1..=0xFE, ..] => Some(4),
        [0x8E | 0x8F, ..] => None,
        [0x80..=0xFF, 0xA1..=0xFE, ..] => Some(2),
        _ => None,
    }
}

/// As PostgreSQL compares names of encodings.
pub(super) fn normalised(encoding: &str) -> String {
    encoding.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The encoding of this name, if the WHATWG has it. Where PostgreSQL means another one by the name, or spells
/// it otherwise, its word goes.
pub(crate) fn whatwg(encoding: &str) -> Option<&'static Encoding> {
    let name = normalised(encoding);
    let label = match name.as_str() {
        "utf16" | "utf16le" => return Some(UTF_16LE),
        "utf16be" => return Some(UTF_16BE),
        // To the WHATWG this is UTF-16.
        "unicode" => return Some(UTF_8),
        "utf8" => "utf-8",
        "win" => "windows-1251",
        "abc" | "tcvn" | "tcvn5712" | "vscii" => "windows-1258",
        "iso885916" => "iso-8859-16",
        "latin7" => "iso-8859-13",
        "latin8" => "iso-8859-14",
        "latin9" => "iso-8859-15",
        "latin10" => "iso-8859-16",
        "alt" | "win866" | "windows866" => "ibm866",
        "koi8" | "koi8r" => "koi8-r",
        "koi8u" => "koi8-u",
        "eucjp" => "euc-jp",
        "euckr" | "uhc" | "win949" | "windows949" => "euc-kr",
        "euccn" | "gbk" | "win936" | "windows936" => "gbk",
        "mskanji" | "shiftjis" | "win932" | "windows932" => "sjis",
        "win950" | "windows950" => "big5",
        name => {
            let windows = name.strip_prefix("windows").or_else(|| name.strip_prefix("win"));
            return match windows.filter(|number| number.starts_with(|c: char| c.is_ascii_digit())) {
                Some(number) => Encoding::for_label(format!("windows-{number}").as_bytes()),
                // The WHATWG has `iso88595` for PostgreSQL's `ISO_8859_5`.
                None => {
                    Encoding::for_label(encoding.as_bytes()).or_else(|| Encoding::for_label(name.as_bytes()))
                }
            };
        }
    };
    Encoding::for_label(label.as_bytes())
}

fn find(encoding: &str) -> Result<&'static Encoding> {
    whatwg(encoding).ok_or_else(|| {
        if SERVER_ENCODINGS.binary_search(&normalised(encoding).as_str()).is_ok() {
            return of_the_server(encoding);
        }
        Error::new(ErrorKind::Usage, format!("there is no encoding called \"{encoding}\""))
            .with_hint("use a name PostgreSQL knows (LATIN1, WIN1252, SJIS ...) or one of the WHATWG (utf-16le, macintosh ...)")
    })
}

fn of_the_server(encoding: &str) -> Error {
    let message = format!(
        "{encoding} is read by PostgreSQL alone, and these files have to be made UTF-8 before they are sent: the server does not convert \
         {encoding} to the encoding of the database, or records are to be rewritten"
    );
    Error::new(ErrorKind::Unsupported, message).with_hint(format!(
        "convert the files: iconv -f {encoding} -t UTF-8; where the server converts {encoding}, --format, with what else differs from COPY's \
         csv, and without --nul sends them as they are"
    ))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Reading,
    /// `plain` has ended.
    Flushing,
    /// So has the text.
    Done,
}

/// A reader of UTF-8.
struct Converted<R> {
    plain: R,
    name: String,
    decoder: Decoder,
    /// Takes the decoder's place.
    own: Option<OwnReading>,
    malformed: Malformed,
    /// The last bytes taken were a malformed sequence, of which the text before is out: so many, and so many
    /// more.
    broken: Option<(u8, u8)>,
    input: Box<[u8]>,
    /// What is left of the input: `start..end`.
    start: usize,
    end: usize,
    /// More must be read: what is left, if anything, is the beginning of a character.
    is_starved: bool,
    phase: Phase,
    consumed_bytes: u64,
    /// Text for callers with less room than a character may need.
    spare: io::Cursor<Vec<u8>>,
}

impl<R: Read> Read for Converted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let spared = self.spare.read(out)?;
        if spared > 0 || out.is_empty() {
            return Ok(spared);
        }
        if out.len() >= SPARE_BYTES {
            return self.convert(out);
        }
        let mut spare = vec![0; SPARE_BYTES];
        let length = self.convert(&mut spare)?;
        spare.truncate(length);
        self.spare = io::Cursor::new(spare);
        self.spare.read(out)
    }
}

impl<R: Read> Converted<R> {
    /// Fills `out`, which must have room for a character, with some text; 0 bytes at the end.
    fn convert(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.phase != Phase::Done {
            if let Some((bad, behind)) = self.broken.take() {
                if self.malformed == Malformed::Refused {
                    return Err(self.refusal(bad, behind));
                }
                out[..BROKEN.len()].copy_from_slice(BROKEN);
                return Ok(BROKEN.len());
            }
            if self.phase == Phase::Reading && self.is_starved {
                self.refill()?;
            }
            let input = &self.input[self.start..self.end];
            let last = self.phase == Phase::Flushing;
            let (result, read, written) = match &self.own {
                None => self.decoder.decode_to_utf8_without_replacement(input, out, last),
                Some(own) => own.write(input, out, last),
            };
            self.start += read;
            self.consumed_bytes += read as u64;
            self.is_starved = result == DecoderResult::InputEmpty;
            match result {
                DecoderResult::Malformed(bad, behind) => self.broken = Some((bad, behind)),
                DecoderResult::InputEmpty if last => self.phase = Phase::Done,
                DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }

    /// Reads more behind what is left.
    fn refill(&mut self) -> io::Result<()> {
        self.input.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let length = self.plain.read(&mut self.input[self.end..])?;
        self.end += length;
        if length == 0 {
            self.phase = Phase::Flushing;
        }
        Ok(())
    }

    /// The last bytes taken were a malformed sequence of `bad` bytes and `behind` more.
    fn refusal(&self, bad: u8, behind: u8) -> io::Error {
        let byte = self.consumed_bytes.saturating_sub(u64::from(bad) + u64::from(behind));
        let message = format!("byte {byte} begins no character of {}", self.name);
        io::Error::other(Error::new(ErrorKind::Record, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(encoding: &str, bytes: &[u8]) -> Result<String> {
        let mut text = String::new();
        to_utf8(encoding, bytes, Malformed::Refused)?
            .read_to_string(&mut text)
            .map_err(crate::decompress::error)?;
        Ok(text)
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn utf16_is_read_with_and_without_a_mark() {
        let text = "zoë,🐘\n".repeat(40_000);
        let marked = format!("\u{feff}{text}");
        assert_eq!(convert("utf-16le", &utf16(&text, u16::to_le_bytes)).unwrap(), text);
        assert_eq!(convert("UTF-16BE", &utf16(&marked, u16::to_be_bytes)).unwrap(), text);
        assert_eq!(convert("UTF16", &utf16(&marked, u16::to_be_bytes)).unwrap(), text);
        assert_eq!(convert("UTF16", &utf16(&text, u16::to_le_bytes)).unwrap(), text);
    }

    #[test]
    fn characters_that_reads_cut_in_half_are_whole() {
        let text = format!("a{}", "中文,\u{2022}\n".repeat(40_000));
        let bytes = from_utf8("BIG5", text.as_bytes()).unwrap();
        assert_eq!(convert("BIG5", &bytes).unwrap(), text);
        let one_by_one = bytes[..801].chunks(1).fold(None::<Box<dyn Read + Send>>, |before, byte| {
            Some(match before {
                Some(before) => Box::new(before.chain(byte)),
                None => Box::new(byte),
            })
        });
        let mut read = String::new();
        let mut reader = to_utf8("BIG5", one_by_one.unwrap(), Malformed::Refused).unwrap();
        reader.read_to_string(&mut read).unwrap();
        assert!(text.starts_with(&read) && read.len() > 801);
    }

    #[test]
    fn an_invalid_sequence_is_an_error_at_its_byte() {
        let mut bytes = utf16(&"a".repeat(50_000), u16::to_le_bytes);
        bytes.extend([0x00, 0xDC, b'a', 0]);
        let error = convert("utf-16le", &bytes).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Record, "byte 100000 begins no character of UTF-16LE")
        );
        assert!(convert("utf-16le", b"a\0b").is_err());
        assert_eq!(
            convert("euc-jp", b"ab\xA4").unwrap_err().message(),
            "byte 2 begins no character of EUC-JP"
        );
    }

    #[test]
    fn the_text_before_an_invalid_sequence_comes_first() {
        let mut reader = to_utf8("WIN1252", &b"a,\x80\nb,\x81\n"[..], Malformed::Refused).unwrap();
        let mut text = Vec::new();
        let error = crate::decompress::error(reader.read_to_end(&mut text).unwrap_err());
        assert_eq!(text, "a,€\nb,".as_bytes());
        assert_eq!(error.message(), "byte 6 begins no character of WIN1252");
    }

    #[test]
    fn a_marked_sequence_is_one_broken_character_as_long_as_the_one_that_replaces_it() {
        for (encoding, bytes) in [
            ("euc-jp", &b"ab\xA4,\xA4\xA2\xFF\n\xA4"[..]),
            ("UTF-16LE", b"a\0\x00\xDCb\0\n\0x"),
            ("WIN1252", b"\x81\x8D,\x80\n"),
            ("BIG5", b"\x88\xA4,\xA4\xA4\xA4,\x80\xA4"),
        ] {
            let mut marked = Vec::new();
            to_utf8(encoding, bytes, Malformed::Marked).unwrap().read_to_end(&mut marked).unwrap();
            assert!(std::str::from_utf8(&marked).is_err(), "{encoding}");
            let replaced = match OwnReading::of(encoding) {
                Some(own) => own.text(bytes),
                None => whatwg(encoding).unwrap().decode_without_bom_handling(bytes).0.into_owned(),
            };
            assert_eq!(String::from_utf8_lossy(&marked), replaced, "{encoding}");
            assert_eq!(marked.len(), replaced.len(), "{encoding}");
        }
    }

    #[test]
    fn what_the_server_knows_is_left_to_it() {
        assert!(SERVER_ENCODINGS.is_sorted());
        assert!(!needs_utf8("Latin-1").unwrap());
        assert!(!needs_utf8("utf-8").unwrap());
        assert!(needs_utf8("UTF-16").unwrap());
        assert!(needs_utf8("macintosh").unwrap());
        assert_eq!(needs_utf8("utf-32").unwrap_err().kind(), ErrorKind::Usage);
    }

    #[test]
    fn names_mean_to_us_what_they_mean_to_the_server() {
        for (name, expected) in [
            ("UNICODE", Some(UTF_8)),
            ("win", Some(encoding_rs::WINDOWS_1251)),
            ("KOI8R", Some(encoding_rs::KOI8_R)),
            ("windows1250", Some(encoding_rs::WINDOWS_1250)),
            ("TCVN", Some(encoding_rs::WINDOWS_1258)),
            ("ShiftJIS", Some(encoding_rs::SHIFT_JIS)),
            ("ISO_8859_16", Some(encoding_rs::ISO_8859_16)),
            ("SHIFT_JIS_2004", None),
            ("EUC_TW", None),
            ("utf-16", Some(UTF_16LE)),
        ] {
            assert_eq!(whatwg(name), expected, "{name}");
        }
    }

    #[test]
    fn characters_that_quotes_interrupt_are_no_text() {
        assert!(is_text(None, "é漢🐘".as_bytes()) && !is_text(Some("UTF8"), b"\xf0\x9f\"\x90\x98\""));
        assert!(is_text(Some("EUC_JP"), b"a\xA4\xA2\x8F\xB0\xA1") && !is_text(Some("euc-jp"), b"\xA4\"\xA2"));
        assert!(is_text(Some("LATIN1"), b"\xE9\"") && !is_text(Some("LATIN1"), b"\0"));
    }

    #[test]
    fn characters_that_the_server_refuses_are_no_text() {
        let good: [(&str, &[u8]); 5] = [
            ("EUC_JP", b"\xA1\xFE\x8E\xDF\x8F\xA1\xFEa"),
            ("EUC_JIS_2004", b"\x8E\xA1"),
            ("EUC_KR", b"\xB0\xA1"),
            ("EUC_CN", b"\xB0\xA1"),
            ("EUC_TW", b"\xC4\xE3\x8E\xA2\xA1\xA1"),
        ];
        assert!(good.iter().all(|(encoding, bytes)| is_text(Some(encoding), bytes)));
        let bad: [(&str, &[u8]); 9] = [
            ("EUC_JP", b"\xFF\xFE"),
            ("EUC_JP", b"\xFE\xFF"),
            ("EUC_JP", b"\x8E\xE0"),
            ("EUC_JP", b"\x8F\xA1"),
            ("EUC_JP", b"\xA0\xA1"),
            ("EUC_KR", b"\x8E\xA1"),
            ("EUC_CN", b"\xA1"),
            ("EUC_TW", b"\x8E\xA8\xA1\xA1"),
            ("EUC_TW", b"\x8F\xA1\xA1"),
        ];
        assert!(bad.iter().all(|(encoding, bytes)| !is_text(Some(encoding), bytes)));
    }

    #[test]
    fn short_text_is_decoded_by_the_servers_names() {
        assert_eq!(decode(Some("LATIN1"), b"zo\xEB").unwrap(), "zoë");
        assert_eq!(decode(Some("WIN1251"), b"\xE4").unwrap(), "д");
        assert_eq!(decode(None, b"zo\xEB").unwrap_err().kind(), ErrorKind::Record);
        assert_eq!(decode(Some("win"), b"\xE4").unwrap(), "д");
        assert_eq!(decode(Some("SHIFTJIS"), b"\x93\xFA").unwrap(), "日");
        assert_eq!(decode(Some("ISO_8859_5"), b"\xD0").unwrap(), "а");
        assert_eq!(decode(Some("MULE_INTERNAL"), b"\x91").unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
