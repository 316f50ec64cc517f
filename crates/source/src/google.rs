//! The way into a bucket of Google. The environment enters, in the words of the client library and in those
//! of Google's own tools: `CLOUDSDK_CONFIG`, `STORAGE_EMULATOR_HOST`; a client leaves.

use crate::bucket::{Connected, has_credentials, no_retries, unusable};
use crate::client::Connector;
use crate::environment::Environment;
use crate::failure;
use crate::location::Scheme;
use crate::setting::{expect_endpoint, expect_printable};
use howdah_model::{Error, ErrorKind, Result};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use std::collections::BTreeMap;
use std::path::PathBuf;

const HINT: &str = "set GOOGLE_APPLICATION_CREDENTIALS to the file of an account that may read the bucket";

/// What `gcloud auth application-default login` writes.
const LOGIN_FILE: &str = "application_default_credentials.json";

/// By which Google's libraries are sent to a server of another kind, with a scheme or without.
const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// Kinds of credentials that Google's own libraries read and the client library does not.
const UNREAD: [&str; 4] = [
    "external_account_authorized_user",
    "external_account",
    "impersonated_service_account",
    "gdch_service_account",
];

pub(crate) async fn connect(
    bucket: &str,
    environment: &Environment,
    connector: Connector,
) -> Result<Connected> {
    let mut builder = GoogleCloudStorageBuilder::new();
    let mut settings = settings(environment)?;
    let is_set = |settings: &Settings, wanted| settings.iter().any(|(key, _)| *key == wanted);
    let emulator = environment.get(EMULATOR).filter(|_| !is_set(&settings, GoogleConfigKey::BaseUrl));
    // As Google's libraries have it, who is sent to an emulator shows nobody's login there.
    let login = login(environment).filter(|_| emulator.is_none());
    if let Some(file) = login.filter(|_| !is_set(&settings, GoogleConfigKey::ApplicationCredentials)) {
        settings.push((GoogleConfigKey::ApplicationCredentials, file.to_string_lossy().into_owned()));
    }
    if let Some(host) = emulator {
        settings.push((GoogleConfigKey::BaseUrl, address(host)?));
    }
    let is_configured = settings.iter().any(|(key, _)| is_way_in(*key));
    for (key, value) in settings {
        builder = builder.with_config(key, value);
    }
    let builder = builder.with_bucket_name(bucket).with_retry(no_retries()).with_http_connector(connector);
    let build = |builder: GoogleCloudStorageBuilder| builder.build().map_err(|error| unread(&error));
    let store = build(builder.clone())?;
    if is_configured || (emulator.is_none() && has_credentials(store.credentials().get_credential()).await) {
        return Ok((Box::new(store), false));
    }
    Ok((Box::new(build(builder.with_skip_signature(true))?), true))
}

type Settings = Vec<(GoogleConfigKey, String)>;

fn settings(environment: &Environment) -> Result<Settings> {
    let mut settings = Settings::new();
    // In the order of their names: where two name the same thing, it is always the same that counts.
    for (name, value) in environment.with_prefix("GOOGLE_").collect::<BTreeMap<_, _>>() {
        let Ok(key) = name.to_ascii_lowercase().parse() else { continue };
        let value = match key {
            // The library's own client is not used.
            GoogleConfigKey::Client(_) => continue,
            // A document, of several lines.
            GoogleConfigKey::ServiceAccountKey => value,
            GoogleConfigKey::BaseUrl => {
                expect_endpoint(name, value)?;
                // The library adds another one.
                value.trim_end_matches('/')
            }
            _ => {
                expect_printable(name, value)?;
                value
            }
        };
        settings.push((key, value.to_owned()));
    }
    Ok(settings)
}

/// What says who, not where.
fn is_way_in(key: GoogleConfigKey) -> bool {
    !matches!(key, GoogleConfigKey::BaseUrl | GoogleConfigKey::Bucket | GoogleConfigKey::Client(_))
}

/// The file of a login, where one is.
fn login(environment: &Environment) -> Option<PathBuf> {
    let file = match environment.get("CLOUDSDK_CONFIG") {
        Some(folder) => PathBuf::from(folder).join(LOGIN_FILE),
        None => environment.home(".config/gcloud")?.join(LOGIN_FILE),
    };
    file.exists().then_some(file)
}

/// The address of an emulator, whose path is of another interface than is spoken here.
fn address(host: &str) -> Result<String> {
    let host = host.trim_end_matches('/').trim_end_matches("/storage/v1");
    let address = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
    expect_endpoint(EMULATOR, &address)?;
    Ok(address)
}

/// Of what cannot be read in a file of credentials, the library's reader tells parts.
fn unread(error: &object_store::Error) -> Error {
    let Some(reason) =
        failure::chain(error).filter_map(|cause| cause.downcast_ref::<serde_json::Error>()).last()
    else {
        return unusable(error, Scheme::Gs, HINT);
    };
    let text = reason.to_string();
    if let Some(kind) = UNREAD.iter().find(|kind| text.contains(&format!("`{kind}`"))) {
        let message = format!(
            "the credentials for gs:// are of the type {kind}, expected service_account or authorized_user"
        );
        return Error::new(ErrorKind::Usage, message).with_hint(
            "set GOOGLE_BEARER_TOKEN=\"$(gcloud auth application-default print-access-token)\", which is good for an hour; \
             or unset GOOGLE_APPLICATION_CREDENTIALS on a machine of Google that has an account of its own",
        );
    }
    let message = format!(
        "the credentials for gs:// cannot be read: expected the JSON of a service account or of a login, got something else at line {}, column {}",
        reason.line(),
        reason.column()
    );
    Error::new(ErrorKind::Usage, message).with_hint(HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_is_named_with_a_scheme_or_without() {
        for (host, url) in [
            ("127.0.0.1:4443", "http://127.0.0.1:4443"),
            ("http://localhost:4443", "http://localhost:4443"),
            ("https://localhost:4443/storage/v1/", "https://localhost:4443"),
        ] {
            assert_eq!(address(host).unwrap(), url, "{host}");
        }
        assert!(address("ftp://x").unwrap_err().message().starts_with(EMULATOR));
    }
}
