//! `sslmode` and certificates, against servers with TLS switched on.

use crate::server::{Server, VERSIONS, connect, count, observer, shared};
use crate::session::refused;
use howdah_model::ErrorKind;
use howdah_target::session::Conninfo;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CustomExtension, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

pub(crate) fn params(common_name: &str, alternatives: &[&str]) -> CertificateParams {
    let names: Vec<String> = alternatives.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Certificate and key in PEM form.
    pub(crate) fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// What an authority says of the certificates it has taken back, in PEM form.
fn revocation_list(authority: &Authority, serials: &[u64], next_update: (i32, u8, u8)) -> String {
    revocation_list_of(2024, authority, serials, next_update)
}

fn revocation_list_of(
    year: i32,
    authority: &Authority,
    serials: &[u64],
    next_update: (i32, u8, u8),
) -> String {
    let revoked = |serial: &u64| RevokedCertParams {
        serial_number: SerialNumber::from(*serial),
        revocation_time: date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(year, 1, 1),
        next_update: date_time_ymd(next_update.0, next_update.1, next_update.2),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: serials.iter().map(revoked).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(&authority.issuer).unwrap().pem().unwrap()
}

/// A server with TLS, its authority, and a folder for the client's files.
pub(crate) struct Stage {
    pub(crate) server: Server,
    files: tempfile::TempDir,
    pub(crate) admin: tokio_postgres::Client,
}

/// `pg_hba` is what TCP connections meet; sockets are trusted.
pub(crate) async fn stage(version: u32, certificate: &str, key: &str, root: &str, pg_hba: &str) -> Stage {
    let server = Server::start(version, &["fsync=off", "password_encryption='scram-sha-256'"]);
    server.put("data/server.crt", certificate);
    server.put("data/server.key", key);
    server.put("data/root.crt", root);
    server.put("data/pg_hba.conf", &format!("local all all trust\n{pg_hba}\n"));
    server.crash();
    server.append("data/postgresql.conf", "ssl=on\nssl_ca_file='root.crt'\n");
    server.run();
    let admin = observer(&format!("{} dbname=postgres", server.socket())).await;
    Stage { server, files: tempfile::tempdir().unwrap(), admin }
}

impl Stage {
    pub(crate) fn to(&self, rest: &str) -> String {
        format!("port={} user=postgres dbname=postgres {rest}", self.server.port)
    }

    pub(crate) fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Connects and says whether TLS is in use.
    pub(crate) async fn connects_with_tls(&self, rest: &str) -> bool {
        let session = connect(&self.to(rest)).await;
        let sql = format!("SELECT ssl::int::bigint FROM pg_stat_ssl WHERE pid = {}", session.backend().pid);
        count(&self.admin, &sql).await == 1
    }

    pub(crate) async fn refuses(&self, rest: &str) {
        let error = refused(&self.to(rest)).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{rest}: {error}");
    }
}

fn show(path: &Path) -> std::path::Display<'_> {
    path.display()
}

#[tokio::test]
async fn a_certificate_is_checked_as_sslmode_says() {
    for version in VERSIONS {
        let (ours, other) = (Authority::new("ours"), Authority::new("other"));
        let (certificate, key) = ours.sign(&params("server", &["localhost"]));
        let stage = stage(version, &certificate, &key, &ours.pem, "host all all 127.0.0.1/32 trust").await;
        let good = stage.file("root.crt", &ours.pem, 0o644);
        let wrong = stage.file("wrong.crt", &other.pem, 0o644);
        let (good, wrong) = (show(&good), show(&wrong));
        let right_host = "host=localhost hostaddr=127.0.0.1";

        assert!(
            stage.connects_with_tls(&format!("{right_host} sslmode=verify-full sslrootcert={good}")).await
        );
        stage.refuses(&format!("host=127.0.0.1 sslmode=verify-full sslrootcert={good}")).await;
        assert!(
            stage.connects_with_tls(&format!("host=127.0.0.1 sslmode=verify-ca sslrootcert={good}")).await
        );
        stage.refuses(&format!("{right_host} sslmode=verify-full sslrootcert={wrong}")).await;
        stage.refuses(&format!("{right_host} sslmode=verify-ca sslrootcert={wrong}")).await;
        // An existing root file makes `require` check too, as it always has in libpq.
        stage.refuses(&format!("{right_host} sslmode=require sslrootcert={wrong}")).await;
        assert!(stage.connects_with_tls("host=127.0.0.1 sslmode=require").await);
        assert!(stage.connects_with_tls("hostaddr=127.0.0.1 sslmode=require sslsni=0").await);
        // The weaker ones as in libpq: prefer takes what it gets, allow asks only if it must.
        assert!(stage.connects_with_tls("host=127.0.0.1 sslmode=prefer").await);
        assert!(!stage.connects_with_tls(&format!("{right_host} sslmode=prefer sslrootcert={wrong}")).await);
        assert!(!stage.connects_with_tls("host=127.0.0.1 sslmode=allow").await);
        assert!(!stage.connects_with_tls("host=127.0.0.1 sslmode=disable").await);
        // A socket needs no TLS and none of its files.
        let socket = stage.server.socket();
        connect(&format!("{socket} dbname=postgres sslmode=verify-full sslrootcert=/nowhere")).await;
        for versions in ["ssl_min_protocol_version=TLSv1.3", "ssl_max_protocol_version=TLSv1.2"] {
            assert!(stage.connects_with_tls(&format!("host=127.0.0.1 sslmode=require {versions}")).await);
        }
        let direct = format!("{right_host} sslmode=verify-full sslrootcert={good} sslnegotiation=direct");
        if version >= 17 {
            assert!(stage.connects_with_tls(&direct).await);
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_taken_by_prefer_and_refused_by_require() {
    let to = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", shared(15).port);
    connect(&format!("{to} sslmode=prefer")).await;
    connect(&format!("{to} sslmode=allow")).await;
    let error = refused(&format!("{to} sslmode=require")).await;
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    assert!(error.message().contains("TLS"), "{error}");
}

#[tokio::test]
async fn settings_that_cannot_be_honoured_are_refused_before_connecting() {
    let to = "host=127.0.0.1 port=1 user=x";
    let roots = refused(&format!("{to} sslmode=verify-full sslrootcert=/nowhere/root.crt")).await;
    assert_eq!(roots.kind(), ErrorKind::Usage, "{roots}");
    let none = "sslmode=require ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2";
    assert_eq!(refused(&format!("{to} {none}")).await.kind(), ErrorKind::Usage);
    for weak in [
        "sslmode=require sslrootcert=system",
        "sslmode=prefer sslnegotiation=direct",
        "gssencmode=require",
        "require_auth=scram-sha-256",
        "sslmode=verify",
    ] {
        let error = Conninfo::resolve(Some(&format!("{to} {weak}"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{weak}: {error}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_if_its_key_is_private() {
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(&params("server", &["localhost"]));
    let (client_certificate, client_key) = ours.sign(&params("postgres", &[]));
    let stage = stage(15, &certificate, &key, &ours.pem, "hostssl all all 127.0.0.1/32 cert").await;
    let crt = stage.file("client.crt", &client_certificate, 0o644);
    let private = stage.file("private.key", &client_key, 0o600);
    let open = stage.file("open.key", &client_key, 0o644);
    let crt = show(&crt);
    let host = "host=127.0.0.1 sslmode=require";

    assert!(stage.connects_with_tls(&format!("{host} sslcert={crt} sslkey={}", show(&private))).await);
    stage.refuses(&format!("{host} sslcert=/nowhere/client.crt")).await;
    stage.refuses(&format!("{host} sslcert={crt} sslkey={} sslcertmode=disable", show(&private))).await;
    for key in [&open, Path::new("/nowhere/client.key")] {
        let error = refused(&stage.to(&format!("{host} sslcert={crt} sslkey={}", show(key)))).await;
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    // `prefer` finds that without TLS there is no rule for it, and says what TLS had said.
    stage.refuses("host=127.0.0.1 sslmode=prefer").await;
}

/// As libpq, which reads them when the server has said yes to TLS, and goes on without it.
#[tokio::test]
async fn files_that_are_of_no_use_keep_nobody_from_a_server_without_tls() {
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(&params("server", &["localhost"]));
    let (client_certificate, client_key) = ours.sign(&params("postgres", &[]));
    let rules = "hostnossl all postgres 127.0.0.1/32 trust\nhostssl all postgres 127.0.0.1/32 reject\n\
                 hostssl all other 127.0.0.1/32 trust";
    let stage = stage(15, &certificate, &key, &ours.pem, rules).await;
    let crt = stage.file("client.crt", &client_certificate, 0o644);
    let open = stage.file("open.key", &client_key, 0o644);
    let no_pem = stage.file("no.pem", "none", 0o644);
    let files = [
        format!("sslcert={} sslkey={}", show(&crt), show(&open)),
        format!("sslcert={} sslkey=/nowhere/client.key", show(&crt)),
        format!("sslrootcert={}", show(&no_pem)),
    ];
    let plain = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", shared(15).port);
    for files in files {
        for mode in ["prefer", "allow"] {
            assert!(!stage.connects_with_tls(&format!("host=127.0.0.1 sslmode={mode} {files}")).await);
            connect(&format!("{plain} sslmode={mode} {files}")).await;
            // Where TLS is wanted, what keeps it away is told.
            let to = stage.to(&format!("host=127.0.0.1 sslmode={mode} {files}"));
            let error = refused(&to.replace("user=postgres", "user=other")).await;
            assert_eq!(error.sqlstate(), Some("28000"), "{files}: {error}");
            let hint = error.hint().unwrap_or_default();
            assert!(hint.contains("TLS, which the server may want, was not tried: "), "{files}: {hint}");
        }
        let error = refused(&format!("{plain} sslmode=require {files}")).await;
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    let none = "sslmode=prefer ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2";
    assert_eq!(refused(&format!("{plain} {none}")).await.kind(), ErrorKind::Usage);
}

/// As `openssl x509 -req` makes them, which the PostgreSQL documentation shows.
#[tokio::test]
async fn a_client_certificate_of_version_1_is_shown_to_servers_that_ask_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let make = |command: &str| {
        let openssl = std::process::Command::new("openssl")
            .args(command.split(' '))
            .current_dir(folder.path())
            .output();
        let made = openssl.expect("openssl");
        assert!(made.status.success(), "{command}: {}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).unwrap()
    };
    make("req -x509 -new -nodes -newkey rsa:2048 -subj /CN=ours -keyout ca.key -out ca.crt");
    make("req -new -nodes -newkey rsa:2048 -subj /CN=postgres -keyout client.key -out client.csr");
    make("x509 -req -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out client.crt");
    assert!(make("x509 -in client.crt -noout -text").contains("Version: 1 "));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (certificate, key) = Authority::new("server's").sign(&params("server", &["localhost"]));
    let stage = stage(15, &certificate, &key, &read("ca.crt"), "hostssl all all 127.0.0.1/32 cert").await;
    let crt = stage.file("client.crt", &read("client.crt"), 0o644);
    let key = stage.file("client.key", &read("client.key"), 0o600);
    let other = stage.file("other.key", &read("ca.key"), 0o600);
    let with =
        |key: &Path| format!("host=127.0.0.1 sslmode=require sslcert={} sslkey={}", show(&crt), show(key));
    assert!(stage.connects_with_tls(&with(&key)).await);
    let error = refused(&stage.to(&with(&other))).await;
    assert!(error.message().contains("the private key is not that of the certificate"), "{error}");
}

#[tokio::test]
async fn scram_is_bound_to_the_channel_where_there_is_one() {
    let ours = Authority::new("ours");
    let (certificate, key) = ours.sign(&params("server", &["localhost"]));
    let rules = "host all u 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust";
    let stage = stage(18, &certificate, &key, &ours.pem, rules).await;
    stage.admin.batch_execute("CREATE ROLE u LOGIN PASSWORD 'secret'").await.unwrap();
    let as_u = "host=127.0.0.1 user=u password=secret channel_binding=require";
    assert!(stage.connects_with_tls(&format!("{as_u} sslmode=require")).await);
    stage.refuses(&format!("{as_u} sslmode=disable")).await;
    stage.refuses("host=127.0.0.1 sslmode=require channel_binding=require").await;
}

#[tokio::test]
async fn a_self_signed_certificate_that_is_its_own_root_is_taken_with_its_common_name() {
    let mut own = params("localhost", &[]);
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = own.self_signed(&key).unwrap().pem();
    let rule = "hostssl all all 127.0.0.1/32 trust";
    let stage = stage(15, &certificate, &key.serialize_pem(), &certificate, rule).await;
    let root = stage.file("root.crt", &certificate, 0o644);
    let root = show(&root);
    let verify = format!("sslmode=verify-full sslrootcert={root}");
    assert!(stage.connects_with_tls(&format!("host=localhost hostaddr=127.0.0.1 {verify}")).await);
    stage.refuses(&format!("host=127.0.0.1 {verify}")).await;
    let other = stage.file("other.crt", &Authority::new("other").pem, 0o644);
    let other = stage.to(&format!("host=127.0.0.1 sslmode=verify-ca sslrootcert={}", show(&other)));
    let refused = refused(&other).await;
    assert!(refused.message().contains("of an authority (CA:TRUE), and is not itself among"), "{refused}");
    // Only TLS is let in: disable is refused, allow finds its way.
    stage.refuses("host=127.0.0.1 sslmode=disable").await;
    assert!(stage.connects_with_tls("host=127.0.0.1 sslmode=allow").await);
}

#[tokio::test]
async fn a_certificate_that_was_taken_back_is_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let mut own = params("server", &["localhost"]);
    own.serial_number = Some(SerialNumber::from(7));
    let (certificate, key) = ours.sign(&own);
    let rule = "host all all 127.0.0.1/32 trust";
    let stage = stage(18, &certificate, &key, &ours.pem, rule).await;
    let root = stage.file("root.crt", &ours.pem, 0o644);
    let list = |name: &str, text: &str| stage.file(name, text, 0o644).display().to_string();
    let good = list("good.crl", &revocation_list(&ours, &[8], (2100, 1, 1)));
    let older = revocation_list_of(2023, &ours, &[8], (2100, 1, 1));
    let bad = [
        list("renewed.crl", &(older + &revocation_list(&ours, &[8, 7], (2100, 1, 1)))),
        list("revoked.crl", &revocation_list(&ours, &[8, 7], (2100, 1, 1))),
        list("old.crl", &revocation_list(&ours, &[8], (2024, 2, 1))),
        list("other.crl", &revocation_list(&other, &[8], (2100, 1, 1))),
    ];
    let root = show(&root);
    for (right, mode) in [("localhost", "verify-full"), ("127.0.0.1", "verify-ca"), ("127.0.0.1", "require")]
    {
        let to = format!("host={right} hostaddr=127.0.0.1 sslmode={mode} sslrootcert={root}");
        assert!(stage.connects_with_tls(&format!("{to} sslcrl={good}")).await, "{mode}");
        for bad in &bad {
            stage.refuses(&format!("{to} sslcrl={bad}")).await;
        }
    }
    let to = format!("host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={root}");
    let folder = tempfile::tempdir().unwrap();
    let folder_only = format!("{to} sslcrldir={}", folder.path().display());
    fs::write(folder.path().join("README"), "").unwrap();
    let empty = refused(&stage.to(&folder_only)).await;
    assert_eq!(empty.kind(), ErrorKind::Usage, "{empty}");
    fs::copy(&good, folder.path().join("1a2b3c4d.r0")).unwrap();
    assert!(stage.connects_with_tls(&folder_only).await);
    stage.refuses(&format!("{folder_only} sslcrl={}", bad[0])).await;
    fs::copy(&bad[0], folder.path().join("1a2b3c4d.r0")).unwrap();
    stage.refuses(&folder_only).await;
    let wrong_name = format!("host=127.0.0.1 sslmode=verify-full sslrootcert={root}");
    stage.refuses(&format!("{wrong_name} sslcrl={good}")).await;
    let broken = list("broken.crl", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
    for unusable in [broken.as_str(), "/nowhere/root.crl"] {
        let error = refused(&stage.to(&format!("{wrong_name} sslcrl={unusable}"))).await;
        assert_eq!(error.kind(), ErrorKind::Usage, "{unusable}: {error}");
    }
    let unchecked = refused(&stage.to(&format!("host=127.0.0.1 sslmode=require sslcrl={good}"))).await;
    assert_eq!(unchecked.kind(), ErrorKind::Usage, "{unchecked}");
}

/// Both in PEM form: as the authority was until 2021, and as it is.
fn old_and_new(sign: impl Fn(&CertificateParams) -> String, mut params: CertificateParams) -> [String; 2] {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    [2021, 2100].map(|year| {
        params.not_after = date_time_ymd(year, 1, 1);
        sign(&params)
    })
}

/// As OpenSSL has it. A file of roots often holds what these have signed, too.
#[tokio::test]
async fn roots_have_to_be_valid_and_what_stands_beside_them_is_checked_as_the_rest_of_the_chain() {
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    let mut of_root = params("root", &[]);
    let [old_root, root] = old_and_new(|params| params.self_signed(&keys[0]).unwrap().pem(), of_root.clone());
    of_root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let [root_key, middle_key] = keys;
    let ours = Authority { issuer: Issuer::new(of_root, root_key), pem: root.clone() };
    let mut of_middle = params("middle", &[]);
    of_middle.serial_number = Some(SerialNumber::from(9));
    let sign = |params: &CertificateParams| params.signed_by(&middle_key, &ours.issuer).unwrap().pem();
    let [old_middle, middle] = old_and_new(sign, of_middle.clone());
    of_middle.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // The library knows no policies; OpenSSL does.
    let mut inhibits_any_policy = CustomExtension::from_oid_content(&[2, 5, 29, 54], vec![2, 1, 2]);
    inhibits_any_policy.set_criticality(true);
    let mut with_policies = of_middle.clone();
    with_policies.custom_extensions.push(inhibits_any_policy);
    let [old_policies, policies] = old_and_new(sign, with_policies);
    let between = Authority { issuer: Issuer::new(of_middle, middle_key), pem: middle.clone() };
    let (certificate, key) = between.sign(&params("server", &["localhost"]));
    let stage = stage(18, &certificate, &key, &root, "host all all 127.0.0.1/32 trust").await;
    let with = |name: &str, roots: &[&String], rest: &str| {
        let file = stage.file(name, &roots.iter().map(|pem| pem.as_str()).collect::<String>(), 0o644);
        format!("host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={} {rest}", show(&file))
    };
    let lists = |name: &str, taken_back: u64| {
        let far = (2100, 1, 1);
        let both = revocation_list(&ours, &[taken_back], far) + &revocation_list(&between, &[8], far);
        format!("sslcrl={}", show(&stage.file(name, &both, 0o644)))
    };
    for taken in [
        with("both", &[&root, &middle], ""),
        with("renewed", &[&old_root, &middle, &root], ""),
        with("listed", &[&root, &middle], &lists("good.crl", 8)),
        with("policies", &[&policies, &root], ""),
    ] {
        assert!(stage.connects_with_tls(&taken).await, "{taken}");
    }
    for (refused_for, to) in [
        ("has expired", with("old", &[&old_root, &middle], "")),
        ("expired", with("old-middle", &[&root, &old_middle], "")),
        ("CriticalExtension", with("old-policies", &[&root, &old_policies], "")),
        ("CriticalExtension", with("of-old", &[&old_root, &policies], "")),
        ("CriticalExtension", with("listed-policies", &[&root, &policies], &lists("good.crl", 8))),
        ("self-signed", with("middle", &[&middle], "")),
        ("self-signed", with("leaf", &[&certificate], "")),
        ("Revoked", with("revoked", &[&root, &middle], &lists("bad.crl", 9))),
        ("has expired", with("old-listed", &[&old_root, &middle], &lists("good.crl", 8))),
    ] {
        let error = refused(&stage.to(&to)).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}: {error}");
        assert!(error.message().contains(refused_for), "{to}: {error}");
    }
}

/// OpenSSL asks roots as well what they are for.
#[tokio::test]
async fn a_root_signs_no_more_than_it_says_that_it_may() {
    let [root_key, middle_key] = [(); 2].map(|()| KeyPair::generate().unwrap());
    let root = |constraints: BasicConstraints, uses: &[ExtendedKeyUsagePurpose]| {
        let mut params = params("root", &[]);
        params.is_ca = IsCa::Ca(constraints);
        params.extended_key_usages = uses.to_vec();
        (params.self_signed(&root_key).unwrap().pem(), params)
    };
    let (free, of_root) = root(BasicConstraints::Unconstrained, &[]);
    let mut of_middle = params("middle", &[]);
    of_middle.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ours = Issuer::new(of_root, &root_key);
    let middle = of_middle.signed_by(&middle_key, &ours).unwrap().pem();
    let between = Authority { issuer: Issuer::new(of_middle, middle_key), pem: middle.clone() };
    let (certificate, key) = between.sign(&params("server", &["localhost"]));
    let rule = "host all all 127.0.0.1/32 trust";
    let stage = stage(18, &(certificate + &middle), &key, &free, rule).await;
    let plain = params("root", &[]).self_signed(&root_key).unwrap().pem();
    let roots = [
        (root(BasicConstraints::Constrained(1), &[ExtendedKeyUsagePurpose::ServerAuth]).0, None),
        (root(BasicConstraints::Constrained(0), &[]).0, Some("more intermediate certificates")),
        // Two certificates of one authority.
        (root(BasicConstraints::Constrained(0), &[]).0 + &free, None),
        (
            root(BasicConstraints::Unconstrained, &[ExtendedKeyUsagePurpose::ClientAuth]).0,
            Some("may not sign those of servers"),
        ),
        (plain, Some("may not sign those of servers")),
    ];
    for (number, (root, why)) in roots.iter().enumerate() {
        let file = stage.file(&format!("root-{number}.crt"), root, 0o644);
        let to = format!("host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={}", show(&file));
        match why {
            None => assert!(stage.connects_with_tls(&to).await, "{number}"),
            Some(why) => {
                let error = refused(&stage.to(&to)).await;
                assert!(error.message().contains(why), "{number}: {error}");
            }
        }
    }
}
