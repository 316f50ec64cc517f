//! How the rows of a load are written into files, and what the command is told about that.

use super::data::{HEADER, Record};
use super::flaw::NO_CHARACTER;
use encoding_rs::Encoding;
use fastrand::Rng;
use howdah_testkit::compress;

/// Told in COPY's words, or found from the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// `--format csv`
    Csv,
    /// `--format text`
    Text,
    /// Nothing is told.
    Found(Look),
}

/// What has to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    delimiter: char,
    /// All values are quoted, and not only those that must be.
    quoted: bool,
    crlf: bool,
}

/// How a file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    Latin1,
    Latin2,
    Win1251,
    Koi8r,
    Sjis,
    EucJp,
    EucKr,
    Big5,
    Gbk,
    Gb18030,
    /// With a byte order mark.
    Utf16Le,
    Utf16Be,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Gzip,
    /// Members that tell their lengths.
    Bgzf,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

impl Codec {
    pub(super) const ALL: [Codec; 9] = [
        Codec::Plain,
        Codec::Plain,
        Codec::Gzip,
        Codec::Gzip,
        Codec::Bgzf,
        Codec::Zstd,
        Codec::Bzip2,
        Codec::Xz,
        Codec::Lz4,
    ];

    fn suffix(self) -> &'static str {
        match self {
            Codec::Plain => "",
            Codec::Gzip | Codec::Bgzf => ".gz",
            Codec::Zstd => ".zst",
            Codec::Bzip2 => ".bz2",
            Codec::Xz => ".xz",
            Codec::Lz4 => ".lz4",
        }
    }

    fn compress(self, bytes: &[u8]) -> Vec<u8> {
        use howdah_engine::model::Codec as Of;
        let of = match self {
            Codec::Plain => Of::None,
            Codec::Bgzf => return compress::bgzf(bytes),
            Codec::Gzip => Of::Gzip,
            Codec::Zstd => Of::Zstd,
            Codec::Bzip2 => Of::Bzip2,
            Codec::Xz => Of::Xz,
            Codec::Lz4 => Of::Lz4,
        };
        compress::any(of, bytes)
    }
}

impl Charset {
    const ALL: [Charset; 13] = [
        Charset::Utf8,
        Charset::Latin1,
        Charset::Latin2,
        Charset::Win1251,
        Charset::Koi8r,
        Charset::Sjis,
        Charset::EucJp,
        Charset::EucKr,
        Charset::Big5,
        Charset::Gbk,
        Charset::Gb18030,
        Charset::Utf16Le,
        Charset::Utf16Be,
    ];

    /// Its name for howdah and in the Encoding Standard.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Charset::Utf8 => ("UTF8", "utf-8"),
            // The Encoding Standard has only its superset.
            Charset::Latin1 => ("LATIN1", "windows-1252"),
            Charset::Latin2 => ("LATIN2", "iso-8859-2"),
            Charset::Win1251 => ("WIN1251", "windows-1251"),
            Charset::Koi8r => ("KOI8R", "koi8-r"),
            Charset::Sjis => ("SJIS", "shift_jis"),
            Charset::EucJp => ("EUC_JP", "euc-jp"),
            Charset::EucKr => ("EUC_KR", "euc-kr"),
            Charset::Big5 => ("BIG5", "big5"),
            Charset::Gbk => ("GBK", "gbk"),
            Charset::Gb18030 => ("GB18030", "gb18030"),
            Charset::Utf16Le => ("UTF-16LE", "utf-16le"),
            Charset::Utf16Be => ("UTF-16BE", "utf-16be"),
        }
    }

    /// What it can write; in encodings that hide ASCII bytes, letters whose second byte is a backslash or a
    /// bar.
    pub(super) fn letters(self) -> &'static [char] {
        match self {
            Charset::Utf8 | Charset::Utf16Le | Charset::Utf16Be => &['a', 'z', ' ', 'é', '€', '漢', '🐘'],
            Charset::Latin1 => &['a', 'z', ' ', 'é', 'ß', 'ÿ', '£'],
            Charset::Latin2 => &['a', 'z', ' ', 'ł', 'ő', 'š', 'ż'],
            Charset::Win1251 | Charset::Koi8r => &['a', 'z', ' ', 'Ж', 'я', 'ё', 'ъ'],
            Charset::Sjis => &['a', 'z', ' ', '表', 'ソ', 'ポ', '漢'],
            Charset::EucJp => &['a', 'z', ' ', '表', 'ソ', 'ポ', '漢'],
            Charset::EucKr => &['a', 'z', ' ', '가', '한', '글'],
            Charset::Big5 => &['a', 'z', ' ', '功', '許', '蓋', '中'],
            Charset::Gbk | Charset::Gb18030 => &['a', 'z', ' ', '乗', '中', '亅', '国'],
        }
    }

    /// An encoding for a database that has all its letters; not what makes a difference to UTF8.
    pub(super) fn of_database(self) -> Option<&'static str> {
        match self {
            Charset::Latin1 => Some("LATIN1"),
            Charset::Win1251 | Charset::Koi8r => Some("WIN1251"),
            Charset::Sjis | Charset::EucJp => Some("EUC_JP"),
            Charset::EucKr => Some("EUC_KR"),
            _ => None,
        }
    }

    /// The bytes of the file say so.
    fn is_evident(self) -> bool {
        matches!(self, Charset::Utf8 | Charset::Utf16Le | Charset::Utf16Be)
    }

    fn encode(self, text: &str) -> Vec<u8> {
        let with_mark = || std::iter::once(0xFEFF).chain(text.encode_utf16());
        match self {
            Charset::Utf8 => text.split(NO_CHARACTER).map(str::as_bytes).collect::<Vec<_>>().join(&0xff),
            Charset::Utf16Le => with_mark().flat_map(u16::to_le_bytes).collect(),
            Charset::Utf16Be => with_mark().flat_map(u16::to_be_bytes).collect(),
            _ => {
                let encoding = Encoding::for_label(self.names().1.as_bytes()).unwrap();
                let (bytes, _, replaced) = encoding.encode(text);
                assert!(!replaced, "{self:?} cannot write a letter of the test's");
                bytes.into_owned()
            }
        }
    }
}

