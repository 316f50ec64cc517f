//! Google's and Azure's stores, by the variables of their own tools. The faulty HTTP server plays one bucket;
//! what the two say is as their servers say it.

use crate::faulty_server::{Behaviour, Server};
use crate::{kind, noise, range, sources};
use howdah_model::{Error, ErrorKind};

const KEY: &str = "Z2VoZWltZ2VoZWlt";

fn assert_says(error: &Error, kind: ErrorKind, words: &str, way_out: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(words), "{error}");
    assert!(error.hint().unwrap_or_default().contains(way_out), "{error}: {:?}", error.hint());
    assert!(!format!("{error}{:?}", error.hint()).contains(KEY), "{error}");
}

#[tokio::test]
async fn azure_is_read_by_what_its_own_tools_are_told() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let blobs = format!("{}/lake", server.url);
    let connection = format!("AccountName=lake;AccountKey={KEY};BlobEndpoint={blobs}/;");
    let sas = format!("BlobEndpoint={blobs};SharedAccessSignature=sv=2024-01-01&sig={KEY}");
    for (variables, signed_by) in [
        (vec![("AZURE_STORAGE_CONNECTION_STRING", connection.as_str())], "authorization: SharedKey lake:"),
        (vec![("AZURE_STORAGE_CONNECTION_STRING", sas.as_str())], "&sig="),
        (
            vec![
                ("AZURE_STORAGE_ACCOUNT", "lake"),
                ("AZURE_STORAGE_KEY", KEY),
                ("AZURE_STORAGE_ENDPOINT", blobs.as_str()),
            ],
            "authorization: SharedKey lake:",
        ),
    ] {
        let object = sources(&variables).open("az://c/f.csv", None).await.unwrap();
        assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20]);
        let requests = server.take_requests();
        let is_right = |request: &String| {
            let path = request.split(' ').nth(1).unwrap();
            path.starts_with("/lake/c/f.csv") && (request.contains(signed_by) || path.contains("sig="))
        };
        assert!(requests.len() == 2 && requests.iter().all(is_right), "{requests:?}");
    }
}

/// The answer to a HEAD has no body, and Azure says why in a header.
#[tokio::test]
async fn what_azure_has_against_a_request_is_said() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let signed = [
        ("AZURE_STORAGE_ACCOUNT", "lake"),
        ("AZURE_STORAGE_KEY", KEY),
        ("AZURE_STORAGE_ENDPOINT", server.url.as_str()),
    ];
    let denied = ErrorKind::SourceDenied;
    for (status, code, kind, words, way_out) in [
        (404, "ContainerNotFound", ErrorKind::SourceNotFound, "there is no such container", ""),
        (403, "AuthenticationFailed", denied, "not the right one, or has expired", "AZURE_STORAGE_SAS_TOKEN"),
        (403, "AuthorizationFailure", denied, "access is denied", "network rules"),
        (403, "AuthorizationPermissionMismatch", denied, "access is denied", "sp=rl"),
        (409, "PublicAccessNotPermitted", denied, "nobody may read without credentials", "AZURE_STORAGE_KEY"),
        (409, "BlobArchived", ErrorKind::SourceIo, "archived", "set-tier"),
        (400, "InvalidResourceName", ErrorKind::SourceIo, "refused", "devstoreaccount1"),
    ] {
        let header: &'static str = format!("x-ms-error-code: {code}\r\n").leak();
        server.change(|behaviour| (behaviour.status, behaviour.extra_header) = (Some(status), header));
        let error = sources(&signed).open("az://c/f.csv", None).await.unwrap_err();
        assert!(error.message().contains(code), "{error}");
        assert_says(&error, kind, words, way_out);
    }
    let header = "x-ms-error-code: AuthorizationPermissionMismatch\r\n";
    server.change(|behaviour| (behaviour.status, behaviour.extra_header) = (Some(403), header));
    let error = sources(&signed).list("az://c/t/").await.unwrap_err();
    assert_says(&error, denied, "listing the bucket is denied", "l in a SAS token");
}

/// An account with folders shows them as empty objects, which a load would take for a file without rows.
#[tokio::test]
async fn a_folder_of_azure_is_no_object() {
    let folder = Behaviour { extra_header: "x-ms-meta-hdi_isfolder: true\r\n", ..Behaviour::of(Vec::new()) };
    let server = Server::start(folder).await;
    let variables = [
        ("AZURE_STORAGE_ACCOUNT", "lake"),
        ("AZURE_STORAGE_KEY", KEY),
        ("AZURE_STORAGE_ENDPOINT", server.url.as_str()),
    ];
    assert_eq!(kind(sources(&variables).open("az://c/t", None).await), ErrorKind::SourceNotFound);
    server.change(|behaviour| behaviour.extra_header = "");
    sources(&variables).open("az://c/t", None).await.unwrap();
}

#[tokio::test]
async fn an_emulator_of_google_is_read_without_credentials() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let object = sources(&[("STORAGE_EMULATOR_HOST", server.url.trim_start_matches("http://"))])
        .open("gs://b/f.csv", None)
        .await
        .unwrap();
    assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20]);
    // Nor by those of a login, which would go to Google first.
    let folder = tempfile::tempdir().unwrap();
    let login =
        r#"{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}"#;
    std::fs::write(folder.path().join("application_default_credentials.json"), login).unwrap();
    let variables =
        [("STORAGE_EMULATOR_HOST", &*server.url), ("CLOUDSDK_CONFIG", folder.path().to_str().unwrap())];
    sources(&variables).open("gs://b/f.csv", None).await.unwrap();
    assert!(server.take_requests().iter().all(|request| !request.contains("authorization:")));
    server.change(|behaviour| behaviour.status = Some(403));
    let error =
        sources(&[("STORAGE_EMULATOR_HOST", &server.url)]).open("gs://b/f.csv", None).await.unwrap_err();
    assert_says(&error, ErrorKind::SourceDenied, "access is denied", "no Google credentials were found");
}

#[tokio::test]
async fn credentials_of_google_that_cannot_be_read_are_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("application_default_credentials.json");
    for (content, words, way_out) in [
        (
            r#"{"type": "external_account", "audience": "x"}"#,
            "of the type external_account",
            "GOOGLE_BEARER_TOKEN",
        ),
        (&format!("\"{KEY}\""), "got something else at line 1", "GOOGLE_APPLICATION_CREDENTIALS"),
        (
            &format!(r#"{{"type": "{KEY}"}}"#),
            "got something else at line 1",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
    ] {
        std::fs::write(&path, content).unwrap();
        for (name, value) in [("GOOGLE_APPLICATION_CREDENTIALS", &*path), ("CLOUDSDK_CONFIG", folder.path())]
        {
            let error =
                sources(&[(name, value.to_str().unwrap())]).open("gs://b/f.csv", None).await.unwrap_err();
            assert_says(&error, ErrorKind::Usage, words, way_out);
        }
    }
}
