//! Which encoding a file is in: from its byte order mark, its NULs, its being valid UTF-8, and for what
//! came before Unicode from the detector that Firefox uses (`chardetng`).
//!
//! A mark is believed. NULs in every other byte are UTF-16. What is UTF-8 but for a few bytes is broken
//! UTF-8, not another encoding. Whatever else is told apart by how often letters follow one another, which
//! is a guess when few of them are beyond ASCII: then [`Finding::unsure`](super::Finding::unsure) says so.

use super::{Sample, Unsure};
use crate::encode::OwnReading;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};
use howdah_model::{Error, ErrorKind, Result, plural};
use std::borrow::Cow;

/// How the characters of a file are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// PostgreSQL's name where it has one (`UTF8`, `WIN1252`, `SJIS`), else one that
    /// [`to_utf8`](crate::encode::to_utf8) knows (`UTF-16LE`).
    pub name: String,
    /// The length of the byte order mark; 0 without one.
    pub bom_bytes: usize,
    /// The server has no name for it: the file is recoded before anything else reads it.
    pub recoded: bool,
}

impl Encoding {
    /// What reads it, if it is known to the WHATWG and is not UTF-8.
    pub(super) fn decoding(&self) -> Option<Decoding> {
        let found = crate::encode::whatwg(&self.name).filter(|found| *found != UTF_8)?;
        Some(Decoding { found, own: OwnReading::of(&self.name) })
    }
}

/// The way from an encoding to UTF-8, with U+FFFD for what is no character.
#[derive(Clone)]
pub(super) struct Decoding {
    found: &'static encoding_rs::Encoding,
    own: Option<OwnReading>,
}

impl Decoding {
    pub(super) fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match &self.own {
            Some(own) => Cow::Owned(own.text(bytes)),
            None => self.found.decode_without_bom_handling(bytes).0,
        }
    }

    /// How many bytes have been read when so many bytes of text are written.
    pub(super) fn bytes_read(&self, bytes: &[u8], text_bytes: usize) -> usize {
        if let Some(own) = &self.own {
            return own.bytes_read(bytes, text_bytes);
        }
        let mut decoder = self.found.new_decoder_without_bom_handling();
        let (mut written, mut out) = (0, [0u8; 32]);
        for (at, byte) in bytes.iter().enumerate() {
            // A byte at a time: a character is written when its last byte has come.
            if written >= text_bytes {
                return at;
            }
            written += decoder.decode_to_utf8(std::slice::from_ref(byte), &mut out, false).2;
        }
        bytes.len()
    }

    /// Characters are made of units of two bytes, the lower one first if `Some(true)`.
    pub(super) fn units(&self) -> Option<bool> {
        (self.found == UTF_16LE || self.found == UTF_16BE).then_some(self.found == UTF_16LE)
    }
}

/// What was found, and what speaks for it.
pub(super) struct Found {
    pub(super) encoding: Encoding,
    pub(super) evidence: Option<String>,
    pub(super) unsure: Option<Unsure>,
}

const MARKS: [(&[u8], &str); 3] =
    [(b"\xef\xbb\xbf", "UTF8"), (b"\xff\xfe", "UTF-16LE"), (b"\xfe\xff", "UTF-16BE")];

/// Below so many characters beyond ASCII a legacy encoding is not sure.
const SURE_CHARACTERS: usize = 40;

/// The same for an encoding of several bytes a character, where not any two bytes are a character.
const SURE_BYTES_OF_SEVERAL: usize = 12;

