//! The way into a container of Azure. The environment enters, in the words of the client library and in those
//! of Azure's own tools: `AZURE_STORAGE_ACCOUNT`, `AZURE_STORAGE_KEY`, `AZURE_STORAGE_CONNECTION_STRING`; a
//! client leaves.

use crate::bucket::{Connected, has_credentials, no_retries, unusable};
use crate::client::Connector;
use crate::environment::Environment;
use crate::location::Scheme;
use crate::setting::{expect_endpoint, expect_printable};
use howdah_model::{Error, ErrorKind, Result};
use object_store::azure::{AzureAccessKey, AzureConfigKey, MicrosoftAzureBuilder};
use std::collections::BTreeMap;
use url::{Host, Url};

const HINT: &str = "set AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or another way in, or \
                    AZURE_STORAGE_CONNECTION_STRING with all of them";

const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// What Azure's tools call by names that the library does not know.
const AS_TOOLS_CALL_IT: [(&str, AzureConfigKey); 2] = [
    ("AZURE_STORAGE_ACCOUNT", AzureConfigKey::AccountName),
    ("AZURE_STORAGE_KEY", AzureConfigKey::AccessKey),
];

/// Settings by what they are, each with the variable that it comes from.
type Settings<'a> = Vec<(AzureConfigKey, &'a str, String)>;

pub(crate) async fn connect(
    container: &str,
    environment: &Environment,
    connector: Connector,
) -> Result<Connected> {
    let mut settings = settings(environment)?;
    complete(&mut settings)?;
    let is_configured = settings.iter().any(|(key, ..)| is_way_in(*key));
    let builder = settings
        .into_iter()
        .fold(MicrosoftAzureBuilder::new(), |builder, (key, _, value)| builder.with_config(key, value));
    let builder =
        builder.with_container_name(container).with_retry(no_retries()).with_http_connector(connector);
    let build =
        |builder: MicrosoftAzureBuilder| builder.build().map_err(|error| unusable(&error, Scheme::Az, HINT));
    let store = build(builder.clone())?;
    if is_configured || has_credentials(store.credentials().get_credential()).await {
        return Ok((Box::new(store), false));
    }
    Ok((Box::new(build(builder.with_skip_signature(true))?), true))
}

/// What says where, not who.
fn is_way_in(key: AzureConfigKey) -> bool {
    use AzureConfigKey as Key;
    !matches!(
        key,
        Key::AccountName
            | Key::Endpoint
            | Key::ContainerName
            | Key::DisableTagging
            | Key::UseFabricEndpoint
            | Key::Client(_)
    )
}

/// All that is set. A connection string counts before the account, its keys and its address, as to Azure's
/// tools.
fn settings(environment: &Environment) -> Result<Settings<'_>> {
    use AzureConfigKey as Key;
    let mut settings = Settings::new();
    // In the order of their names: where two name the same thing, it is always the same that counts.
    for (name, value) in environment.with_prefix("AZURE_").collect::<BTreeMap<_, _>>() {
        match name.to_ascii_lowercase().parse() {
            // The library's own client is not used.
            Ok(Key::Client(_)) | Err(_) => {}
            Ok(key) => settings.push((key, name, value.to_owned())),
        }
    }
    for (name, key) in AS_TOOLS_CALL_IT {
        if let Some(value) = environment.get(name).filter(|_| !has(&settings, key)) {
            settings.push((key, name, value.to_owned()));
        }
    }
    if let Some(text) = environment.get(CONNECTION_STRING) {
        let of_account = [Key::AccountName, Key::AccessKey, Key::SasKey, Key::Endpoint];
        settings.retain(|(key, ..)| !of_account.contains(key));
        settings.extend(connection(text)?.into_iter().map(|(key, value)| (key, CONNECTION_STRING, value)));
    }
    Ok(settings)
}

fn has(settings: &Settings<'_>, wanted: AzureConfigKey) -> bool {
    settings.iter().any(|(key, ..)| *key == wanted)
}

/// Looks at the values, of which the library tells parts where it cannot use them, and finds the account in
/// the address if nothing names it.
fn complete(settings: &mut Settings<'_>) -> Result<()> {
    use AzureConfigKey as Key;
    for (key, name, value) in &mut *settings {
        match key {
            Key::Endpoint => {
                expect_endpoint(name, value)?;
                // The library adds another one.
                value.truncate(value.trim_end_matches('/').len());
            }
            _ => expect_printable(name, value)?,
        }
        if *key == Key::AccessKey && AzureAccessKey::try_new(value).is_err() {
            let message = format!(
                "{name} holds no key of an account: expected base64, got another character or length"
            );
            return Err(Error::new(ErrorKind::Usage, message)
                .with_hint("copy the key anew (az storage account keys list)"));
        }
    }
    if has(settings, Key::AccountName) || has(settings, Key::UseEmulator) {
        return Ok(());
    }
    let endpoint = settings.iter().find(|(key, ..)| *key == Key::Endpoint);
    let Some(account) = endpoint.and_then(|(_, _, endpoint)| account_of(endpoint)) else {
        let message = "az:// needs the name of a storage account, and none is set";
        return Err(Error::new(ErrorKind::Usage, message).with_hint(HINT));
    };
    settings.push((Key::AccountName, "AZURE_STORAGE_ENDPOINT", account));
    Ok(())
}

/// `https://ACCOUNT.blob.core.windows.net`, or `http://127.0.0.1:10000/ACCOUNT`, where a server of another
/// kind stands in for it.
fn account_of(endpoint: &str) -> Option<String> {
    let url = Url::parse(endpoint).ok()?;
    let account = match url.host()? {
        Host::Domain(host) if host.contains('.') => host.split('.').next()?,
        _ => url.path_segments()?.next()?,
    };
    (!account.is_empty()).then(|| account.to_owned())
}

