//! A real S3 server (versitygw) on a free port, its objects in a folder of its own.

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientOptions, ObjectStoreExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const BUCKET: &str = "imdb-data";
pub(crate) const KEY_ID: &str = "test";
pub(crate) const SECRET: &str = "testsecret";

/// Enough for a busy machine; the server needs 0.15 s on a quiet one.
const START_SECONDS: u64 = 600;

pub(crate) struct S3Server {
    process: Child,
    pub(crate) url: String,
    writer: AmazonS3,
    folder: tempfile::TempDir,
}

fn program() -> PathBuf {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/bin/versitygw");
    let program = std::env::var_os("HOWDAH_TEST_VERSITYGW").map_or(PathBuf::from(installed), PathBuf::from);
    assert!(program.is_file(), "{} is not there: run `cargo xtask servers` first", program.display());
    program
}

impl S3Server {
    pub(crate) async fn start() -> S3Server {
        S3Server::start_with("http", &[]).await
    }

    /// `options` are the program's.
    pub(crate) async fn start_with(scheme: &str, options: &[&str]) -> S3Server {
        let folder = tempfile::tempdir().unwrap();
        let (data, log) = (folder.path().join("data"), folder.path().join("log"));
        std::fs::create_dir_all(data.join(BUCKET)).unwrap();
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut process = Command::new(program())
            .args(["--port", &address.to_string(), "--quiet"])
            .args(options)
            .arg("posix")
            .arg(data)
            .envs([("ROOT_ACCESS_KEY_ID", KEY_ID), ("ROOT_SECRET_ACCESS_KEY", SECRET)])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(START_SECONDS);
        while std::net::TcpStream::connect(address).is_err() {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "the S3 server ended: {}", std::fs::read_to_string(&log).unwrap());
            assert!(std::time::Instant::now() < until, "the S3 server does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let url = format!("{scheme}://{address}");
        // The tests upload and sign with the library itself; what is tested only reads.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let writer = AmazonS3Builder::new()
            .with_bucket_name(BUCKET)
            .with_endpoint(&url)
            .with_access_key_id(KEY_ID)
            .with_secret_access_key(SECRET)
            .with_client_options(
                ClientOptions::new().with_allow_http(true).with_allow_invalid_certificates(true),
            )
            .build()
            .unwrap();
        S3Server { process, url, writer, folder }
    }

    pub(crate) async fn put(&self, key: &str, content: &[u8]) {
        self.writer.put(&Path::parse(key).unwrap(), content.to_vec().into()).await.unwrap();
    }

    /// An object whose key the library cannot write, by the file that the server keeps it in.
    pub(crate) fn put_beside(&self, key: &str, content: &[u8]) {
        let file = self.folder.path().join("data").join(BUCKET).join(key);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub(crate) async fn signed(&self, method: reqwest::Method, key: &str) -> String {
        let path = Path::parse(key).unwrap();
        self.writer.signed_url(method, &path, Duration::from_secs(600)).await.unwrap().to_string()
    }

    /// The variables of a user with access.
    pub(crate) fn variables(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_ENDPOINT_URL", &self.url),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ]
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