/// Finds the encoding, or looks at what is left to find where `given` names it.
///
/// # Errors
/// `Usage` if nobody knows the encoding given; `Unsupported` for UTF-32.
pub(super) fn find(sample: &Sample, given: Option<&str>) -> Result<Found> {
    let mark = MARKS.iter().find(|(mark, _)| sample.head.starts_with(mark));
    let bom_bytes = mark.map_or(0, |(mark, _)| mark.len());
    if let Some(name) = given {
        let recoded = crate::encode::needs_utf8(name)?;
        // What is a mark in one encoding is text in another.
        let bom_bytes = if mark.is_some_and(|(_, of)| is_same(name, of)) { bom_bytes } else { 0 };
        let is_utf8 = crate::encode::whatwg(name) == Some(UTF_8);
        let name = if is_utf8 { "UTF8" } else { name }.to_owned();
        let unsure = (!is_utf8 && looks_like_utf8(sample)).then(|| Unsure {
            what: format!(
                "most characters beyond ASCII are valid UTF-8, and are read as {name} all the same"
            ),
            option: "--encoding UTF8",
        });
        let encoding = Encoding { name, bom_bytes, recoded };
        return Ok(Found { encoding, evidence: None, unsure });
    }
    if sample.head.starts_with(b"\xff\xfe\0\0") || sample.head.starts_with(b"\0\0\xfe\xff") {
        return Err(Error::new(ErrorKind::Unsupported, "the file is in UTF-32, which is not read")
            .with_hint("recode it to UTF-8, for example with iconv"));
    }
    if let Some((_, name)) = mark {
        return Ok(sure(name, bom_bytes, format!("the file begins with the byte order mark of {name}")));
    }
    if let Some(name) = utf16(sample.head) {
        return Ok(sure(name, 0, format!("every other byte is NUL as in {name}")));
    }
    if has_shifts_of_jis(sample.head) {
        let evidence = "escape sequences of ISO-2022-JP stand around its characters".to_owned();
        let encoding = Encoding { name: "ISO-2022-JP".to_owned(), bom_bytes: 0, recoded: true };
        return Ok(Found { encoding, evidence: Some(evidence), unsure: None });
    }
    let (characters, broken) = utf8(sample);
    if let Some(found) = of_pairs(sample, characters, broken) {
        return Ok(found);
    }
    if broken == 0 {
        let evidence = match characters {
            0 => "all bytes are ASCII".to_owned(),
            1 => "the one character beyond ASCII is valid UTF-8".to_owned(),
            _ => format!("all {characters} characters beyond ASCII are valid UTF-8"),
        };
        return Ok(sure("UTF8", 0, evidence));
    }
    if is_mostly_utf8(characters, broken) {
        let are = plural(broken, "is", "are");
        let evidence = format!("{characters} characters beyond ASCII are valid UTF-8, {broken} {are} broken");
        return Ok(sure("UTF8", 0, evidence));
    }
    let mut found = legacy(sample, characters + broken);
    let inside_words = capitals_inside_words(sample);
    // Capitals have this byte in all of these.
    let is_western = matches!(found.encoding.name.as_str(), "WIN1250" | "WIN1252" | "WIN1254" | "WIN1257");
    if !is_western || inside_words == 0 {
        return Ok(found);
    }
    if inside_words.saturating_mul(MIXED_MAX) >= broken {
        let evidence =
            format!("{inside_words} letters inside words are valid UTF-8, {broken} characters are broken");
        return Ok(sure("UTF8", 0, evidence));
    }
    found.unsure =
        Some(Unsure { what: "some letters inside words are in UTF-8".to_owned(), option: "--encoding" });
    Ok(found)
}

/// Each byte of such a pair is one that UTF-8 cannot have there.
const PAIR_BYTES: usize = 6;

/// UTF-8 but for such pairs, which no reader takes for it.
fn of_pairs(sample: &Sample, characters: usize, broken: usize) -> Option<Found> {
    let pairs = pairs_of_surrogates(sample);
    let broken_else = broken.saturating_sub(pairs.saturating_mul(PAIR_BYTES));
    (pairs > 0 && is_mostly_utf8(characters.saturating_add(pairs), broken_else)).then(|| {
        let are = plural(pairs, "character is a pair", "characters are pairs");
        sure(
            "UTF8",
            0,
            format!("{pairs} {are} of surrogates, as Java and Oracle's UTF8 write emoji (CESU-8)"),
        )
    })
}

