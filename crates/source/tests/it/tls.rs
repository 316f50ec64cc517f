//! https, with a certificate of an authority that this machine does not know.

use crate::faulty_server::{Behaviour, Server};
use crate::s3_server::{BUCKET, S3Server};
use crate::{noise, sources, stream};
use howdah_model::ErrorKind;
use std::process::{Command, Stdio};

/// Tells the child the server's address.
const CHILD: &str = "HOWDAH_TEST_TLS_URL";

/// With the folder of `certificate.pem`.
async fn untrusted_server() -> (S3Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let options = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let server = S3Server::start_with("https", &options).await;
    (server, folder)
}

/// Trusted certificates are read from `SSL_CERT_FILE` by the whole process, so a child plays the user that set it.
#[tokio::test(flavor = "multi_thread")]
async fn https_needs_a_trusted_certificate_which_ssl_cert_file_can_name() {
    if let Ok(url) = std::env::var(CHILD) {
        let object = sources(&[]).list(&url).await.unwrap().remove(0);
        assert_eq!(stream(&object, 0).await.unwrap(), noise(1000));
        return;
    }
    let (server, folder) = untrusted_server().await;
    let certificate = folder.path().join("certificate.pem");
    server.put("f", &noise(1000)).await;

    let mut untrusted = server.variables();
    untrusted.push(("AWS_SKIP_SIGNATURE", "true"));
    let error = sources(&untrusted).list(&format!("s3://{BUCKET}/f")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceIo, "{error}");
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"), "{error}");

    let url = server.signed(reqwest::Method::GET, "f").await;
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::https_needs_a_trusted_certificate_which_ssl_cert_file_can_name"])
        .env(CHILD, url)
        .env("SSL_CERT_FILE", &certificate)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(child.success());
}

/// As in an image without the package.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_certificates_reads_plain_http() {
    const CHILD: &str = "HOWDAH_TEST_NO_AUTHORITIES";
    if let Ok(urls) = std::env::var(CHILD) {
        let (http, https) = urls.split_once(' ').unwrap();
        let object = sources(&[]).list(http).await.unwrap().remove(0);
        assert_eq!(stream(&object, 0).await.unwrap(), noise(1000));
        let error = sources(&[]).list(https).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceIo, "{error}");
        assert!(error.message().contains("no certificates of authorities"), "{error}");
        assert!(error.hint().unwrap().contains("ca-certificates"), "{error}");
        return;
    }
    let (https, _folder) = untrusted_server().await;
    let http = Server::start(Behaviour::of(noise(1000))).await;
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::a_machine_without_certificates_reads_plain_http"])
        .env(CHILD, format!("{}/f {}/f", http.url, https.url))
        .env("SSL_CERT_FILE", "/no/such/file.pem")
        .env("SSL_CERT_DIR", "/no/such/folder")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
