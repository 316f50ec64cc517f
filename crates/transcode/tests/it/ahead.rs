//! Decoding with the help of other threads: the same bytes and the same errors as decoding in order.

use howdah_model::{Codec, Error, ErrorKind, Result};
use howdah_testkit::compress::{bgzf, bgzf_member, gzip};
use howdah_transcode::decompress::{Helpers, Piece, ahead, begins_with_part, decoder, error};
use std::io::{BufReader, Cursor, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Two blocks of bzip2 fit, and no frame of 6 MB.
const BYTES_MAX: usize = 16 << 20;

/// Never come, as in a process whose other cores are busy.
struct Nobody;

impl Helpers for Nobody {
    fn count(&self) -> usize {
        3
    }

    fn offer(&self, _: Arc<Piece>) {}
}

/// Decode before the reader goes on, and count.
#[derive(Default)]
struct AtOnce(AtomicUsize);

impl Helpers for AtOnce {
    fn count(&self) -> usize {
        2
    }

    fn offer(&self, piece: Arc<Piece>) {
        self.0.fetch_add(usize::from(piece.decode()), Relaxed);
    }
}

struct Threads(Mutex<Sender<Arc<Piece>>>);

impl Threads {
    fn start(count: usize) -> Threads {
        let (offer, offered) = channel::<Arc<Piece>>();
        let offered: Arc<Mutex<Receiver<Arc<Piece>>>> = Arc::new(Mutex::new(offered));
        for _ in 0..count {
            let offered = Arc::clone(&offered);
            std::thread::spawn(move || {
                loop {
                    let Ok(piece) = offered.lock().unwrap().recv() else { return };
                    piece.decode();
                }
            });
        }
        Threads(Mutex::new(offer))
    }
}

impl Helpers for Threads {
    fn count(&self) -> usize {
        2
    }

    fn offer(&self, piece: Arc<Piece>) {
        self.0.lock().unwrap().send(piece).unwrap();
    }
}

/// What was read before the end, or before the error.
fn read(mut decoder: Box<dyn Read + Send + '_>) -> (Vec<u8>, Option<Error>) {
    let mut plain = Vec::new();
    let mut piece = vec![0; 10_007];
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return (plain, None),
            Ok(count) => plain.extend_from_slice(&piece[..count]),
            Err(cause) => return (plain, Some(error(cause))),
        }
    }
}

fn in_order(codec: Codec, stored: &[u8]) -> (Vec<u8>, Option<Error>) {
    read(decoder(codec, stored).unwrap())
}

/// Before an error the library for bzip2 keeps back what it has decoded last: how much, hangs on its buffers.
fn is_bytes_lost(codec: Codec, one: &[u8], other: &[u8], refusal: &Option<Error>) -> bool {
    let is_prefix = one.starts_with(other) || other.starts_with(one);
    codec == Codec::Bzip2 && refusal.is_some() && is_prefix
}

/// Decodes in every way, through buffers that cut headers, and compares.
fn compare(codec: Codec, stored: &[u8], what: &str) -> Result<Vec<u8>> {
    let (plain, refusal) = in_order(codec, stored);
    let ways: [(&str, Arc<dyn Helpers>); 3] = [
        ("nobody", Arc::new(Nobody)),
        ("at once", Arc::new(AtOnce::default())),
        ("threads", Arc::new(Threads::start(2))),
    ];
    for (way, helpers) in ways {
        let source = BufReader::with_capacity(4099, stored);
        let (helped, error) = read(ahead(codec, source, helpers, BYTES_MAX).unwrap());
        let same = helped == plain || is_bytes_lost(codec, &helped, &plain, &refusal);
        assert!(same, "{what}, {way}: {} bytes, in order {}", helped.len(), plain.len());
        let told = |error: &Option<Error>| {
            // Of a block of bzip2 that does not decode, it is not known whether it was cut short.
            let text = |error: &Error| if codec == Codec::Bzip2 { String::new() } else { error.to_string() };
            error.as_ref().map(|error| (error.kind(), text(error)))
        };
        assert_eq!(told(&error), told(&refusal), "{what}, {way}");
    }
    refusal.map_or(Ok(plain), Err)
}

