//! Compressed files as other programs write them.

use flate2::Compression;
use howdah_model::Codec;
use std::io::Write;

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// Several members, as `cat a.gz b.gz` makes them, cut without regard to records; one of them empty.
pub fn gzip_members(bytes: &[u8]) -> Vec<u8> {
    let (one, two) = bytes.split_at(bytes.len() / 3);
    [gzip(one), gzip(b""), gzip(two)].concat()
}

/// Members that tell their lengths, as `bgzip` writes them, and the empty one that it ends with.
pub fn bgzf(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(65_280).chain([&[][..]]).flat_map(bgzf_member).collect()
}

/// One of them, of at most 65,280 bytes.
pub fn bgzf_member(bytes: &[u8]) -> Vec<u8> {
    let whole = gzip(bytes);
    let length = u16::try_from(whole.len() + 8 - 1).expect("a small member");
    let (header, rest) = whole.split_at(10);
    let mut member = header.to_vec();
    member[3] = 4;
    member.extend([6, 0, b'B', b'C', 2, 0]);
    member.extend(length.to_le_bytes());
    member.extend(rest);
    member
}

/// Many frames with checksums, as `pzstd` writes them.
pub fn zstd_frames(bytes: &[u8]) -> Vec<u8> {
    let frame = |bytes: &[u8]| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory takes all");
        encoder.include_checksum(true).expect("memory takes all");
        encoder.write_all(bytes).expect("memory takes all");
        encoder.finish().expect("memory takes all")
    };
    bytes.chunks(300_000).flat_map(frame).collect()
}

/// One zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes all")
}

/// What a codec makes of it.
pub fn any(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => bytes.to_vec(),
        Codec::Gzip => gzip(bytes),
        Codec::Zstd => zstd(bytes),
        Codec::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).expect("memory takes all");
            encoder.finish().expect("memory takes all")
        }
        Codec::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).expect("memory takes all");
            encoder.finish().expect("memory takes all")
        }
        Codec::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).expect("memory takes all");
            encoder.finish().expect("memory takes all")
        }
    }
}
