//! https, with a certificate of an authority that this machine does not know.

use crate::faulty_server::{Behaviour, Server};
use crate::s3_server::{BUCKET, KEY_ID, S3Server, SECRET};
use crate::{noise, sources, stream};
use howdah_model::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Tells the child the server's address.
const CHILD: &str = "HOWDAH_TEST_TLS_URL";

/// With the folder of `certificate.pem`.
async fn untrusted_server() -> (S3Server, tempfile::TempDir) {
    server_of(&["127.0.0.1"], &[]).await
}

/// The same for these hosts, with further options of the program.
async fn server_of(hosts: &[&str], options: &[&str]) -> (S3Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let params = rcgen::CertificateParams::new(hosts).unwrap();
    write_self_signed(&params, &certificate, &key);
    let of_tls = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let server = S3Server::start_with("https", &[&of_tls, options].concat()).await;
    (server, folder)
}

fn write_self_signed(params: &rcgen::CertificateParams, certificate: &Path, key: &Path) {
    let pair = rcgen::KeyPair::generate().unwrap();
    std::fs::write(certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(key, pair.serialize_pem()).unwrap();
}

/// As `openssl req -x509` makes them.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_marked_as_an_authority_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    write_self_signed(&params, &certificate, &key);
    let of_tls = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let server = S3Server::start_with("https", &of_tls).await;
    let mut variables = server.variables();
    variables.push(("AWS_SKIP_SIGNATURE", "true"));
    let error = sources(&variables).list(&format!("s3://{BUCKET}/f")).await.unwrap_err();
    assert!(error.message().contains("marked as an authority (CA:TRUE)"), "{error}");
    assert!(error.hint().unwrap().contains("CA:FALSE"), "{error}");
}

/// Trusted certificates are read from `SSL_CERT_FILE` by the whole process, so a child plays the user that
/// set it.
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

/// A proxy that leads to this server whatever host is asked for; the hosts, as they come.
async fn proxy_to(server: &S3Server) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (to, hosts) = (server.url.strip_prefix("https://").unwrap().to_owned(), Arc::default());
    let asked: Arc<Mutex<Vec<String>>> = Arc::clone(&hosts);
    // Ends with the test's runtime.
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            asked.lock().unwrap().push(head.split(' ').nth(1).unwrap().to_owned());
            let mut server = TcpStream::connect(&to).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (url, hosts)
}

/// `AWS_REGION` names one region, and the buckets of a load may be in several.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_in_another_region_is_read_there() {
    const CHILD: &str = "HOWDAH_TEST_REGION";
    let regions = ["us-east-1", "eu-west-1"];
    if std::env::var_os(CHILD).is_some() {
        for location in [format!("s3://{BUCKET}/t/"), format!("s3://{BUCKET}/t/a.csv")] {
            let keys = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];
            let sources = sources(&[&keys[..], &[("AWS_REGION", regions[0])]].concat());
            let listed = sources.list(&location).await.unwrap().remove(0);
            assert_eq!(stream(&listed, 0).await.unwrap(), noise(1000));
            let opened = sources.open(listed.location(), listed.version()).await.unwrap();
            assert_eq!(stream(&opened, 0).await.unwrap(), noise(1000));
        }
        return;
    }
    let hosts = regions.map(|region| format!("s3.{region}.amazonaws.com"));
    let (server, folder) = server_of(&[&hosts[0], &hosts[1]], &["--region", regions[1]]).await;
    server.put_beside("t/a.csv", &noise(1000));
    let (proxy, asked) = proxy_to(&server).await;
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::a_bucket_in_another_region_is_read_there"])
        .env(CHILD, "")
        .env("https_proxy", proxy)
        .env("SSL_CERT_FILE", folder.path().join("certificate.pem"))
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let mut asked = asked.lock().unwrap().clone();
    asked.dedup();
    let once = hosts.map(|host| format!("{host}:443"));
    assert_eq!(asked, [once.clone(), once].concat());
}