/// All that is drawn of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) format: Format,
    pub(super) charset: Charset,
}

impl Written {
    pub(super) fn draw(random: &mut Rng, told: bool) -> Written {
        let found = Format::Found(Look {
            delimiter: [',', ';', '\t', '|'][random.usize(..4)],
            quoted: random.bool(),
            crlf: random.bool(),
        });
        let format = match random.u8(..6) {
            0..3 if told => Format::Csv,
            3 if told => Format::Text,
            _ => found,
        };
        let charset = if random.u8(..3) == 0 {
            Charset::ALL[random.usize(..Charset::ALL.len())]
        } else {
            Charset::Utf8
        };
        Written { format, charset }
    }

    /// Options of the command.
    pub(super) fn arguments(self) -> Vec<&'static str> {
        let mut words = match self.format {
            Format::Csv => vec!["--format", "csv", "--header"],
            Format::Text => vec!["--format", "text", "--columns", HEADER],
            Format::Found(_) => vec![],
        };
        if self.is_told() || !self.charset.is_evident() {
            words.extend(["--encoding", self.charset.names().0]);
        }
        words
    }

    /// COPY's own options say how files are written.
    pub(super) fn is_told(self) -> bool {
        !matches!(self.format, Format::Found(_))
    }

    /// What a file is called, behind the name of its table.
    pub(super) fn file_name(self, no: usize, codec: Codec) -> String {
        let format = if self.format == Format::Text { "txt" } else { "csv" };
        format!("part{no}.{format}{}", codec.suffix())
    }

    /// One record as its file has it, decompressed.
    pub(super) fn record(self, record: &Record) -> Vec<u8> {
        self.charset.encode(&self.format.line(record))
    }

    /// A file of these records.
    pub(super) fn file(self, records: &[Record], codec: Codec) -> Vec<u8> {
        codec.compress(&self.charset.encode(&self.format.text_of(records)))
    }
}

impl Format {
    pub(super) fn text_of(self, records: &[Record]) -> String {
        let names = records.first().into_iter().flat_map(Record::header);
        let header = self.look().map(|look| look.line(names.map(|name| look.field(Some(name)))));
        header.into_iter().chain(records.iter().map(|record| self.line(record))).collect()
    }

    /// One record with its line ending.
    fn line(self, record: &Record) -> String {
        let Some(look) = self.look() else { return text_line(record) };
        look.line(record.fields().iter().map(|field| look.field(field.as_deref())))
    }

    /// COPY's text has none.
    fn look(self) -> Option<Look> {
        match self {
            Format::Text => None,
            Format::Csv => Some(Look { delimiter: ',', quoted: false, crlf: false }),
            Format::Found(look) => Some(look),
        }
    }
}

impl Look {
    fn line(self, fields: impl Iterator<Item = String>) -> String {
        let line = fields.collect::<Vec<_>>().join(self.delimiter.encode_utf8(&mut [0; 4]));
        line + if self.crlf { "\r\n" } else { "\n" }
    }

    /// NULL is the empty field without quotes.
    fn field(self, value: Option<&str>) -> String {
        let Some(value) = value else { return String::new() };
        let must = value.is_empty() || value == "\\." || value.contains(['"', '\n', '\r', self.delimiter]);
        if must || self.quoted { format!("\"{}\"", value.replace('"', "\"\"")) } else { value.to_owned() }
    }
}

fn text_line(record: &Record) -> String {
    let escaped = |value: String| {
        value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
    };
    let fields = record.fields().into_iter().map(|field| field.map_or_else(|| "\\N".to_owned(), escaped));
    fields.collect::<Vec<_>>().join("\t") + "\n"
}
