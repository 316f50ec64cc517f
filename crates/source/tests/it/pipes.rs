//! Named pipes and standard input.

use crate::{kind, noise, range, sources, stream};
use howdah_model::ErrorKind;
use howdah_source::Object;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_fifo_is_streamed_once_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let content = noise(300_000);
    let writer = std::thread::spawn({
        let (path, content) = (path.clone(), content.clone());
        move || std::fs::write(path, content).unwrap()
    });
    let object = sources(&[]).list(path.to_str().unwrap()).await.unwrap().remove(0);
    assert!(!object.rereadable() && !object.ranged() && !object.local());
    assert_eq!((object.stored_bytes(), object.version()), (None, None));
    assert_eq!(kind(object.stream(1).await), ErrorKind::SourceIo);
    assert!(stream(&object, 0).await.unwrap() == content);
    assert_eq!(kind(object.stream(0).await), ErrorKind::SourceIo);
    assert_eq!(kind(range(&object, 0, 1).await), ErrorKind::Internal);
    writer.join().unwrap();
}

/// Waits for a pipe that nobody has written to, and gives up.
async fn wait_in_vain(object: &Object) {
    let mut blocks = object.stream(0).await.unwrap();
    tokio::select! {
        biased;
        _ = blocks.next() => panic!("nobody wrote"),
        () = tokio::time::sleep(Duration::from_millis(50)) => {}
    }
}

#[tokio::test]
async fn waiting_for_a_pipe_can_be_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let object = sources(&[]).list(path.to_str().unwrap()).await.unwrap().remove(0);
    wait_in_vain(&object).await;
    // A process that another test has forked holds all that was open then, until it is another program.
    let deadline = Instant::now() + Duration::from_secs(100);
    while is_read(&path) {
        assert!(Instant::now() < deadline, "somebody still reads");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Somebody has the pipe open for reading.
fn is_read(path: &Path) -> bool {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    match std::fs::File::options().write(true).custom_flags(flags).open(path) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(Errno::NXIO.raw_os_error()));
            false
        }
    }
}

#[tokio::test]
async fn bytes_that_come_when_nobody_waits_are_for_the_next_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    // Open at both ends, as by a service that goes on from load to load.
    let mut pipe = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    wait_in_vain(&sources(&[]).list(path.to_str().unwrap()).await.unwrap()[0]).await;
    pipe.write_all(b"first").unwrap();
    let object = sources(&[]).list(path.to_str().unwrap()).await.unwrap().remove(0);
    assert_eq!(object.stream(0).await.unwrap().next().await.unwrap().unwrap(), "first");
}

/// Says in the child that it is one, and how many bytes to expect.
const CHILD: &str = "HOWDAH_TEST_STDIN_BYTES";

#[tokio::test]
async fn standard_input_is_read_once() {
    if let Ok(bytes) = std::env::var(CHILD) {
        let sources = sources(&[]);
        let object = sources.list("-").await.unwrap().remove(0);
        assert!(stream(&object, 0).await.unwrap() == noise(bytes.parse().unwrap()));
        let again = sources.open("-", None).await.unwrap();
        assert_eq!((again.location(), kind(again.stream(0).await)), ("-", ErrorKind::SourceIo));
        let another_load = crate::sources(&[]).list("-").await.unwrap().remove(0);
        assert_eq!(kind(another_load.stream(0).await), ErrorKind::SourceIo);
        for path in ["/dev/stdin", "/dev/fd/0"] {
            let by_path = crate::sources(&[]).list(path).await.unwrap().remove(0);
            assert_eq!((by_path.location(), kind(by_path.stream(0).await)), (path, ErrorKind::SourceIo));
        }
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pipes::standard_input_is_read_once"])
        .env(CHILD, "200000")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&noise(200_000)).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Says in the child that it is one.
const WAITING_CHILD: &str = "HOWDAH_TEST_STDIN_IN_VAIN";

#[tokio::test]
async fn standard_input_that_nobody_waits_for_any_more_is_left() {
    if std::env::var_os(WAITING_CHILD).is_some() {
        wait_in_vain(&sources(&[]).list("-").await.unwrap()[0]).await;
        // By its end it says that it has given up.
        std::fs::remove_file(std::env::var_os(WAITING_CHILD).unwrap()).unwrap();
        let mut left = String::new();
        std::io::stdin().read_to_string(&mut left).unwrap();
        assert_eq!(left, "first");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let waits = folder.path().join("waits");
    std::fs::write(&waits, "").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pipes::standard_input_that_nobody_waits_for_any_more_is_left"])
        .env(WAITING_CHILD, &waits)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while waits.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    child.stdin.take().unwrap().write_all(b"first").unwrap();
    assert!(child.wait().unwrap().success());
}