/// Text that compresses, and some that does not.
fn plain(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut plain = Vec::with_capacity(bytes + 32);
    while plain.len() < bytes {
        if random.u8(..) < 16 {
            plain.extend(std::iter::repeat_with(|| random.u8(..)).take(32));
        } else {
            plain.extend_from_slice(format!("{}\tname\n", random.u32(..100_000)).as_bytes());
        }
    }
    plain.truncate(bytes);
    plain
}

/// Members that do not tell how long they are.
fn members(plain: &[u8], member_bytes: usize) -> Vec<u8> {
    plain.chunks(member_bytes).flat_map(gzip).collect()
}

/// A member that holds these bytes as they are.
fn as_they_are(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// How many parts others have decoded.
fn decoded_by_others(codec: Codec, stored: &[u8]) -> usize {
    let helpers = Arc::new(AtOnce::default());
    read(ahead(codec, stored, Arc::clone(&helpers) as Arc<dyn Helpers>, BYTES_MAX).unwrap());
    helpers.0.load(Relaxed)
}

fn frame(plain: &[u8], checksum: bool, tells_length: bool) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(checksum).unwrap();
    if tells_length {
        encoder.set_pledged_src_size(Some(plain.len() as u64)).unwrap();
    }
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn frames(plain: &[u8], frame_bytes: usize) -> Vec<u8> {
    plain
        .chunks(frame_bytes)
        .enumerate()
        .flat_map(|(no, plain)| frame(plain, no % 2 == 0, no % 3 == 0))
        .collect()
}

fn bzip2(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

const SKIPPABLE: [u8; 17] = [0x5A, 0x2A, 0x4D, 0x18, 9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn members_and_frames_of_any_size_are_the_same_with_help_and_without() {
    let plain = plain(9_000_000, 1);
    assert!(compare(Codec::Gzip, &bgzf(&plain), "bgzf").unwrap() == plain);
    for frame_bytes in [700_usize, 70_000, 2_000_000, 9_000_000] {
        let stored = frames(&plain[..(frame_bytes * 500).min(plain.len())], frame_bytes);
        compare(Codec::Zstd, &stored, &format!("frames of {frame_bytes}")).unwrap();
    }
    let mut random = fastrand::Rng::with_seed(2);
    let (mut members, mut frames, mut left) = (Vec::new(), Vec::new(), plain.as_slice());
    while !left.is_empty() {
        let (now, later) = left.split_at(random.usize(..65_000).min(left.len()));
        members.extend(bgzf_member(now));
        frames.extend(frame(now, random.bool(), random.bool()));
        if random.u8(..) < 8 {
            members.extend(bgzf_member(b""));
            frames.extend(SKIPPABLE);
            frames.extend(frame(b"", random.bool(), random.bool()));
        }
        left = later;
    }
    assert!(compare(Codec::Gzip, &members, "random members").unwrap() == plain);
    assert!(compare(Codec::Zstd, &frames, "random frames").unwrap() == plain);
}

#[test]
fn gzip_of_many_members_is_told_from_other_gzip_by_its_head() {
    let text = plain(40_000, 25);
    let many = members(&text, 10_000);
    for head in [&bgzf_member(b"1\n")[..18], &many, &many[..gzip(&text[..10_000]).len() + 10]] {
        assert!(begins_with_part(Codec::Gzip, head));
    }
    // The text before a member that is data is no length.
    let hidden = as_they_are(&[&text[..], &many].concat());
    for other in [gzip(&text), bgzf_member(b"1\n")[..17].to_vec(), hidden[..40_100].to_vec(), Vec::new()] {
        assert!(!begins_with_part(Codec::Gzip, &other));
    }
    assert!(begins_with_part(Codec::Bzip2, &bzip2(b"1\n", 1)) && !begins_with_part(Codec::Xz, b""));
}

#[test]
fn others_decode_the_parts() {
    let plain = plain(5_000_000, 3);
    let files = [
        (Codec::Gzip, bgzf(&plain)),
        (Codec::Gzip, members(&plain, 70_000)),
        (Codec::Gzip, members(&plain, 1_200_000)),
        (Codec::Zstd, frames(&plain, 300_000)),
        (Codec::Bzip2, bzip2(&plain, 1)),
    ];
    for (codec, stored) in files {
        let helpers = Arc::new(AtOnce::default());
        let reader = ahead(codec, stored.as_slice(), Arc::clone(&helpers) as Arc<dyn Helpers>, BYTES_MAX);
        assert!(read(reader.unwrap()).0 == plain);
        assert!(helpers.0.load(Relaxed) >= 4, "{codec:?}");
    }
}

#[test]
fn a_file_that_does_not_tell_its_parts_is_decoded_in_order() {
    let plain = plain(3_000_000, 4);
    let helpers = Arc::new(AtOnce::default());
    let member = gzip(&plain.repeat(3));
    let one = frame(&plain.repeat(3), true, true);
    for (codec, stored) in [(Codec::Gzip, member), (Codec::Zstd, one)] {
        let told = ahead(codec, stored.as_slice(), Arc::clone(&helpers) as Arc<dyn Helpers>, BYTES_MAX);
        assert!(read(told.unwrap()).0 == in_order(codec, &stored).0);
    }
    assert_eq!(helpers.0.load(Relaxed), 0);
}

#[test]
fn bgzf_and_plain_gzip_and_padding_may_follow_one_another() {
    let plain = plain(1_500_000, 5);
    let (cut, whole) = (bgzf(&plain), gzip(&plain));
    for (what, stored) in [
        ("plain behind", [cut.as_slice(), &whole].concat()),
        ("plain before", [whole.as_slice(), &cut].concat()),
        ("plain between", [cut.as_slice(), &whole, &cut].concat()),
        ("padding", [cut.as_slice(), &[0; 5000]].concat()),
    ] {
        compare(Codec::Gzip, &stored, what).unwrap();
    }
    let stored = [&SKIPPABLE[..], &frames(&plain, 90_000), &SKIPPABLE, &SKIPPABLE].concat();
    assert!(compare(Codec::Zstd, &stored, "skippable").unwrap() == plain);
}

#[test]
fn a_cut_file_and_one_with_garbage_behind_end_in_the_error_of_decoding_in_order() {
    let plain = plain(300_000, 6);
    let files = [
        (Codec::Gzip, bgzf(&plain)),
        (Codec::Gzip, members(&plain, 60_000)),
        (Codec::Zstd, frames(&plain, 60_000)),
        (Codec::Bzip2, bzip2(&plain, 1)),
    ];
    for (codec, stored) in files {
        for cut in (1..40).chain((40..stored.len()).step_by(4001)).chain(stored.len() - 40..stored.len()) {
            // A file that is cut between two members is whole.
            let _ = compare(codec, &stored[..cut], &format!("{codec:?} cut at {cut}"));
        }
        compare(codec, &stored[..stored.len() - 1], "one byte short").unwrap_err();
        for garbage in [&b"garbage, certainly"[..], b"g", b"\x1F", b"\x1F\x8Bx", b"\0\0\0x", b"BZh1"] {
            let stored = [stored.as_slice(), garbage].concat();
            let error = compare(codec, &stored, "garbage").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Decompress);
        }
    }
}

#[test]
fn damage_anywhere_is_told_as_by_decoding_in_order() {
    let plain = plain(2_000_000, 7);
    let mut random = fastrand::Rng::with_seed(8);
    let files = [
        (Codec::Gzip, bgzf(&plain)),
        (Codec::Gzip, members(&plain, 60_000)),
        (Codec::Zstd, frames(&plain, 60_000)),
        (Codec::Bzip2, bzip2(&plain[..500_000], 1)),
    ];
    for (codec, stored) in files {
        let mut refused = 0;
        for no in 0..90 {
            let mut damaged = stored.clone();
            let at = if no < 30 { no } else { random.usize(..stored.len()) };
            damaged[at] ^= 1 << random.u8(..8);
            refused += usize::from(compare(codec, &damaged, &format!("{codec:?} damaged at {at}")).is_err());
        }
        assert!(refused > 40, "{codec:?}: {refused}");
    }
}

#[test]
fn a_member_that_lies_about_its_length_is_judged_by_its_data() {
    let honest = bgzf_member(b"1\t2\n");
    let next = bgzf(&plain(200_000, 9));
    let mut longer = bgzf_member(&plain(1000, 10));
    longer.extend([0; 50]);
    let length = u16::try_from(longer.len() - 1).unwrap();
    longer[16..18].copy_from_slice(&length.to_le_bytes());
    let mut shorter = bgzf_member(&plain(1000, 11));
    let length = u16::try_from(shorter.len() - 60).unwrap();
    shorter[16..18].copy_from_slice(&length.to_le_bytes());
    // Empty, so that the zeros behind it look like the length of nothing.
    let mut empty = bgzf_member(b"");
    empty.extend([0; 8]);
    let length = u16::try_from(empty.len() - 1).unwrap();
    empty[16..18].copy_from_slice(&length.to_le_bytes());
    let mut two = bgzf_member(b"hidden");
    two.extend(gzip(b"member"));
    let length = u16::try_from(two.len() - 1).unwrap();
    two[16..18].copy_from_slice(&length.to_le_bytes());
    for (what, lying) in [("longer", longer), ("shorter", shorter), ("empty", empty), ("two", two)] {
        let stored = [honest.as_slice(), &lying, &next].concat();
        let judged = compare(Codec::Gzip, &stored, what);
        assert_eq!(judged.is_ok(), what == "shorter" || what == "two", "{what}");
    }
}

#[test]
fn a_frame_that_claims_gigabytes_takes_no_memory_for_them() {
    let plain = plain(3_000_000, 12);
    let claims = |bytes: u64| {
        let mut stored = frames(&plain, 500_000);
        // A single segment that tells its length in eight bytes, and then one block of repeated bytes.
        stored.extend([0x28, 0xB5, 0x2F, 0xFD, 0b1110_0000]);
        stored.extend(bytes.to_le_bytes());
        stored.extend([3 | 200 << 3, 0, 0, b'a']);
        stored
    };
    compare(Codec::Zstd, &claims(4 << 30), "4 GB").unwrap_err();
    compare(Codec::Zstd, &claims(1 << 40), "1 TB").unwrap_err();
    // A bomb: three bytes become 128 KiB, again and again.
    let mut bomb = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x38];
    for _ in 0..400 {
        bomb.extend([2, 0, 0x10, b'a']);
    }
    bomb.extend([1, 0, 0]);
    assert_eq!(compare(Codec::Zstd, &bomb, "bomb").unwrap().len(), 400 << 17);
}

#[test]
fn an_error_of_the_source_comes_behind_the_parts_before_it() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other(Error::new(ErrorKind::SourceTransient, "reset")))
        }
    }
    let plain = plain(4_000_000, 13);
    let files = [
        (Codec::Gzip, bgzf(&plain)),
        (Codec::Gzip, members(&plain, 60_000)),
        (Codec::Zstd, frames(&plain, 60_000)),
        (Codec::Bzip2, bzip2(&plain, 2)),
    ];
    for (codec, stored) in files {
        let source = BufReader::new(Cursor::new(&stored[..stored.len() / 2]).chain(Broken));
        let (before, error) = read(ahead(codec, source, Arc::new(Threads::start(1)), BYTES_MAX).unwrap());
        assert!(before.len() > 500_000 && plain.starts_with(&before), "{codec:?}");
        assert_eq!(error.unwrap().kind(), ErrorKind::SourceTransient, "{codec:?}");
    }
}