/// Characters that were encoded from UTF-16 half by half. By chance such six bytes hardly stand in a row.
fn pairs_of_surrogates(sample: &Sample) -> usize {
    let is_one =
        |six: &&[u8]| matches!(six, [0xED, 0xA0..=0xAF, 0x80..=0xBF, 0xED, 0xB0..=0xBF, 0x80..=0xBF]);
    let windows = [sample.head, sample.middle, sample.tail];
    windows.iter().map(|window| window.windows(PAIR_BYTES).filter(is_one).count()).sum()
}

/// Two characters of UTF-8 by chance are rare in any other encoding: `Ã¼` is no text.
fn is_mostly_utf8(characters: usize, broken: usize) -> bool {
    characters >= broken.saturating_mul(2)
}

fn looks_like_utf8(sample: &Sample) -> bool {
    let (characters, broken) = utf8(sample);
    characters > 0 && is_mostly_utf8(characters, broken)
}

/// Where one letter of so many is surely UTF-8, the file is put together from two encodings, and what is
/// broken is for its reader to mend: read as one of Windows', the others would be stored wrong without a
/// word.
const MIXED_MAX: usize = 4;

/// Letters of UTF-8 that in Windows-1252 were a capital and a sign behind a small letter: `ZoÃ«`.
fn capitals_inside_words(sample: &Sample) -> usize {
    let is_one = |three: &&[u8]| matches!(three, [b'a'..=b'z', 0xC3, 0x80..=0xBF]);
    [sample.head, sample.middle, sample.tail]
        .iter()
        .map(|window| window.windows(3).filter(is_one).count())
        .sum()
}

/// Names of one encoding, the two orders of bytes in UTF-16 aside.
fn is_same(one: &str, other: &str) -> bool {
    let is_utf16 = |encoding| encoding == UTF_16LE || encoding == UTF_16BE;
    match (crate::encode::whatwg(one), crate::encode::whatwg(other)) {
        (Some(one), Some(other)) => one == other || (is_utf16(one) && is_utf16(other)),
        _ => false,
    }
}

fn sure(name: &str, bom_bytes: usize, evidence: String) -> Found {
    let recoded = name.starts_with("UTF-16");
    let encoding = Encoding { name: name.to_owned(), bom_bytes, recoded };
    Found { encoding, evidence: Some(evidence), unsure: None }
}

/// UTF-16 without a mark: text of any language has ASCII digits, separators and line endings, and their
/// NULs stand all on one side.
fn utf16(head: &[u8]) -> Option<&'static str> {
    let (even, odd) = nuls(head);
    let units = head.len() / 2;
    let (name, encoding) = match (even, odd) {
        _ if units < 2 => return None,
        _ if odd * 20 >= units && even * 10 <= odd => ("UTF-16LE", UTF_16LE),
        _ if even * 20 >= units && odd * 10 <= even => ("UTF-16BE", UTF_16BE),
        _ => return None,
    };
    // A few NULs astray do not stand beside line endings.
    let (text, _) = encoding.decode_without_bom_handling(&head[..units * 2]);
    let endings = memchr::memchr2_iter(b'\n', b'\r', head).count();
    let real = text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    if real * 2 < endings {
        return None;
    }
    let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER || *c == '\0').count();
    (broken * 20 <= units).then_some(name)
}

/// Nothing but ASCII, and escapes to the characters of JIS X 0208 and back.
fn has_shifts_of_jis(head: &[u8]) -> bool {
    let holds = |any: [&[u8]; 2]| any.iter().any(|escape| memchr::memmem::find(head, escape).is_some());
    head.is_ascii() && holds([b"\x1b$B", b"\x1b$@"]) && holds([b"\x1b(B", b"\x1b(J"])
}

/// NULs at even and at odd offsets.
pub(super) fn nuls(bytes: &[u8]) -> (usize, usize) {
    let mut counts = [0, 0];
    for at in memchr::memchr_iter(0, bytes) {
        counts[at % 2] += 1;
    }
    (counts[0], counts[1])
}

