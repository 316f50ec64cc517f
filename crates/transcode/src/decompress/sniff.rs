//! How a file is compressed, told by its first bytes.
//!
//! Signatures that could also begin a text are believed only if what follows fits too. Kinds of files that
//! cannot be loaded are refused with a word on what to do instead.

use howdah_model::{Codec, Error, ErrorKind, Result};

/// As many first bytes as [`sniff`] looks at (a tar header is one block of 512).
pub const SNIFF_BYTES: usize = 512;

/// How the file that begins with `head` is compressed. `head` should hold [`SNIFF_BYTES`], or all of a
/// shorter file.
///
/// # Errors
/// `Unsupported` for archives, spreadsheets, column stores and PostgreSQL's own binary formats.
pub fn sniff(head: &[u8]) -> Result<Codec> {
    let codec = match head {
        [0x1F, 0x8B, 8, ..] => Codec::Gzip,
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Codec::Zstd,
        [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => behind_skippable(head),
        [b'B', b'Z', b'h', b'1'..=b'9', magic @ ..] if is_bzip2_block(magic) => Codec::Bzip2,
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Codec::Xz,
        [0x04, 0x22, 0x4D, 0x18, ..] => Codec::Lz4,
        _ => return refusal(head).map_or(Ok(Codec::None), Err),
    };
    Ok(codec)
}

/// zstd and lz4 share the signature of frames to be skipped; the first other frame tells. If none is in
/// sight it is zstd, whose tools write such frames (pzstd, the seekable format).
fn behind_skippable(mut head: &[u8]) -> Codec {
    while let [0x50..=0x5F, 0x2A, 0x4D, 0x18, a, b, c, d, rest @ ..] = head {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        head = rest.get(length..).unwrap_or_default();
    }
    if head.starts_with(&[0x04, 0x22, 0x4D, 0x18]) { Codec::Lz4 } else { Codec::Zstd }
}

/// The first block of a stream, or its end if it is empty.
fn is_bzip2_block(magic: &[u8]) -> bool {
    magic.starts_with(&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
        || magic.starts_with(&[0x17, 0x72, 0x45, 0x38, 0x50, 0x90])
}

/// What the file is, and what its user can do.
type Refusal = (&'static str, &'static str);

const UNPACK: &str = "unpack it first, or pipe one file of it into `howdah load -`";
const EXPORT: &str = "export the sheet as CSV";
const CONVERT: &str = "convert it to CSV first, for example with DuckDB or pyarrow";
const PDF: Refusal =
    ("a PDF document", "load the table that it was made from, or one that a tool takes out of it");
const RECOMPRESS: &str = "decompress it first, or compress with gzip, zstd, bzip2, xz or lz4";

/// Signatures that no text begins with.
const SIGNATURES: &[(&[u8], Refusal)] = &[
    (
        b"PGCOPY\n\xFF\r\n\0",
        ("binary COPY data", "Load it with psql: \\copy TABLE from FILE with (format binary)"),
    ),
    (b"PK\x05\x06", ("an empty zip archive", UNPACK)),
    (b"7z\xBC\xAF\x27\x1C", ("a 7z archive", UNPACK)),
    (b"Rar!\x1A\x07", ("a rar archive", UNPACK)),
    (b"%PDF-1.", PDF),
    (b"%PDF-2.", PDF),
    (b"ARROW1\0\0", ("an Arrow file", CONVERT)),
    (
        b"SQLite format 3\0",
        ("an SQLite database", "Export the table as CSV: sqlite3 -csv FILE 'select * from TABLE'"),
    ),
    (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", ("an Excel workbook (.xls)", EXPORT)),
    (b"\x1F\x9D", ("compressed by compress (.Z)", RECOMPRESS)),
    (b"\x1F\x8B", ("gzip with an unknown method", RECOMPRESS)),
    (b"LZIP\x01", ("compressed by lzip", RECOMPRESS)),
    (b"\x89LZO\0\r\n\x1A\n", ("compressed by lzop", RECOMPRESS)),
    (b"\xFF\x06\0\0sNaPpY", ("compressed by snappy", RECOMPRESS)),
    (b"\x02\x21\x4C\x18", ("the old lz4 format (lz4 -l)", RECOMPRESS)),
];

/// Signatures that text may begin with, too; believed only where control bytes follow.
const LETTERS: &[(&[u8], Refusal)] = &[
    (b"PAR1", ("a Parquet file", CONVERT)),
    (b"PARE", ("an encrypted Parquet file", CONVERT)),
    (b"ORC", ("an ORC file", CONVERT)),
    (b"Obj\x01", ("an Avro file", CONVERT)),
    (b"FEA1", ("a Feather file", CONVERT)),
    (b"PGDMP", ("a dump made by pg_dump", "restore it with pg_restore")),
];

fn refusal(head: &[u8]) -> Option<Error> {
    let begins = |list: &[(&[u8], Refusal)]| {
        list.iter().find(|(signature, _)| head.starts_with(signature)).map(|(_, refusal)| *refusal)
    };
    let (what, hint) = zip(head)
        .or_else(|| begins(SIGNATURES))
        .or_else(|| begins(LETTERS).filter(|_| has_control_bytes(head)))
        .or_else(|| is_tar(head).then_some(("a tar archive", UNPACK)))?;
    Some(
        Error::new(ErrorKind::Unsupported, format!("the file is {what}, which is not loaded"))
            .with_hint(hint),
    )
}

/// A workbook is a zip whose first entries have well-known names.
fn zip(head: &[u8]) -> Option<Refusal> {
    let is_workbook = |name: &[u8]| {
        name.starts_with(b"xl/") || name.starts_with(b"[Content_Types].xml") || name.starts_with(b"_rels/")
    };
    head.starts_with(b"PK\x03\x04").then(|| match head.get(30..) {
        Some(name) if is_workbook(name) => ("an Excel workbook (.xlsx)", EXPORT),
        Some(name) if name.starts_with(b"mimetypeapplication/vnd.oasis") => ("an OpenDocument file", EXPORT),
        _ => ("a zip archive", UNPACK),
    })
}

/// POSIX and GNU tar write their magic into the header block, with a NUL that no text has.
fn is_tar(head: &[u8]) -> bool {
    head.get(257..).is_some_and(|magic| magic.starts_with(b"ustar\0") || magic.starts_with(b"ustar  \0"))
}

/// Bytes that text files do not have. Hive writes 1 to 3 between fields, items and keys, and ASCII has 0x1C
/// to 0x1F for that.
fn has_control_bytes(head: &[u8]) -> bool {
    head.iter().any(|byte| matches!(byte, 0 | 4..=8 | 0x0E..=0x1A))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_taken_for_compressed() {
        for text in
            ["", "BZh", "BZh9,1", "BZh91AY&", "PAR1,x\n", "ORC\tx\n", "PK,1\n", "P*M\n", "7zip\n", "Obj\n"]
        {
            assert_eq!(sniff(text.as_bytes()).unwrap(), Codec::None, "{text}");
        }
        for text in ["PARENT_ID\x01NAME\n1\x01a\x02b\x03c\n", "ORC\x1fx\x1e", "Obj\x01name\n"] {
            assert_eq!(sniff(text.as_bytes()).unwrap(), Codec::None, "{text}");
        }
    }

    #[test]
    fn archives_are_refused_with_a_hint() {
        let mut tar = vec![b'a'; 512];
        tar[257..263].copy_from_slice(b"ustar\0");
        let binary = [
            tar.as_slice(),
            b"PK\x03\x04\x14\0",
            b"PAR1\x15\x04",
            b"ORC\x0A\x06",
            b"PGCOPY\n\xFF\r\n\0\0",
            b"Obj\x01\x02\x16avro.schema",
            b"Obj\x01\x04\x14avro.codec",
            b"PGDMP\x01\x0E",
            b"%PDF-1.7\n%",
        ];
        for head in binary {
            let error = sniff(head).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn a_skippable_frame_is_looked_behind() {
        let skippable = [0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7];
        let lz4 = [&skippable[..], &[0x04, 0x22, 0x4D, 0x18]].concat();
        assert_eq!(sniff(&lz4).unwrap(), Codec::Lz4);
        assert_eq!(sniff(&skippable).unwrap(), Codec::Zstd);
    }
}