#[test]
fn blocks_of_bzip2_of_any_size_and_any_number_of_streams_are_the_same() {
    let plain = plain(1_500_000, 14);
    for level in [1, 3, 9] {
        assert!(compare(Codec::Bzip2, &bzip2(&plain, level), &format!("level {level}")).unwrap() == plain);
    }
    let mut random = fastrand::Rng::with_seed(15);
    let (mut streams, mut left) = (Vec::new(), plain.as_slice());
    while !left.is_empty() {
        let (now, later) = left.split_at(random.usize(..400_000).min(left.len()));
        streams.extend(bzip2(now, random.u32(1..=2)));
        left = later;
    }
    assert!(compare(Codec::Bzip2, &streams, "streams").unwrap() == plain);
    streams.extend(bzip2(b"", 9));
    streams.extend(bzip2(&plain[..1000], 9));
    assert_eq!(compare(Codec::Bzip2, &streams, "an empty stream").unwrap().len(), plain.len() + 1000);
}

/// A block's header says which bytes occur in it, one bit for each. So a text can be such that it looks like
/// the next block's beginning, or like the stream's end.
#[test]
fn a_block_that_seems_to_hold_the_next_one_is_still_one_block() {
    for magic in [[0x3141_u16, 0x5926, 0x5359], [0x1772, 0x4538, 0x5090]] {
        let bytes: Vec<u8> = (0..48)
            .filter(|bit| magic[bit / 16] >> (15 - bit % 16) & 1 == 1)
            .map(|bit| 0x40 + bit as u8)
            .collect();
        let mut random = fastrand::Rng::with_seed(16);
        let plain: Vec<u8> = (0..450_000).map(|_| bytes[random.usize(..bytes.len())]).collect();
        let stored = bzip2(&plain, 1);
        assert!(compare(Codec::Bzip2, &stored, "seeming").unwrap() == plain);
        let honest = [bzip2(b"1\n", 9), stored, bzip2(b"2\n", 9)].concat();
        assert_eq!(compare(Codec::Bzip2, &honest, "between others").unwrap().len(), plain.len() + 4);
    }
}

