//! The promises of `howdah-source`, kept against real files, pipes, an S3 server and an HTTP server that
//! fails on purpose.

#![allow(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in tests, which clippy does not see in their helpers"
)]

mod clouds;
mod faulty_server;
mod files;
mod http;
mod pipes;
mod s3;
mod s3_faults;
mod s3_server;
mod tls;

use howdah_model::{ErrorKind, Result};
use howdah_source::{BlockStream, Object, Sources};

/// Sources that know nothing of this machine's own settings, and ask no metadata service.
fn sources(variables: &[(&str, &str)]) -> Sources {
    let variables = variables.iter().chain(&[("AWS_EC2_METADATA_DISABLED", "true")]);
    Sources::with_environment(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

/// Bytes in which every place differs from its neighbours.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Reads on until the end or an error; what was read before an error is kept in `into`.
async fn drain(mut stream: BlockStream, into: &mut Vec<u8>) -> Result<()> {
    while let Some(block) = stream.next().await? {
        assert!(!block.is_empty() && block.len() <= 1 << 20, "a block of {} bytes", block.len());
        into.extend_from_slice(&block);
    }
    Ok(())
}

async fn stream(object: &Object, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    drain(object.stream(offset).await?, &mut bytes).await?;
    Ok(bytes)
}

async fn range(object: &Object, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    let count = object.read_at(offset, &mut out).await?;
    out.truncate(count);
    Ok(out)
}

/// Every way of reading gives these bytes.
async fn assert_holds(object: &Object, content: &[u8]) {
    let size = content.len();
    assert_eq!(object.stored_bytes(), Some(size as u64));
    for offset in [0, 1, size / 2, size.saturating_sub(1), size] {
        let offset = offset.min(size);
        assert!(stream(object, offset as u64).await.unwrap() == content[offset..], "stream from {offset}");
    }
    if object.ranged() {
        for (offset, length) in
            [(0, size), (0, size + 9), (size / 3, 100), (size.saturating_sub(5), 50), (size, 1)]
        {
            let expected = &content[offset..(offset + length).min(size)];
            assert!(
                range(object, offset as u64, length).await.unwrap() == expected,
                "{length} bytes at {offset}"
            );
        }
        assert_eq!(range(object, size as u64 + 1000, 1).await.unwrap(), b"");
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Names after the last `/`.
fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(|object| object.location().rsplit('/').next().unwrap()).collect()
}
