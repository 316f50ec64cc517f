//! Every codec: whole files, several members, and every way of being cut or damaged.

use howdah_model::{Codec, Error, ErrorKind, Result};
use howdah_transcode::decompress::{SNIFF_BYTES, decoder, error, sniff};
use std::io::{BufReader, Read, Write};

const CODECS: [Codec; 5] = [Codec::Gzip, Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4];

fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => plain.to_vec(),
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Zstd => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// Through a small buffer, so that members and numbers are cut.
fn decompress(codec: Codec, stored: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    let mut decoder = decoder(codec, BufReader::with_capacity(7, stored))?;
    decoder.read_to_end(&mut plain).map_err(error)?;
    Ok(plain)
}

fn plain() -> Vec<u8> {
    (0..20_000)
        .flat_map(|number: u32| {
            format!("{number}\tname {}\n", number.wrapping_mul(2_654_435_761)).into_bytes()
        })
        .collect()
}

#[test]
fn every_codec_is_recognised_and_gives_back_what_went_in() {
    for codec in CODECS {
        for plain in [plain(), Vec::new(), b"a".to_vec()] {
            let stored = compress(codec, &plain);
            assert_eq!(sniff(&stored[..stored.len().min(SNIFF_BYTES)]).unwrap(), codec);
            assert!(decompress(codec, &stored).unwrap() == plain, "{codec:?}");
        }
    }
}

#[test]
fn many_members_are_one_stream() {
    for codec in CODECS {
        let stored = [compress(codec, b"a\n"), compress(codec, b""), compress(codec, &plain())].concat();
        assert!(decompress(codec, &stored).unwrap() == [b"a\n".to_vec(), plain()].concat(), "{codec:?}");
    }
}

#[test]
fn a_truncated_file_is_an_error_wherever_it_is_cut() {
    let plain = &plain()[..1200];
    for codec in CODECS {
        let first = compress(codec, plain);
        let stored = [first.clone(), compress(codec, plain)].concat();
        for cut in (1..stored.len()).filter(|&cut| cut != first.len()) {
            let error = decompress(codec, &stored[..cut]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Decompress, "{codec:?} cut at {cut}");
        }
    }
}

#[test]
fn damage_is_an_error_or_changes_nothing() {
    let plain = &plain()[..1200];
    for codec in CODECS {
        let stored = compress(codec, plain);
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x10;
            // Some header bits (time, name, system) mean nothing for the data.
            if let Ok(result) = decompress(codec, &damaged) {
                assert!(result == plain, "{codec:?} at {at}");
            }
        }
    }
}

#[test]
fn zero_padding_behind_gzip_is_passed_over() {
    let mut stored = compress(Codec::Gzip, b"a\n");
    stored.extend([0; 1000]);
    assert_eq!(decompress(Codec::Gzip, &stored).unwrap(), b"a\n");
    stored.push(1);
    assert_eq!(decompress(Codec::Gzip, &stored).unwrap_err().kind(), ErrorKind::Decompress);
}

#[test]
fn garbage_behind_the_last_member_is_an_error() {
    for codec in CODECS {
        for garbage in [&b"garbage, certainly"[..], b"g", b"\x1F", b"\x1F\x8Bx"] {
            let stored = [compress(codec, b"a\n"), garbage.to_vec()].concat();
            let error = decompress(codec, &stored).unwrap_err();
            // These may begin a member that is cut short.
            let may_begin = codec == Codec::Gzip && garbage[0] == 0x1F;
            if garbage.len() >= 4 || !may_begin {
                assert!(
                    error.to_string().contains("is followed by bytes that are not"),
                    "{codec:?}: {error}"
                );
                assert!(error.hint().is_some(), "{codec:?}");
            }
        }
    }
}

#[test]
fn a_frame_that_ends_in_its_first_bytes_is_cut_short() {
    let begins = [(Codec::Zstd, [0x28, 0xB5, 0x2F]), (Codec::Lz4, [0x04, 0x22, 0x4D])];
    for (codec, begin) in
        begins.into_iter().chain([(Codec::Zstd, [0x5A, 0x2A, 0x4D]), (Codec::Lz4, [0x50, 0x2A, 0x4D])])
    {
        for length in 1..=3 {
            let stored = [compress(codec, b"a\n"), begin[..length].to_vec()].concat();
            let error = decompress(codec, &stored).unwrap_err();
            assert!(error.to_string().contains("ends early"), "{codec:?}: {error}");
        }
    }
}

#[test]
fn padding_behind_xz_comes_in_fours() {
    for (padding, is_whole) in [(0, true), (4, true), (1000, true), (3, false), (5, false)] {
        let stored = [compress(Codec::Xz, b"a\n"), vec![0; padding]].concat();
        for (behind, wanted) in [(Vec::new(), &b"a\n"[..]), (compress(Codec::Xz, b"b\n"), b"a\nb\n")] {
            let plain = decompress(Codec::Xz, &[stored.clone(), behind].concat());
            assert_eq!(plain.is_ok_and(|plain| plain == wanted), is_whole, "{padding}");
        }
    }
}

#[test]
fn a_dictionary_that_is_not_there_is_told() {
    let mut stored = compress(Codec::Zstd, &plain());
    // The frame says that its dictionary is number 7; a window size stands before that.
    assert_eq!(stored[4] & 0x23, 0);
    stored[4] |= 1;
    stored.insert(6, 7);
    let error = decompress(Codec::Zstd, &stored).unwrap_err();
    assert!(error.to_string().contains("compressed with a dictionary"), "{error}");
    assert!(error.hint().unwrap().contains("zstd -dc -D"), "{error}");
}

#[test]
fn skippable_frames_are_skipped() {
    let skippable = [0x5A, 0x2A, 0x4D, 0x18, 9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    for codec in [Codec::Zstd, Codec::Lz4] {
        let stored = [
            &skippable[..],
            &compress(codec, b"a\n"),
            &skippable,
            &skippable,
            &compress(codec, b"b\n"),
            &skippable,
        ]
        .concat();
        assert_eq!(sniff(&stored).unwrap(), codec);
        assert_eq!(decompress(codec, &stored).unwrap(), b"a\nb\n");
        assert!(decompress(codec, &stored[..stored.len() - 1]).is_err(), "{codec:?}");
    }
}

#[test]
fn an_empty_lz4_block_does_not_hide_a_cut() {
    let whole = compress(Codec::Lz4, b"a\n");
    let empty_block = [1, 0, 0, 0, 0];
    let end_mark = whole.len() - 8;
    let cut = [&whole[..end_mark], &empty_block].concat();
    assert_eq!(decompress(Codec::Lz4, &cut).unwrap_err().kind(), ErrorKind::Decompress);
    let ended = [&cut[..], &whole[end_mark..]].concat();
    assert_eq!(decompress(Codec::Lz4, &ended).unwrap(), b"a\n");
}

#[test]
fn a_zstd_window_beyond_the_limit_is_refused_with_a_hint() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(&plain()).unwrap();
    let error = decompress(Codec::Zstd, &encoder.finish().unwrap()).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("--long")), "{error}");
}

#[test]
fn an_error_of_the_source_stays_what_it_was() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other(Error::new(ErrorKind::SourceTransient, "reset")))
        }
    }
    for codec in CODECS {
        let stored = compress(codec, &plain());
        let source = BufReader::new(stored[..stored.len() / 2].chain(Broken));
        let mut decoder = decoder(codec, source).unwrap();
        let cause = decoder.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error(cause).kind(), ErrorKind::SourceTransient, "{codec:?}");
    }
}
