//! Compressed files that are cut short where the format lets them end.

use crate::scene::{Files, PATIENCE, Scene, csv, gzip};
use crate::web::Web;
use howdah_testkit::compress::bgzf;
use howdah_testkit::{Finished, HowdahCommand, Server};

/// What `bgzf` ends with.
fn empty_member_bytes() -> usize {
    bgzf(b"").len()
}

#[test]
fn bgzf_without_its_last_block_is_loaded_with_a_warning() {
    let (files, web) = (Files::new(), Web::new());
    let plain = csv(301, 1, 60_000);
    for plain in [&plain[..], b"id,part,amount,note\n1,1,1,x\n"] {
        let whole = bgzf(plain);
        let cut = &whole[..whole.len() - empty_member_bytes()];
        for (stored, is_cut) in [(cut, true), (&whole[..], false)] {
            let scene = Scene::new(Server::shared(15), &[]);
            let path = files.put("a.csv.gz", stored);
            let url = web.put("a.csv.gz", stored);
            let run = |load: HowdahCommand| load.args(["--json", "--known", "load"]).run(PATIENCE);
            let expect = |finished: Finished, name: &str| {
                let finished = finished.expect_code(0);
                let warning = format!("{name} is BGZF and has no empty block at its end");
                assert_eq!(finished.stdout.contains(&warning), is_cut, "{name}: {}", finished.stdout);
                assert_eq!(finished.stderr.contains(&warning), is_cut, "{name}: {}", finished.stderr);
                scene.want(plain);
                scene.assert_exact(name);
            };
            expect(run(scene.load().arg(&path)), "a.csv.gz");
            expect(run(scene.load().arg(&url)), "a.csv.gz");
            expect(run(scene.load().arg("-").stdin(stored)), "-");
        }
    }
}

/// The checksum that would tell stands behind the record.
#[test]
fn a_bad_record_of_a_compressed_file_may_be_damage() {
    let (files, scene) = (Files::new(), Scene::new(Server::shared(15), &[]));
    let plain = b"id,part,amount,note\n1,x,1,x\n";
    for (name, stored, test) in [
        ("a.csv.gz", gzip(plain), Some("the file is compressed: gzip -t tells whether it is damaged")),
        ("a.csv", plain.to_vec(), None),
    ] {
        let told = scene.load().arg(files.put(name, &stored)).run(PATIENCE).expect_code(1).stderr;
        assert_eq!(told.contains("is compressed"), test.is_some(), "{told}");
        assert!(test.is_none_or(|test| told.contains(test)), "{told}");
    }
}
