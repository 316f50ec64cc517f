//! A throw-away S3 server: versitygw over a folder.
//!
//! Leaves: an endpoint that checks request signatures, serves ranges and honours If-Match. Objects are put
//! by writing files, with an ETag of their content in the attribute the server keeps it in.

use crate::guard::Guard;
use crate::place::{free_port, scratch, servers_folder};
use crate::proxy::Proxy;
use rustix::fs::{XattrFlags, setxattr};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ACCESS_KEY: &str = "howdah-test";
const SECRET_KEY: &str = "howdah-test-secret";
const REGION: &str = "us-east-1";
/// How long the server may take to answer before the test fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running S3 server. Dropped: ended, and its files removed.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    child: Child,
    folder: TempDir,
    _guard: Guard,
}

impl S3 {
    /// Starts a server without buckets.
    pub fn start() -> S3 {
        let folder = scratch();
        for name in ["objects", "incoming"] {
            fs::create_dir(folder.path().join(name)).expect("a folder in the scratch folder");
        }
        let guard = Guard::of_server(folder.path(), &folder.path().join("pid"));
        for _ in 0..3 {
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
            let mut child = spawn(folder.path(), address);
            fs::write(folder.path().join("pid"), child.id().to_string()).expect("the pid file");
            if wait_until_healthy(&mut child, address) {
                return S3 { address, child, folder, _guard: guard };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!(
            "versitygw does not start: {}",
            fs::read_to_string(folder.path().join("log")).unwrap_or_default()
        );
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder of a bucket; made when missing. At least three letters, as S3 demands.
    pub fn bucket(&self, bucket: &str) -> PathBuf {
        let folder = self.folder.path().join("objects").join(bucket);
        fs::create_dir_all(&folder).expect("a bucket");
        folder
    }

    /// Puts an object, or replaces it at once as S3 does. The ETag follows from the bytes.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) {
        let object = self.bucket(bucket).join(key);
        fs::create_dir_all(object.parent().expect("a key inside a bucket")).expect("the folders of a key");
        // Several threads may put objects at the same time.
        static PUT: AtomicU64 = AtomicU64::new(0);
        let incoming = self.folder.path().join(format!("incoming/object{}", PUT.fetch_add(1, Relaxed)));
        fs::write(&incoming, bytes).expect("an object");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let etag = format!("\"{:032x}\"", hasher.finish());
        setxattr(&incoming, "user.etag", etag.as_bytes(), XattrFlags::empty())
            .expect("a temporary directory on a file system with user attributes");
        fs::rename(&incoming, &object).expect("the object's place");
    }

    /// Removes an object.
    pub fn remove(&self, bucket: &str, key: &str) {
        fs::remove_file(self.bucket(bucket).join(key)).expect("the object");
    }

    /// What a child process needs in its environment to read from here, and only from here.
    pub fn env(&self) -> Vec<(String, String)> {
        env(self.address)
    }

    /// The same through a [`Proxy`] that stands before this server.
    pub fn env_through(&self, proxy: &Proxy) -> Vec<(String, String)> {
        env(proxy.address())
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn env(address: SocketAddr) -> Vec<(String, String)> {
    let endpoint = format!("http://{address}");
    let pairs = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_REGION", REGION),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn spawn(folder: &Path, address: SocketAddr) -> Child {
    let log = fs::File::create(folder.join("log")).expect("the server's log");
    Command::new(servers_folder().join("bin/versitygw"))
        .args(["--quiet", "--health", "/health", "--region", REGION, "--port", &address.to_string(), "posix"])
        .arg(folder.join("objects"))
        .env_clear()
        .env("ROOT_ACCESS_KEY_ID", ACCESS_KEY)
        .env("ROOT_SECRET_ACCESS_KEY", SECRET_KEY)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file handle"))
        .stderr(log)
        .spawn()
        .expect("versitygw; run `cargo xtask servers`")
}

fn wait_until_healthy(child: &mut Child, address: SocketAddr) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE && child.try_wait().expect("wait for versitygw").is_none() {
        if is_healthy(address).unwrap_or(false) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn is_healthy(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_a_signature_are_refused() {
        let s3 = S3::start();
        s3.put("bucket", "folder/a.csv", b"1\n");
        let mut stream = TcpStream::connect(s3.address()).unwrap();
        stream
            .write_all(b"GET /bucket/folder/a.csv HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
}
