//! Somebody sits between howdah and the server: what leaves howdah then, and what it believes.

use crate::server::shared;
use crate::session::refused;
use crate::tls::{Authority, params, stage};
use howdah_model::ErrorKind;
use rcgen::date_time_ymd;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// SSLRequest.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const PASSWORD: &str = "never-in-the-clear";

/// What came in, over all connections.
type Heard = Arc<Mutex<Vec<u8>>>;

/// Answers each first message by these bytes and then listens.
async fn liar(answer: &'static [u8]) -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Heard::default();
    let ears = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let ears = Arc::clone(&ears);
            tokio::spawn(async move {
                let mut block = [0; 4096];
                let mut answers = Some(answer);
                while let Ok(count @ 1..) = stream.read(&mut block).await {
                    ears.lock().unwrap().extend_from_slice(&block[..count]);
                    if let Some(answer) = answers.take() {
                        let _ = stream.write_all(answer).await;
                    }
                }
            });
        }
    });
    (port, heard)
}

fn to(port: u16, rest: &str) -> String {
    format!("host=localhost hostaddr=127.0.0.1 port={port} user=u password={PASSWORD} dbname=d {rest}")
}

#[tokio::test]
async fn nothing_but_the_question_for_tls_goes_to_a_server_that_says_it_has_none() {
    let root = Authority::new("ours");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.crt");
    std::fs::write(&file, &root.pem).unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        // "No", an error of an old server, and "yes" with an answer in the clear right behind it.
        for answer in [&b"N"[..], b"E\0\0\0\x0bSnobody\0\0", b"SR\0\0\0\x08\0\0\0\0"] {
            let (port, heard) = liar(answer).await;
            let error = refused(&to(port, &format!("sslmode={mode} sslrootcert={}", file.display()))).await;
            let said = format!("{mode} {answer:?}: {error}");
            assert!(
                matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionLost),
                "{said}"
            );
            let heard = heard.lock().unwrap();
            assert!(heard.starts_with(&SSL_REQUEST), "{said}");
            // Behind the question a ClientHello at most: TLS records of type 22, or an alert, 21.
            assert!(matches!(heard.get(SSL_REQUEST.len()), None | Some(21 | 22)), "{said}");
            assert!(!heard.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes()), "{said}");
        }
    }
}

#[tokio::test]
async fn a_password_is_not_given_in_the_clear_where_the_channel_must_be_bound() {
    // AuthenticationCleartextPassword, and AuthenticationMD5Password with its salt.
    for answer in [&b"R\0\0\0\x08\0\0\0\x03"[..], b"R\0\0\0\x0c\0\0\0\x05salt"] {
        let (port, heard) = liar(answer).await;
        let error = refused(&to(port, "sslmode=disable channel_binding=require")).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        let heard = heard.lock().unwrap();
        assert!(!heard.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes()), "{error}");
        // The start-up message and no password message behind it.
        let length = u32::from_be_bytes(heard[..4].try_into().unwrap()) as usize;
        assert_eq!(heard.len(), length, "{error}");
    }
}

/// Ends TLS with a certificate of its own, and goes on to the real server by TLS: it reads everything.
async fn man_in_the_middle(server_port: u16, root: &str, (certificate, key): (&str, &str)) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut ours = builder.with_single_cert(chain, key).unwrap();
    ours.alpn_protocols = vec![b"postgresql".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(ours));
    let root = CertificateDer::from_pem_slice(root.as_bytes()).unwrap();
    let connector = believer(provider, root);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            tokio::spawn(async move {
                let mut question = [0; 8];
                client.read_exact(&mut question).await.ok()?;
                client.write_all(b"S").await.ok()?;
                let mut client = acceptor.accept(client).await.ok()?;
                let mut server = TcpStream::connect(("127.0.0.1", server_port)).await.ok()?;
                server.write_all(&SSL_REQUEST).await.ok()?;
                server.read_exact(&mut [0]).await.ok()?;
                let name = "localhost".try_into().unwrap();
                let mut server = connector.connect(name, server).await.ok()?;
                copy_bidirectional(&mut client, &mut server).await.ok()
            });
        }
    });
    port
}

/// A client that knows the real server's authority.
fn believer(provider: Arc<rustls::crypto::CryptoProvider>, root: CertificateDer<'static>) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[tokio::test]
async fn a_man_in_the_middle_with_a_certificate_of_his_own_is_found() {
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(&params("server", &["localhost"]));
    let rules = "hostssl all u 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust";
    let stage = stage(18, &certificate, &key, &ours.pem, rules).await;
    let sql = format!("CREATE ROLE u LOGIN PASSWORD '{PASSWORD}'; CREATE DATABASE d");
    for statement in sql.split("; ") {
        stage.admin.batch_execute(statement).await.unwrap();
    }
    // The worst: he has a key for a certificate of the same authority, for another name.
    let (his, his_key) = ours.sign(&params("other", &["other.example"]));
    let port = man_in_the_middle(stage.server.port, &ours.pem, (&his, &his_key)).await;
    let root = stage.file("root.crt", &ours.pem, 0o644);
    let root = root.display();
    let refuses = async |rest: &str| {
        let error = refused(&to(port, rest)).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{rest}: {error}");
    };
    refuses(&format!("sslmode=verify-full sslrootcert={root}")).await;
    // The names of certificates are not looked at here, but SCRAM is bound to the server's own.
    refuses(&format!("sslmode=verify-ca sslrootcert={root} channel_binding=require")).await;
    refuses("sslmode=require channel_binding=require").await;
    // Bound wherever the server offers it, which the one in the middle cannot take away unnoticed.
    refuses("sslmode=require").await;
    // He would have been believed without it.
    let believed = to(port, "sslmode=require channel_binding=disable");
    crate::server::connect(&believed).await;
}

#[tokio::test]
async fn certificates_that_are_over_or_not_yet_valid_are_refused() {
    let ours = Authority::new("ours");
    let (past, future) = ((2001, 2002), (4000, 4001));
    for (from, until) in [past, future] {
        let mut params = params("server", &["localhost"]);
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let (certificate, key) = ours.sign(&params);
        let stage = stage(15, &certificate, &key, &ours.pem, "host all all 127.0.0.1/32 trust").await;
        let root = stage.file("root.crt", &ours.pem, 0o644);
        for mode in ["verify-ca", "verify-full"] {
            let rest =
                format!("host=localhost hostaddr=127.0.0.1 sslmode={mode} sslrootcert={}", root.display());
            stage.refuses(&rest).await;
        }
    }
}

#[tokio::test]
async fn a_client_key_with_a_passphrase_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new("ours");
    let (certificate, _) = ours.sign(&params("postgres", &[]));
    let (crt, key) = (folder.path().join("client.crt"), folder.path().join("client.key"));
    std::fs::write(&crt, certificate).unwrap();
    let made = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-aes256"])
        .args(["-pass", "pass:secret", "-out"])
        .arg(&key)
        .output();
    assert!(made.expect("openssl").status.success());
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let rest = format!("sslmode=require sslcert={} sslkey={}", crt.display(), key.display());
    let error = refused(&to(shared(15).port, &rest)).await;
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("passphrase")), "{error}");
}