/// Valid characters beyond ASCII and broken sequences, those aside that the borders of a window cut.
fn utf8(sample: &Sample) -> (usize, usize) {
    let (mut characters, mut broken) = (0, 0);
    for (window, begins, ends) in
        [(sample.head, true, sample.whole), (sample.middle, false, false), (sample.tail, false, true)]
    {
        let lead = window.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
        let mut chunks = window[if begins { 0 } else { lead }..].utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            characters += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
            let cut = chunks.peek().is_none() && !ends;
            broken += usize::from(!chunk.invalid().is_empty() && !cut);
        }
    }
    (characters, broken)
}

fn legacy(sample: &Sample, odd_bytes: usize) -> Found {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    for (window, is_head) in [(sample.head, true), (sample.middle, false), (sample.tail, false)] {
        // Between two line endings no character is cut in half.
        let first = memchr::memchr(b'\n', window).filter(|_| !is_head).unwrap_or(0);
        let last = memchr::memrchr(b'\n', window).unwrap_or(window.len()).max(first);
        let lines = &window[first..last];
        detector.feed(if lines.is_ascii() { window } else { lines }, false);
    }
    detector.feed(b"", true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let broken = broken_in(guess, sample.head, sample.whole);
    let is_latin = !guess.is_single_byte() && (broken > 0 || stands_in_words(sample));
    let few = odd_bytes < SURE_CHARACTERS;
    // Hardly any file is in LATIN4, and letters of a few words are as frequent there: `naïve`, `naīve`.
    let is_latin = is_latin || few && guess == encoding_rs::ISO_8859_4 && !has_older_letters(sample);
    let is_kana = guess == encoding_rs::ISO_8859_5 && may_be_kana(sample);
    let guess = match () {
        () if is_latin => encoding_rs::WINDOWS_1252,
        () if is_kana => encoding_rs::SHIFT_JIS,
        () => guess,
    };
    let name = server_name(guess.name());
    let evidence = format!("the bytes are not UTF-8; their frequencies are those of text in {name}");
    let may_be_older = matches!(name, "WIN1252" | "WIN1254") && has_older_letters(sample);
    let what = if may_be_older {
        Some(format!(
            "some bytes are no characters of {name}, or signs of it in the middle of words, as where a file is from DOS (cp850) or an old Mac"
        ))
    } else if may_be_baltic(name, sample) {
        Some(format!("some letters of {name} may be those of WIN1257 (š, ž, õ in Estonian)"))
    } else if is_kana {
        Some(format!("the half-width katakana of {name} may be Cyrillic letters of ISO_8859_5"))
    } else if few && (guess.is_single_byte() || odd_bytes < SURE_BYTES_OF_SEVERAL) {
        let are = plural(odd_bytes, "byte beyond ASCII is little", "bytes beyond ASCII are few");
        Some(format!("{odd_bytes} {are} to tell {name} from its relatives"))
    } else {
        None
    };
    let unsure = what.map(|what| Unsure { what, option: "--encoding" });
    let encoding = Encoding {
        name: name.to_owned(),
        bom_bytes: 0,
        recoded: crate::encode::needs_utf8(name).unwrap_or(true),
    };
    Found { encoding, evidence: Some(evidence), unsure }
}

/// Sequences that mean nothing in an encoding of several bytes a character.
fn broken_in(encoding: &'static encoding_rs::Encoding, head: &[u8], whole: bool) -> usize {
    let (text, _) = encoding.decode_without_bom_handling(head);
    let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let all = text.chars().filter(|c| !c.is_ascii()).count();
    if broken * 20 < all || (broken == 1 && !whole) { 0 } else { broken }
}

/// Bytes that Windows-1252 has no character for: letters in the code pages of DOS and of the first Macs.
const UNASSIGNED: [u8; 5] = [0x81, 0x8D, 0x8F, 0x90, 0x9D];

/// Letters there, and in Windows-1252 signs (low quotes, daggers, currencies and the like) and capitals that
/// do not stand between a letter and a small one.
const ODD_INSIDE_WORDS: [u8; 15] =
    [0x82, 0x84, 0x86, 0x87, 0x88, 0x8A, 0x8E, 0x94, 0x9F, 0xA1, 0xA2, 0xA3, 0xA4, 0xA7, 0xC6];

/// `é` and `ó` of cp850, with which words end; in Windows-1252 a low quote and the sign of cents.
const ODD_AT_ENDS: [u8; 2] = [0x82, 0xA2];

/// `ã` and `õ` of cp850, before which `ç` stands in Portuguese; in Windows-1252 `Æ` and `ä`, which no dagger
/// precedes.
const BEHIND_CEDILLA: [u8; 2] = [0xC6, 0xE4];

/// Half-width katakana alone, with the signs that give voice to a syllable: in ISO-8859-5 capitals, and of
/// the small letters none of the second half of the alphabet.
fn may_be_kana(sample: &Sample) -> bool {
    let windows = [sample.head, sample.middle, sample.tail];
    let mut odd = windows.iter().flat_map(|window| window.iter()).filter(|byte| !byte.is_ascii());
    let mut is_voiced = false;
    odd.all(|byte| {
        is_voiced |= *byte >= 0xD0;
        (0xA1..=0xDF).contains(byte)
    }) && is_voiced
}

/// Every byte beyond ASCII stands alone between ASCII letters: a character of several bytes would take the
/// next letter with it.
fn stands_in_words(sample: &Sample) -> bool {
    let is_alone = |three: &[u8]| match three {
        [before, byte, behind] => {
            byte.is_ascii() || before.is_ascii_alphabetic() && behind.is_ascii_alphabetic()
        }
        _ => true,
    };
    [sample.head, sample.middle, sample.tail].iter().all(|window| window.windows(3).all(is_alone))
}

/// Text in Windows-1252 would not have these bytes where they stand.
fn has_older_letters(sample: &Sample) -> bool {
    let is_one = |three: &[u8]| match three {
        [before, 0x87, behind] if BEHIND_CEDILLA.contains(behind) => before.is_ascii_alphabetic(),
        [before, byte, behind] => {
            let is_inside = ODD_INSIDE_WORDS.contains(byte)
                && before.is_ascii_alphabetic()
                && behind.is_ascii_lowercase();
            let is_end = ODD_AT_ENDS.contains(byte)
                && before.is_ascii_lowercase()
                && behind.is_ascii()
                && !behind.is_ascii_alphanumeric();
            is_inside || is_end
        }
        _ => false,
    };
    let mut windows = [sample.head, sample.middle, sample.tail].into_iter();
    windows.any(|window| window.iter().any(|byte| UNASSIGNED.contains(byte)) || window.windows(3).any(is_one))
}

/// Letters that are `š` and `ž` in Windows-1257: in Windows-1254 those of Turkish (`ğ`, `ş`), without its `ı`
/// and `İ`, which one word in four has; in Windows-1250 those of Croatian and Romanian (`đ`, `ţ`), beside one
/// of Hungarian (`ő`, for `õ`); in Windows-1252 those of Icelandic (`ð`, `þ`) beside `õ`, which it has not,
/// and without its vowels.
fn may_be_baltic(name: &str, sample: &Sample) -> bool {
    const SHARED: [u8; 4] = [0xD0, 0xDE, 0xF0, 0xFE];
    let windows = [sample.head, sample.middle, sample.tail];
    let holds = |any: &[u8]| windows.iter().any(|window| window.iter().any(|byte| any.contains(byte)));
    match name {
        "WIN1254" => holds(&SHARED) && !holds(&[0xDD, 0xFD]),
        "WIN1250" => holds(&SHARED) && holds(&[0xD5, 0xF5]),
        "WIN1252" => holds(&SHARED) && holds(&[0xD5, 0xF5]) && !holds(&[0xE1, 0xE6, 0xED, 0xF3, 0xFA, 0xFD]),
        _ => false,
    }
}

/// PostgreSQL's name for an encoding of the WHATWG; the same name where it has none. GB18030 holds GBK, and
/// is what the server reads.
fn server_name(whatwg: &'static str) -> &'static str {
    const NAMES: [(&str, &str); 27] = [
        ("UTF-8", "UTF8"),
        ("windows-1250", "WIN1250"),
        ("windows-1251", "WIN1251"),
        ("windows-1252", "WIN1252"),
        ("windows-1253", "WIN1253"),
        ("windows-1254", "WIN1254"),
        ("windows-1255", "WIN1255"),
        ("windows-1256", "WIN1256"),
        ("windows-1257", "WIN1257"),
        ("windows-1258", "WIN1258"),
        ("windows-874", "WIN874"),
        ("ISO-8859-2", "LATIN2"),
        ("ISO-8859-4", "LATIN4"),
        ("ISO-8859-5", "ISO_8859_5"),
        ("ISO-8859-6", "ISO_8859_6"),
        ("ISO-8859-7", "ISO_8859_7"),
        ("ISO-8859-8", "ISO_8859_8"),
        ("ISO-8859-13", "LATIN7"),
        ("KOI8-R", "KOI8R"),
        ("KOI8-U", "KOI8U"),
        ("IBM866", "WIN866"),
        ("Shift_JIS", "SJIS"),
        ("EUC-JP", "EUC_JP"),
        ("EUC-KR", "UHC"),
        ("Big5", "BIG5"),
        ("GBK", "GB18030"),
        ("gb18030", "GB18030"),
    ];
    NAMES.iter().find(|(name, _)| *name == whatwg).map_or(whatwg, |(_, server)| server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> String {
        find(&Sample::of_whole(bytes), None).unwrap().encoding.name
    }

    fn encoded(label: &str, text: &str) -> Vec<u8> {
        encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn marks_and_nuls_tell_unicode() {
        let text = "id,name\r\n1,zoë\r\n2,🐘\r\n";
        assert_eq!(name(text.as_bytes()), "UTF8");
        assert_eq!(name(format!("\u{feff}{text}").as_bytes()), "UTF8");
        assert_eq!(name(&utf16(text, u16::to_le_bytes)), "UTF-16LE");
        assert_eq!(name(&utf16(text, u16::to_be_bytes)), "UTF-16BE");
        assert_eq!(name(&utf16(&format!("\u{feff}{text}"), u16::to_be_bytes)), "UTF-16BE");
        let japanese = "番号,名前\n1,日本語のテキスト\n2,別の行\n";
        assert_eq!(name(&utf16(japanese, u16::to_le_bytes)), "UTF-16LE");
        assert_eq!(name(b""), "UTF8");
        assert_eq!(name(b"id,name\n1,a\0b\n"), "UTF8");
    }

    #[test]
    fn what_came_before_unicode_is_guessed() {
        let german = "Straße;Größe;Übung\nMünchen;schön;zwölf\nKöln;Äpfel;für\n";
        assert_eq!(name(&encoded("windows-1252", german)), "WIN1252");
        let japanese = "番号,名前,住所\n1,山田太郎,東京都千代田区\n2,鈴木花子,大阪府大阪市\n";
        assert_eq!(name(&encoded("shift_jis", japanese)), "SJIS");
        let chinese = "编号,姓名,城市\n1,张三,北京市朝阳区\n2,李四,上海市浦东新区\n3,王五,广州市天河区\n";
        assert_eq!(name(&encoded("gb18030", chinese)), "GB18030");
        let russian = "номер,имя,город\n1,Иван,Москва\n2,Мария,Новосибирск\n";
        assert_eq!(name(&encoded("windows-1251", russian)), "WIN1251");
        // The detector knows the Ukrainian variant alone; their letters are the same.
        assert_eq!(name(&encoded("koi8-r", russian)), "KOI8U");
        let polish = "miasto;żółć\nŁódź;źdźbło\nKraków;święto\nGdańsk;ćma\nPoznań;ślad\n";
        assert_eq!(name(&encoded("iso-8859-2", polish)), "LATIN2");
    }

    #[test]
    fn letters_of_older_code_pages_are_no_control_characters() {
        let german = encoded("windows-1252", "Straße;Größe;Übung\nMünchen;schön;zwölf\nKöln;Äpfel;für\n");
        let german = german.repeat(5);
        let of = |more: &[u8]| {
            let found = find(&Sample::of_whole(&[&german, more].concat()), None).unwrap();
            (found.encoding.name, found.encoding.recoded, found.unsure.is_some())
        };
        assert_eq!(of(b"\x84a\x93;\x80 5;b\x92s;\xa7 1\n"), ("WIN1252".to_owned(), false, false));
        // Of cp850: ü, ö, é, í, ñ; of a Mac: ü, ö.
        for older in ["M\u{81}ller", "K\u{94}ln", "Ren\u{82}e", "Garc\u{a1}a", "Espa\u{a4}a", "M\u{9f}ller"] {
            let bytes: Vec<u8> = older.chars().map(|c| u32::from(c) as u8).collect();
            assert_eq!(of(&bytes), ("WIN1252".to_owned(), false, true), "{older:?}");
        }
        // In LATIN4 they would be `naīve`, and there is nothing else to tell the two apart.
        let few = find(&Sample::of_whole(b"name|v|f\nalpha|1|t\nna\xefve|2|f\nbeta|3|t\n"), None).unwrap();
        assert_eq!((few.encoding.name.as_str(), few.unsure.is_some()), ("WIN1252", true));
        // Not the character of Shift JIS that takes the next letter with it.
        assert_eq!(name(b"id,name\n1,M\x81ller\n2,B\x84r\n"), "WIN1252");
    }

    #[test]
    fn portuguese_of_dos_is_unsure() {
        let of = |text: &[u8]| {
            let found = find(&Sample::of_whole(&[b"id;name\n", text].concat().repeat(30)), None).unwrap();
            (found.encoding.name, found.unsure.is_some())
        };
        let unsure = ("WIN1252".to_owned(), true);
        // São Paulo, João; ação, corações; avó.
        assert_eq!(of(b"1;S\xc6o Paulo Jo\xc6o\n"), unsure);
        assert_eq!(of(b"1;a\x87\xc6o cora\x87\xe4es\n"), unsure);
        assert_eq!(of(b"1;av\xa2 \n2;Lisboa\xa0\n3;av\xa2\n"), unsure);
        let sure = encoded("windows-1252", "1;São Paulo;ação\n2;avó;KÆRE Ærø\n3;5¢ Ðß 3‚ … †\n");
        assert_eq!(of(&sure), ("WIN1252".to_owned(), false));
    }

    #[test]
    fn pairs_of_surrogates_are_broken_utf8() {
        let emoji = b" \xed\xa0\xbd\xed\xb8\x80";
        let line = |text: &[u8]| [b"1,abc", text, b",x\n"].concat();
        let of = |more: &[u8]| name(&[&b"id,name,k\n"[..], &line(emoji).repeat(9), more].concat());
        assert_eq!(of(b""), "UTF8");
        assert_eq!(of(&line("grün Köln".as_bytes())), "UTF8");
        assert_ne!(of(&line(b"gr\xfcn").repeat(9)), "UTF8");
        assert_eq!(name(&line(emoji)), "UTF8");
    }

    #[test]
    fn a_few_bytes_do_not_prove_characters_of_several() {
        let is_unsure = |bytes: &[u8]| find(&Sample::of_whole(bytes), None).unwrap().unsure.is_some();
        // `żółw` of Windows-1250, which is two characters of Big5.
        assert!(is_unsure(b"id,name\n1,\xbf\xf3\xb3w\n2,plain\n"));
        let japanese = "番号,名前,住所\n1,山田太郎,東京都千代田区\n2,鈴木花子,大阪府大阪市\n";
        assert!(!is_unsure(&encoded("shift_jis", japanese)));
    }

    #[test]
    fn half_width_katakana_are_no_cyrillic() {
        let rows = |text: &str| (0..50).map(|no| format!("{no},{text}\n")).collect::<String>();
        let kana = find(&Sample::of_whole(&encoded("shift_jis", &rows("ｶﾀｶﾅ ﾀﾛｳ"))), None).unwrap();
        assert_eq!((kana.encoding.name.as_str(), kana.unsure.is_some()), ("SJIS", true));
        let russian =
            find(&Sample::of_whole(&encoded("iso-8859-5", &rows("Новосибирск Мария"))), None).unwrap();
        assert_eq!((russian.encoding.name.as_str(), russian.unsure.is_some()), ("ISO_8859_5", false));
    }

    #[test]
    fn one_broken_byte_does_not_change_the_encoding() {
        let mut bytes = "id,name\n1,zoë\n2,für\n3,ça\n4,né\n5,où\n".as_bytes().to_vec();
        bytes.extend(b"6,\xff\n");
        assert_eq!(name(&bytes), "UTF8");
    }

    #[test]
    fn two_good_characters_outweigh_a_broken_one() {
        assert_eq!(name(b"no\tlieu\n1\tZ\xc3\xbcrich\n2\tGen\xc3\xa8ve\n3\tFribourg \x82 Est\n"), "UTF8");
    }

    #[test]
    fn characters_cut_by_a_window_are_whole() {
        let text = "x,ж\n".repeat(100);
        let bytes = text.as_bytes();
        let sample =
            Sample { head: &bytes[..3], middle: &bytes[8..13], tail: &bytes[18..], ..Sample::default() };
        assert_eq!(find(&sample, None).unwrap().encoding.name, "UTF8");
    }

    #[test]
    fn a_mark_of_another_encoding_than_the_given_one_is_text() {
        let bom_bytes =
            |bytes: &[u8], name| find(&Sample::of_whole(bytes), Some(name)).unwrap().encoding.bom_bytes;
        let (utf8, utf16) = (b"\xef\xbb\xbfa,b\n", b"\xff\xfea\0,\0b\0\n\0");
        assert_eq!(["UTF8", "utf-8", "LATIN1", "WIN1252"].map(|name| bom_bytes(utf8, name)), [3, 3, 0, 0]);
        assert_eq!(["UTF-16LE", "utf-16", "LATIN1", "UTF8"].map(|name| bom_bytes(utf16, name)), [2, 2, 0, 0]);
    }

    #[test]
    fn utf8_is_utf8_however_it_is_spelled() {
        let named = |name| find(&Sample::of_whole(b"id\n"), Some(name)).unwrap().encoding.name;
        assert_eq!(["utf-8", "UTF8", "Unicode", "utf_8"].map(named), ["UTF8"; 4]);
        assert_eq!(named("latin1"), "latin1");
    }

    #[test]
    fn another_encoding_for_what_looks_like_utf8_is_told() {
        let is_told =
            |bytes: &[u8], name| find(&Sample::of_whole(bytes), Some(name)).unwrap().unsure.is_some();
        let mostly = [&"Müller\n".repeat(5).into_bytes()[..], b"M\xfcller\n"].concat();
        assert!(is_told(&mostly, "LATIN1") && is_told("zoë\n".as_bytes(), "SJIS"));
        assert!(
            !is_told(&mostly, "UTF8") && !is_told(b"M\xfcller\n", "LATIN1") && !is_told(b"a\n", "LATIN1")
        );
        assert!(!is_told(&utf16("id\r\nzoë\r\n", u16::to_le_bytes), "UTF-16LE"));
    }

    #[test]
    fn utf32_is_refused() {
        let sample = Sample::of_whole(b"\xff\xfe\0\0a\0\0\0");
        assert_eq!(find(&sample, None).err().unwrap().kind(), ErrorKind::Unsupported);
    }
}