#[test]
fn a_block_that_becomes_many_megabytes_is_decoded_in_order() {
    let plain = [plain(200_000, 17), vec![b' '; 30_000_000], plain(200_000, 18)].concat();
    assert!(compare(Codec::Bzip2, &bzip2(&plain, 1), "runs").unwrap() == plain);
}

#[test]
fn a_bzip2_stream_whose_checksum_is_another_one_is_an_error() {
    let plain = plain(300_000, 19);
    let mut stored = bzip2(&plain, 1);
    let at = stored.len() - 3;
    stored[at] ^= 1;
    let stored = [stored, bzip2(&plain, 1)].concat();
    assert_eq!(compare(Codec::Bzip2, &stored, "checksum").unwrap_err().kind(), ErrorKind::Decompress);
}

#[test]
fn a_file_without_a_byte_is_what_it_is_in_order() {
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4] {
        let _ = compare(codec, b"", &format!("{codec:?}"));
    }
}

#[test]
fn gzip_of_members_of_any_size_is_the_same() {
    let plain = plain(12_000_000, 20);
    for member_bytes in [1_usize, 300, 65_536, 1 << 20, 4_000_000, 12_000_000] {
        let plain = &plain[..plain.len().min(member_bytes.saturating_mul(2000))];
        let stored = members(plain, member_bytes);
        assert!(compare(Codec::Gzip, &stored, &format!("members of {member_bytes}")).unwrap() == plain);
    }
    let mut random = fastrand::Rng::with_seed(21);
    for round in 0..8 {
        let (mut stored, mut left) = (Vec::new(), plain.as_slice());
        while left.len() > 6_000_000 {
            // From a byte to some megabytes, as likely as bytes or kilobytes.
            let bytes_max = 1 << random.u32(0..23);
            let bytes = random.usize(..bytes_max).min(left.len());
            let (now, later) = left.split_at(bytes);
            match random.u8(..16) {
                0 => stored.extend(gzip(b"")),
                1 => stored.extend(as_they_are(now)),
                2 => now.chunks(65_280).for_each(|now| stored.extend(bgzf_member(now))),
                3 => stored.extend(named(now)),
                _ => stored.extend(gzip(now)),
            }
            left = later;
        }
        compare(Codec::Gzip, &stored, &format!("round {round}")).unwrap();
    }
}

