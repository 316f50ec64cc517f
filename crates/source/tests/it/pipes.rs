//! Named pipes and standard input.

use crate::{kind, noise, range, sources, stream};
use howdah_model::ErrorKind;
use std::process::{Command, Stdio};

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

#[tokio::test]
async fn waiting_for_a_pipe_can_be_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let object = sources(&[]).list(path.to_str().unwrap()).await.unwrap().remove(0);
    let mut blocks = object.stream(0).await.unwrap();
    tokio::select! {
        biased;
        _ = blocks.next() => panic!("nobody wrote"),
        () = tokio::task::yield_now() => {}
    }
    // Lets the thread that waits for a writer go.
    std::fs::write(&path, "").unwrap();
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
    std::io::Write::write_all(&mut input, &noise(200_000)).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}
