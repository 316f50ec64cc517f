//! Local files, directories and globs.

use crate::{assert_holds, kind, names, noise, range, sources, stream};
use howdah_model::ErrorKind;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A folder with these files, one letter each.
fn folder(paths: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let root = folder.path().to_str().unwrap().to_owned();
    (folder, root)
}

async fn listed(location: &str) -> Vec<String> {
    let objects = sources(&[]).list(location).await.unwrap();
    names(&objects).into_iter().map(str::to_owned).collect()
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn a_file_reads_the_same_by_ranges_and_as_a_stream() {
    let (_folder, root) = folder(&[]);
    for bytes in [0, 1, (1 << 20) - 1, (3 << 20) + 17] {
        let content = noise(bytes);
        fs::write(format!("{root}/f"), &content).unwrap();
        let objects = sources(&[]).list(&format!("{root}/f")).await.unwrap();
        assert!(objects[0].local() && objects[0].ranged() && objects[0].rereadable());
        assert_holds(&objects[0], &content).await;
    }
}

#[tokio::test]
async fn a_directory_stands_for_its_files_that_are_not_hidden() {
    let (_folder, root) = folder(&["b.csv", "a.csv", ".hidden", "deeper/c.csv"]);
    std::os::unix::fs::symlink(format!("{root}/deeper/c.csv"), format!("{root}/link.csv")).unwrap();
    assert_eq!(listed(&root).await, ["a.csv", "b.csv", "link.csv"]);
    assert_eq!(listed(&format!("{root}/")).await, ["a.csv", "b.csv", "link.csv"]);
    assert_eq!(listed(&format!("{root}/**")).await, ["a.csv", "b.csv", "c.csv", "link.csv"]);
    assert_eq!(listed(&format!("file://{root}/deeper")).await, ["c.csv"]);
}

#[tokio::test]
async fn globs_find_files_only() {
    let (_folder, root) = folder(&["a1.csv", "a2.csv", "b1.csv", ".a3.csv", "a4.csv/deeper", "x/y/a5.csv"]);
    assert_eq!(listed(&format!("{root}/a*.csv")).await, ["a1.csv", "a2.csv"]);
    assert_eq!(listed(&format!("{root}//./?1.csv")).await, ["a1.csv", "b1.csv"]);
    assert_eq!(listed(&format!("{root}/[!b]*.csv")).await, ["a1.csv", "a2.csv"]);
    assert_eq!(listed(&format!("{root}/**/a[45].csv")).await, ["a5.csv"]);
}

#[tokio::test]
async fn the_placeholder_tells_what_it_stood_for() {
    let (_folder, root) = folder(&["in/title/1.csv", "in/title/2.csv", "in/name/1.csv", "in/3.csv"]);
    let objects = sources(&[]).list(&format!("{root}/in/{{table}}/*.csv")).await.unwrap();
    let tables: Vec<_> = objects.iter().map(|object| object.placeholder().unwrap()).collect();
    assert_eq!(tables, ["name", "title", "title"]);
    let flat = sources(&[]).list(&format!("{root}/in/{{table}}.csv")).await.unwrap();
    assert_eq!(flat[0].placeholder(), Some("3"));
}

#[tokio::test]
async fn a_file_of_that_very_name_wins_over_the_glob() {
    let (_folder, root) = folder(&["[ab].csv", "a.csv", "{table}.csv"]);
    assert_eq!(listed(&format!("{root}/[ab].csv")).await, ["[ab].csv"]);
    let literal = sources(&[]).list(&format!("{root}/{{table}}.csv")).await.unwrap();
    assert_eq!((names(&literal)[0], literal[0].placeholder()), ("{table}.csv", None));
}

#[tokio::test]
async fn nothing_found_is_an_error() {
    let (_folder, root) = folder(&["empty/.hidden"]);
    for location in ["none", "none*", "empty", "empty/x"] {
        let error = sources(&[]).list(&format!("{root}/{location}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceNotFound, "{location}");
        assert!(error.place().file.as_ref().unwrap().ends_with(location));
    }
}

#[tokio::test]
async fn a_location_is_absolute_and_opens_again() {
    let (_folder, root) = folder(&["*.csv"]);
    let objects = sources(&[]).list(&format!("{root}/./*.csv")).await.unwrap();
    assert_eq!(objects[0].location(), format!("{root}/*.csv"));
    let again = sources(&[]).open(objects[0].location(), objects[0].version()).await.unwrap();
    assert_eq!(again.version(), objects[0].version());
    assert_eq!(kind(sources(&[]).open(&root, None).await), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_file_that_changed_is_refused_however_it_is_read() {
    let (_folder, root) = folder(&["f"]);
    let path = format!("{root}/f");
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("shorter", |path| fs::write(path, noise(10)).unwrap()),
        ("longer", |path| fs::write(path, noise(200)).unwrap()),
        ("touched", |path| set_time(path, 2)),
        ("replaced", |path| {
            let other = path.with_extension("new");
            fs::write(&other, noise(100)).unwrap();
            set_time(&other, 3);
            fs::rename(other, path).unwrap();
        }),
    ];
    for (name, change) in changes {
        fs::write(&path, noise(100)).unwrap();
        set_time(Path::new(&path), 1);
        let sources = sources(&[]);
        let object = sources.list(&path).await.unwrap().remove(0);
        change(Path::new(&path));
        let error = range(&object, 0, 50).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceChanged, "{name}");
        assert!(error.hint().is_some());
        assert_eq!(kind(stream(&object, 0).await), ErrorKind::SourceChanged, "{name}");
        assert_eq!(kind(sources.open(&path, object.version()).await), ErrorKind::SourceChanged, "{name}");
        fs::remove_file(&path).unwrap();
        assert_eq!(kind(range(&object, 0, 50).await), ErrorKind::SourceNotFound, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_streamed_is_refused_at_the_next_block() {
    let (_folder, root) = folder(&["f"]);
    let path = format!("{root}/f");
    for bytes_after in [1 << 20, 3 << 20, 4 << 20] {
        fs::write(&path, noise(3 << 20)).unwrap();
        set_time(Path::new(&path), 1);
        let object = sources(&[]).list(&path).await.unwrap().remove(0);
        let mut blocks = object.stream(0).await.unwrap();
        blocks.next().await.unwrap().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(bytes_after).unwrap();
        set_time(Path::new(&path), 2);
        let mut into = Vec::new();
        assert_eq!(kind(crate::drain(blocks, &mut into).await), ErrorKind::SourceChanged, "{bytes_after}");
        assert!(into.is_empty());
    }
}

/// With the same size and modification time, which is all that a copy on another machine has.
#[tokio::test]
async fn a_file_that_took_the_place_of_the_one_that_was_listed_is_refused() {
    let (_folder, root) = folder(&["a", "b"]);
    let (path, other) = (format!("{root}/a"), format!("{root}/b"));
    for path in [&path, &other] {
        set_time(Path::new(path), 1000);
    }
    let sources = sources(&[]);
    let object = sources.list(&path).await.unwrap().remove(0);
    let version = object.version().unwrap().to_owned();
    let mut begun = object.stream(0).await.unwrap();
    sources.open(&path, Some(&version)).await.unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(kind(range(&object, 0, 1).await), ErrorKind::SourceChanged);
    assert_eq!(kind(object.stream(0).await.map(|_| ())), ErrorKind::SourceChanged);
    assert_eq!(kind(sources.open(&path, Some(&version)).await), ErrorKind::SourceChanged);
    // What is open is still the old one.
    assert_eq!(begun.next().await.unwrap().unwrap(), "x");

    // Another process, or the next run, goes by size and time.
    let next = crate::sources(&[]);
    next.open(&path, Some(&version)).await.unwrap();
    let object = next.list(&path).await.unwrap().remove(0);
    assert_eq!(object.version(), Some(&*version));
    fs::write(&path, "y").unwrap();
    set_time(Path::new(&path), 1000);
    assert_eq!(kind(range(&object, 0, 1).await), ErrorKind::SourceChanged, "written, and its time set back");
}

#[tokio::test]
async fn a_name_that_is_not_utf8_counts_only_where_it_fits() {
    use std::os::unix::ffi::OsStrExt;
    let (folder, root) = folder(&["a.csv", "x/b.csv", "x/.hidden/c.csv"]);
    let broken = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    fs::write(broken(b"readme\xe9.txt"), "x").unwrap();
    fs::write(broken(b"x/\xff"), "x").unwrap();
    assert_eq!(listed(&format!("{root}/*.csv")).await, ["a.csv"]);
    assert_eq!(listed(&format!("{root}/**/*.csv")).await, ["a.csv", "b.csv"]);
    assert_eq!(listed(&format!("{root}/**/**/*.csv")).await, ["a.csv", "b.csv"]);
    for pattern in ["*.txt", "**/readme?.*", "{table}.txt"] {
        let refused = sources(&[]).list(&format!("{root}/{pattern}")).await.unwrap_err();
        assert!(refused.to_string().contains("the name is not UTF-8"), "{pattern}: {refused}");
        assert!(refused.hint().is_some(), "{refused}");
    }
}

#[tokio::test]
async fn links_in_circles_end_no_glob() {
    let (folder, root) = folder(&["a.csv", "x/b.csv", "b/b/c.csv"]);
    for (link, target) in [("one", "."), ("two", "."), ("x/up", ".."), ("y", "x")] {
        std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
    }
    assert_eq!(listed(&format!("{root}/**/a.csv")).await, ["a.csv"]);
    // By the link, too.
    assert_eq!(listed(&format!("{root}/**/b.csv")).await, ["b.csv", "b.csv"]);
    assert_eq!(listed(&format!("{root}/y/up/*.csv")).await, ["a.csv"]);
    assert_eq!(listed(&format!("{root}/**/b/**/*.csv")).await, ["c.csv"]);
}

/// Of 25 folders, one in the other, 12 can be chosen in five million ways.
#[tokio::test]
async fn several_globs_across_folders_look_at_each_folder_once() {
    let deep = "a/".repeat(24);
    let (_folder, root) = folder(&[&format!("{deep}x.csv"), &format!("{deep}a/y.csv")]);
    let began = std::time::Instant::now();
    let mut found = listed(&format!("{root}/{}*.csv", "**/a/".repeat(12))).await;
    found.sort();
    assert_eq!(found, ["x.csv", "y.csv"]);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// The rest of what such a file holds would be missing without a word.
#[tokio::test]
async fn a_file_with_more_bytes_than_its_file_system_tells_of_is_refused() {
    let object = sources(&[]).open("/proc/self/status", None).await.unwrap();
    assert_eq!(object.stored_bytes(), Some(0));
    let error = stream(&object, 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceIo);
    assert!(error.to_string().contains("the file system tells of 0 bytes, and the file has more"), "{error}");
    assert_eq!(range(&object, 0, 10).await.unwrap_err().kind(), ErrorKind::SourceIo);
    let (folder, _root) = folder(&["empty.csv"]);
    let path = folder.path().join("empty.csv");
    fs::write(&path, "").unwrap();
    let object = sources(&[]).open(path.to_str().unwrap(), None).await.unwrap();
    assert_eq!(stream(&object, 0).await.unwrap(), b"");
    assert_eq!(range(&object, 0, 10).await.unwrap(), b"");
}

/// A glob that went by them would load less than is there, and say nothing.
#[tokio::test]
async fn what_a_glob_may_not_look_at_is_an_error() {
    let (folder, root) = folder(&["a/data.csv", "b/data.csv", "c/data.csv"]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("a/lost.csv")).unwrap();
    std::os::unix::fs::symlink("itself", folder.path().join("itself")).unwrap();
    for pattern in ["*/lost.csv", "*/*.csv"] {
        let refused = sources(&[]).list(&format!("{root}/{pattern}")).await.unwrap_err();
        assert!(refused.to_string().contains("lost.csv"), "{pattern}: {refused}");
    }
    // Links that lead nowhere are no folders.
    assert_eq!(listed(&format!("{root}/*/data.csv")).await.len(), 3);
    assert_eq!(listed(&format!("{root}/**/data.csv")).await.len(), 3);
    assert!(sources(&[]).list(&format!("{root}/*/lost.csv/data.csv")).await.is_err());
    // A name longer than any may be stands for a folder that nobody may enter: root may enter all.
    let long = "x".repeat(300);
    let refused = sources(&[]).list(&format!("{root}/*/{long}")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SourceIo, "{refused}");
}