/// A member whose header tells a name, a comment and more.
fn named(plain: &[u8]) -> Vec<u8> {
    let builder = flate2::GzBuilder::new()
        .filename("\u{1f}\u{8b}")
        .comment("a")
        .extra(*b"xy\x02\0\x1f\x8b")
        .mtime(0x088b_1f08);
    let mut encoder = builder.write(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_member_inside_of_a_member_is_data() {
    let text = plain(2_600_000, 22);
    let inner = members(&text[..600_000], 150_000);
    let hidden = as_they_are(&[&text[..100_000], &inner, &text[..1000]].concat());
    // Such a part ends at each of the hidden ones.
    let large = as_they_are(&[text.as_slice(), &members(&text, 700_000)].concat());
    let honest = members(&text, 400_000);
    for (what, member) in [("small", &hidden), ("large", &large)] {
        for stored in [member.clone(), [&honest[..], member, &honest, member, member, &honest].concat()] {
            compare(Codec::Gzip, &stored, what).unwrap();
        }
        compare(Codec::Gzip, &member.repeat(12), what).unwrap();
    }
    // What is behind is cut again.
    let stored = [large.as_slice(), &honest, &honest, &honest].concat();
    assert!(
        decoded_by_others(Codec::Gzip, &stored)
            > decoded_by_others(Codec::Gzip, &[&honest[..], &honest, &honest].concat()) / 2
    );
}

/// Lengths of two bytes count from 256 (RFC 8878, 3.1.1.1.4), also where they are the window.
#[test]
fn frames_of_any_length_leave_work_to_others() {
    let text = plain(3_000_000, 24);
    for small in [200, 255, 256, 300, 511, 4_000, 65_791, 65_792] {
        let small = frame(&text[..small], true, true);
        let stored = [&small[..], &frames(&text, 300_000), &small, &frames(&text, 300_000)].concat();
        compare(Codec::Zstd, &stored, "a small frame").unwrap();
        let without = decoded_by_others(Codec::Zstd, &frames(&text, 300_000));
        assert!(decoded_by_others(Codec::Zstd, &stored) > without, "{} bytes", small.len());
    }
}

#[test]
fn behind_a_large_member_parts_are_cut_again() {
    let text = plain(3_000_000, 23);
    let (large, small) = (gzip(&text.repeat(4)), members(&text, 200_000));
    for stored in [[&large[..], &small].concat(), [&small[..], &large, &large, &small, &large].concat()] {
        compare(Codec::Gzip, &stored, "large").unwrap();
        assert!(decoded_by_others(Codec::Gzip, &stored) > 0);
    }
    assert_eq!(decoded_by_others(Codec::Gzip, &large), 0);
    // Of zeros a thousand times as many come out.
    let zeros = gzip(&vec![0; 20_000_000]);
    compare(Codec::Gzip, &[&small[..], &zeros, &small, &zeros, &zeros].concat(), "zeros").unwrap();
}

#[test]
fn the_trailer_of_a_member_is_verified() {
    let text = plain(900_000, 24);
    let (first, second) = (gzip(&text[..300_000]), gzip(&text[300_000..]));
    for back in 1..=8 {
        for stored in [[&first[..], &second].concat(), [&first[..], &second, &first].concat()] {
            let mut stored = stored;
            let at = first.len() - back;
            stored[at] ^= 0x10;
            compare(Codec::Gzip, &stored, &format!("{back} bytes from the end")).unwrap_err();
        }
    }
    let padded = [&first[..], &second, &[0; 70_000]].concat();
    assert!(compare(Codec::Gzip, &padded, "padding").unwrap() == text);
    let between = [&first[..], &[0; 8], &second].concat();
    compare(Codec::Gzip, &between, "padding between").unwrap_err();
}