/// The parts of a connection string that are about blobs.
fn connection(text: &str) -> Result<Vec<(AzureConfigKey, String)>> {
    use AzureConfigKey as Key;
    let mut parts = BTreeMap::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            let message = format!(
                "{CONNECTION_STRING} cannot be used: expected NAME=VALUE;NAME=VALUE, got a part without ="
            );
            Error::new(ErrorKind::Usage, message)
                .with_hint("copy it anew (az storage account show-connection-string), in quotes")
        })?;
        parts.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    if parts.get("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(vec![(Key::UseEmulator, "true".to_owned())]);
    }
    let address = parts.get("accountname").map(|account| {
        let get = |name: &str, usual: &'static str| parts.get(name).map_or(usual, String::as_str);
        let scheme = get("defaultendpointsprotocol", "https");
        format!("{scheme}://{account}.blob.{}", get("endpointsuffix", "core.windows.net"))
    });
    let endpoint = parts.get("blobendpoint").cloned().or(address);
    let named = [
        (Key::AccountName, parts.get("accountname").cloned()),
        (Key::AccessKey, parts.get("accountkey").cloned()),
        (Key::SasKey, parts.get("sharedaccesssignature").cloned()),
        (Key::Endpoint, endpoint),
    ];
    Ok(named.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use AzureConfigKey as Key;

    fn completed(variables: &[(&str, &str)]) -> Result<Vec<(AzureConfigKey, String)>> {
        let environment =
            Environment::new(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let mut settings = settings(&environment)?;
        complete(&mut settings)?;
        Ok(settings.into_iter().map(|(key, _, value)| (key, value)).collect())
    }

    fn value(settings: &[(AzureConfigKey, String)], wanted: AzureConfigKey) -> Option<&str> {
        settings.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_connection_string_is_read_as_by_azures_own_tools() {
        let whole = "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=c2VjcmV0PT0=;EndpointSuffix=core.chinacloudapi.cn";
        // It counts before what is set besides.
        let found =
            completed(&[(CONNECTION_STRING, whole), ("AZURE_STORAGE_ACCOUNT_NAME", "other")]).unwrap();
        assert_eq!(value(&found, Key::AccountName), Some("lake"));
        assert_eq!(value(&found, Key::AccessKey), Some("c2VjcmV0PT0="));
        assert_eq!(value(&found, Key::Endpoint), Some("https://lake.blob.core.chinacloudapi.cn"));
        // A SAS has `=` in it, and names no account.
        let sas =
            "BlobEndpoint=https://lake.blob.core.windows.net/;SharedAccessSignature=sv=2024-01-01&sig=a%3D";
        let found = completed(&[(CONNECTION_STRING, sas)]).unwrap();
        assert_eq!(value(&found, Key::AccountName), Some("lake"));
        assert_eq!(value(&found, Key::SasKey), Some("sv=2024-01-01&sig=a%3D"));
        let found = completed(&[(CONNECTION_STRING, "UseDevelopmentStorage=true;")]).unwrap();
        assert_eq!(value(&found, Key::UseEmulator), Some("true"));
        let error = completed(&[(CONNECTION_STRING, "AccountName=lake;geheim")]).unwrap_err();
        assert!(error.kind() == ErrorKind::Usage && !error.to_string().contains("geheim"), "{error}");
    }

    #[test]
    fn names_of_azures_own_tools_count_where_the_librarys_are_not_set() {
        let tools = [("AZURE_STORAGE_ACCOUNT", "lake"), ("AZURE_STORAGE_KEY", "c2VjcmV0")];
        let found = completed(&tools).unwrap();
        assert_eq!(value(&found, Key::AccountName), Some("lake"));
        assert_eq!(value(&found, Key::AccessKey), Some("c2VjcmV0"));
        let found = completed(&[&tools[..], &[("AZURE_STORAGE_ACCOUNT_NAME", "other")]].concat()).unwrap();
        assert_eq!(value(&found, Key::AccountName), Some("other"));
    }

    #[test]
    fn the_account_is_part_of_the_address() {
        for (endpoint, account) in [
            ("https://lake.blob.core.windows.net", Some("lake")),
            ("http://127.0.0.1:10000/devstoreaccount1", Some("devstoreaccount1")),
            ("http://localhost:10000/lake/", Some("lake")),
            ("http://127.0.0.1:10000", None),
        ] {
            assert_eq!(account_of(endpoint).as_deref(), account, "{endpoint}");
        }
    }

    #[test]
    fn no_symbol_of_a_key_is_told() {
        let variables = [("AZURE_STORAGE_ACCOUNT", "lake"), ("AZURE_STORAGE_KEY", "ge*eim")];
        let error = completed(&variables).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(
            error.message().starts_with("AZURE_STORAGE_KEY holds no key") && !error.message().contains("42"),
            "{error}"
        );
    }

    /// Pipelines and the command line tool set variables of their own, which say nothing of credentials.
    #[test]
    fn what_names_no_credentials_is_no_way_in() {
        let variables = [
            ("AZURE_STORAGE_ACCOUNT", "lake"),
            ("AZURE_CONFIG_DIR", "/x"),
            ("AZURE_HTTP_USER_AGENT", "x"),
            ("AZURE_ALLOW_HTTP", "true"),
        ];
        assert!(!completed(&variables).unwrap().iter().any(|(key, _)| is_way_in(*key)));
        let variables = [&variables[..], &[("AZURE_STORAGE_SAS_TOKEN", "sig=x")]].concat();
        assert!(completed(&variables).unwrap().iter().any(|(key, _)| is_way_in(*key)));
    }
}
