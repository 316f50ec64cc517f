//! Access to S3 as AWS's own tools find it. Environment and profile files enter; a client leaves. In this
//! order: `AWS_ACCESS_KEY_ID`, a web identity, the profile, the container's role, the machine's role, nobody.
//! Profiles that need a login of their own (SSO, assumed roles, helper programs) are refused with a way out.

use crate::bucket::{Connected, has_credentials, no_retries, unusable};
use crate::client::Connector;
use crate::container::ContainerRole;
use crate::environment::Environment;
use crate::location::Scheme;
use crate::profile::{self, Section};
use crate::setting::{expect_endpoint, expect_printable, expect_region};
use howdah_model::{Error, ErrorKind, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

const HINT: &str = "check the AWS_* variables, AWS_REGION and AWS_ENDPOINT_URL_S3 among them";

/// Who reads.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Keys or a token from the environment, which the library reads itself, or `AWS_SKIP_SIGNATURE`.
    Environment,
    Keys {
        id: String,
        secret: String,
        session: Option<String>,
    },
    /// The role of the container, whose agent the environment names.
    Container,
    /// The machine's own role, if it has one.
    Machine,
    Nobody,
}

/// With whether the address follows from the region, as none is set.
pub(crate) async fn connect(
    bucket: &str,
    environment: &Environment,
    connector: Connector,
    region: Option<&str>,
) -> Result<(Connected, bool)> {
    let profile = Profile::read(environment)?;
    let identity = identity(environment, &profile)?;
    let mut builder = settings(bucket, environment, &profile, &identity)?.with_http_connector(connector);
    if let Some(region) = region {
        builder = elsewhere(builder, region);
    }
    let has_regions = endpoint(&builder).is_none();
    Ok((connected(builder, environment, identity).await?, has_regions))
}

/// The bucket is asked for in another region. A web identity is shown where it was before: in the other one
/// the account may have no STS, and what names a region should not say who sees a token.
fn elsewhere(mut builder: AmazonS3Builder, region: &str) -> AmazonS3Builder {
    if builder.get_config_value(&AmazonS3ConfigKey::StsEndpoint).is_none() {
        let before = builder.get_config_value(&AmazonS3ConfigKey::Region);
        let before = before.as_deref().unwrap_or("us-east-1");
        let sts = format!("https://sts.{before}.amazonaws.com");
        builder = builder.with_config(AmazonS3ConfigKey::StsEndpoint, sts);
    }
    builder.with_region(region)
}

async fn connected(
    builder: AmazonS3Builder,
    environment: &Environment,
    identity: Identity,
) -> Result<Connected> {
    if identity == Identity::Nobody {
        return Ok((Box::new(build(builder.with_skip_signature(true))?), true));
    }
    if identity == Identity::Container
        && let Some(role) = ContainerRole::of(environment)?
    {
        return Ok((Box::new(build(builder.with_credentials(Arc::new(role)))?), false));
    }
    let store = build(builder.clone())?;
    if identity == Identity::Machine && !has_credentials(store.credentials().get_credential()).await {
        return Ok((Box::new(build(builder.with_skip_signature(true))?), true));
    }
    Ok((Box::new(store), environment.is_on("AWS_SKIP_SIGNATURE")))
}

fn build(builder: AmazonS3Builder) -> Result<AmazonS3> {
    builder.build().map_err(|error| unusable(&error, Scheme::S3, HINT))
}

/// Path-style addresses work with every endpoint, so they are used unless `AWS_VIRTUAL_HOSTED_STYLE_REQUEST`
/// or the profile says otherwise. A session token belongs to the keys beside it: one that is left in the
/// environment is none of a profile's keys.
fn settings(
    bucket: &str,
    environment: &Environment,
    profile: &Profile,
    identity: &Identity,
) -> Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::new();
    let of_profile = |key: &str| format!("{key} of the AWS profile {}", profile.name);
    if let Some(region) = profile.setting("region") {
        expect_region(&of_profile("region"), region)?;
        builder = builder.with_config(AmazonS3ConfigKey::DefaultRegion, region);
    }
    if let Some(endpoint) = profile.endpoint() {
        expect_endpoint(&of_profile("endpoint_url"), endpoint)?;
        builder = builder.with_endpoint(endpoint);
    }
    for (name, value) in environment.with_prefix("AWS_") {
        // The region of the environment comes last: the library keeps the first default it is told. Its own
        // client is not used.
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>()
            && !matches!(key, AmazonS3ConfigKey::DefaultRegion | AmazonS3ConfigKey::Client(_))
            && (*identity == Identity::Environment || !matches!(key, AmazonS3ConfigKey::Token))
        {
            expect_usable(name, key, value)?;
            builder = builder.with_config(key, value);
        }
    }
    let region = |name| environment.get(name).map(|region| (name, region));
    if let Some((name, region)) = region("AWS_REGION").or_else(|| region("AWS_DEFAULT_REGION")) {
        expect_region(name, region)?;
        builder = builder.with_region(region);
    }
    if let Identity::Keys { id, secret, session } = identity {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        builder = session.iter().fold(builder, AmazonS3Builder::with_token);
    }
    let endpoint = endpoint(&builder);
    if is_virtual_hosted(environment, profile, || may_be_hosted(endpoint.as_deref(), bucket))? {
        builder = builder.with_virtual_hosted_style_request(true);
        if let Some(endpoint) = endpoint {
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, hosted(&endpoint, bucket)?);
        }
    }
    Ok(builder.with_bucket_name(bucket).with_retry(no_retries()))
}

fn endpoint(builder: &AmazonS3Builder) -> Option<String> {
    let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    keys.iter().find_map(|key| builder.get_config_value(key))
}

/// A profile is for all buckets: as AWS's tools have it, one that no host can have is asked for by its path.
/// `auto` means what it says: path style works everywhere.
fn is_virtual_hosted(
    environment: &Environment,
    profile: &Profile,
    may_be: impl Fn() -> bool,
) -> Result<bool> {
    const VARIABLE: &str = "AWS_VIRTUAL_HOSTED_STYLE_REQUEST";
    if environment.get(VARIABLE).is_some() {
        return Ok(environment.is_on(VARIABLE));
    }
    match profile.setting("s3.addressing_style").unwrap_or("auto") {
        "virtual" => Ok(may_be()),
        "path" | "auto" => Ok(false),
        _ => {
            let message = format!(
                "addressing_style of the AWS profile {} cannot be used: expected path, virtual or auto, got another word",
                profile.name
            );
            Err(Error::new(ErrorKind::Usage, message))
        }
    }
}

/// Certificates of stores are good for one name before theirs, and nothing stands before an address.
fn may_be_hosted(endpoint: Option<&str>, bucket: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_name = |endpoint| Url::parse(endpoint).is_ok_and(|url: Url| url.domain().is_some());
    bucket.bytes().all(is_plain) && endpoint.is_none_or(has_name)
}

/// The endpoint with the bucket in its host, where the library leaves it as it is; who knows that has written
/// the bucket already.
fn hosted(endpoint: &str, bucket: &str) -> Result<String> {
    let unusable = || {
        let message = format!(
            "the bucket {bucket} cannot be put before the host of the endpoint: expected names of hosts"
        );
        Error::new(ErrorKind::Usage, message).with_hint(
            "name the host of the endpoint, or unset AWS_VIRTUAL_HOSTED_STYLE_REQUEST and addressing_style",
        )
    };
    let mut url = Url::parse(endpoint).map_err(|_| unusable())?;
    let host = url.domain().ok_or_else(unusable)?;
    if !host.starts_with(&format!("{}.", bucket.to_ascii_lowercase())) {
        let host = format!("{bucket}.{host}");
        url.set_host(Some(&host)).map_err(|_| unusable())?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn expect_usable(name: &str, key: AmazonS3ConfigKey, value: &str) -> Result<()> {
    match key {
        AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint => expect_endpoint(name, value),
        AmazonS3ConfigKey::Region => expect_region(name, value),
        _ => expect_printable(name, value),
    }
}

fn identity(environment: &Environment, profile: &Profile) -> Result<Identity> {
    let has_container = environment
        .has_any(&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]);
    let has_web_identity =
        environment.get("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() && environment.get("AWS_ROLE_ARN").is_some();
    if environment.is_on("AWS_SKIP_SIGNATURE")
        || environment.has_any(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
        || has_web_identity
    {
        return Ok(Identity::Environment);
    }
    if let Some(way) = profile.unsupported() {
        let message =
            format!("the AWS profile {} gets its credentials by {way}, which is not read", profile.name);
        let hint = format!(
            "run `eval \"$(aws configure export-credentials --format env --profile {})\"`, then howdah again",
            profile.name
        );
        return Err(Error::new(ErrorKind::SourceDenied, message).with_hint(hint));
    }
    if let Some(keys) = profile.keys()? {
        return Ok(keys);
    }
    if has_container {
        return Ok(Identity::Container);
    }
    Ok(if environment.is_on("AWS_EC2_METADATA_DISABLED") { Identity::Nobody } else { Identity::Machine })
}

/// One profile, from both files.
struct Profile {
    name: String,
    config: Section,
    credentials: Section,
    services: Section,
}

impl Profile {
    /// A profile that was asked for must exist; the default one need not.
    fn read(environment: &Environment) -> Result<Profile> {
        let asked = environment.get("AWS_PROFILE").or_else(|| environment.get("AWS_DEFAULT_PROFILE"));
        let name = asked.unwrap_or("default").to_owned();
        let config = read(environment, "AWS_CONFIG_FILE", ".aws/config")?;
        let credentials = read(environment, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")?;
        let of_config = profile::section(&config, &format!("profile {name}"))
            .or_else(|| profile::section(&config, &name).filter(|_| name == "default"));
        let of_credentials = profile::section(&credentials, &name);
        if asked.is_some() && of_config.is_none() && of_credentials.is_none() {
            let message = format!("there is no AWS profile {name}, which AWS_PROFILE names");
            return Err(Error::new(ErrorKind::SourceDenied, message)
                .with_hint("look into ~/.aws/config and ~/.aws/credentials, or unset AWS_PROFILE"));
        }
        let of_config = of_config.unwrap_or_default();
        let services = of_config.get("services").map(|services| format!("services {services}"));
        Ok(Profile {
            services: services.and_then(|wanted| profile::section(&config, &wanted)).unwrap_or_default(),
            config: of_config,
            credentials: of_credentials.unwrap_or_default(),
            name,
        })
    }

    fn setting(&self, key: &str) -> Option<&str> {
        self.config.get(key).or_else(|| self.credentials.get(key)).map(String::as_str)
    }

    /// The credentials file wins over the config file.
    fn credential(&self, key: &str) -> Option<&str> {
        self.credentials.get(key).or_else(|| self.config.get(key)).map(String::as_str)
    }

    /// A key without the other half of it is a slip: others' credentials, or none, are not what was meant.
    fn keys(&self) -> Result<Option<Identity>> {
        const ID: &str = "aws_access_key_id";
        const SECRET: &str = "aws_secret_access_key";
        let half = |there: &str, missing: &str| {
            let message = format!("the AWS profile {} has {there}, and no {missing}", self.name);
            Err(Error::new(ErrorKind::SourceDenied, message)
                .with_hint(format!("write {missing} beside it, in ~/.aws/credentials")))
        };
        match (self.credential(ID), self.credential(SECRET)) {
            (Some(id), Some(secret)) => {
                let session = self.credential("aws_session_token").map(str::to_owned);
                Ok(Some(Identity::Keys { id: id.to_owned(), secret: secret.to_owned(), session }))
            }
            (Some(_), None) => half(ID, SECRET),
            (None, Some(_)) => half(SECRET, ID),
            (None, None) => Ok(None),
        }
    }

    fn endpoint(&self) -> Option<&str> {
        let of_service = self.services.get("s3.endpoint_url").map(String::as_str);
        let found =
            of_service.or_else(|| self.setting("s3.endpoint_url")).or_else(|| self.setting("endpoint_url"));
        found.filter(|endpoint| !endpoint.is_empty())
    }

    /// Where the tools of AWS take credentials from before, or without, keys of the profile's own.
    fn unsupported(&self) -> Option<&'static str> {
        let has = |key: &str| self.setting(key).is_some();
        let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
        let has_keys = |section: &Section| {
            ["aws_access_key_id", "aws_secret_access_key"].iter().all(|key| section.contains_key(*key))
        };
        if has("role_arn") && has_any(&["source_profile", "credential_source", "web_identity_token_file"]) {
            return Some("assuming a role");
        }
        if has_any(&["sso_account_id", "sso_role_name"]) {
            return Some("single sign-on");
        }
        if has_keys(&self.credentials) {
            return None;
        }
        if has("credential_process") {
            return Some("a helper program");
        }
        if has_keys(&self.config) {
            return None;
        }
        [
            ("sso_session", "single sign-on"),
            ("sso_start_url", "single sign-on"),
            ("role_arn", "assuming a role"),
            ("login_session", "a login session"),
        ]
        .into_iter()
        .find_map(|(key, way)| has(key).then_some(way))
    }
}

/// A file that is not there is empty; one that cannot be read is an error only where its path was set.
fn read(environment: &Environment, variable: &str, usual: &str) -> Result<String> {
    let set = environment.get(variable).map(PathBuf::from);
    let is_set = set.is_some();
    let Some(path) = set.or_else(|| environment.home(usual)) else { return Ok(String::new()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if is_set && error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("reading {} failed: {error}", path.display());
            Err(Error::new(ErrorKind::SourceDenied, message).with_hint(format!("{variable} names it")))
        }
        Err(_) => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home with both files, and these variables.
    fn home(config: &str, credentials: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        std::fs::write(home.path().join(".aws/config"), config).unwrap();
        std::fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let path = home.path().to_str().unwrap().to_owned();
        let environment = Environment::new(variables.chain([("HOME".to_owned(), path)]));
        (home, environment)
    }

    fn identity_of(config: &str, credentials: &str, variables: &[(&str, &str)]) -> Result<Identity> {
        let (_home, environment) = home(config, credentials, variables);
        identity(&environment, &Profile::read(&environment)?)
    }

    const KEYS: &str = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n[p]\naws_access_key_id = c\n\
                        aws_secret_access_key = d\naws_session_token = e\n";

    #[test]
    fn identities_are_looked_for_in_the_order_of_aws() {
        let key = [("AWS_ACCESS_KEY_ID", "x"), ("AWS_PROFILE", "p")];
        assert_eq!(identity_of("", KEYS, &key).unwrap(), Identity::Environment);
        let default = Identity::Keys { id: "a".into(), secret: "b".into(), session: None };
        assert_eq!(identity_of("", KEYS, &[]).unwrap(), default);
        let named = Identity::Keys { id: "c".into(), secret: "d".into(), session: Some("e".into()) };
        assert_eq!(identity_of("", KEYS, &[("AWS_PROFILE", "p")]).unwrap(), named);
        let container = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/c")];
        assert_eq!(identity_of("", "", &container).unwrap(), Identity::Container);
        assert_eq!(identity_of("", KEYS, &container).unwrap(), default);
        assert_eq!(identity_of("", "", &[]).unwrap(), Identity::Machine);
        assert_eq!(identity_of("", "", &[("AWS_EC2_METADATA_DISABLED", "true")]).unwrap(), Identity::Nobody);
        assert_eq!(identity_of("", KEYS, &[("AWS_SKIP_SIGNATURE", "true")]).unwrap(), Identity::Environment);
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_refused_with_a_way_out() {
        let missing = identity_of("", KEYS, &[("AWS_PROFILE", "q")]).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::SourceDenied);
        let sso = identity_of("[profile s]\nsso_session = x\n", "", &[("AWS_PROFILE", "s")]).unwrap_err();
        assert!(sso.hint().unwrap().contains("export-credentials --format env --profile s"), "{sso}");
        let half = identity_of("", "[default]\naws_access_key_id = a\n", &[]).unwrap_err();
        assert!(half.message().contains("default has aws_access_key_id, and no aws_secret"), "{half}");
    }

    #[test]
    fn a_login_of_its_own_counts_before_the_keys_of_a_profile_as_for_aws() {
        const SSO: &str = "[default]\nsso_session = x\nsso_account_id = 1\nsso_role_name = r\n";
        const ROLE: &str = "[default]\nrole_arn = r\nsource_profile = p\n";
        for config in [SSO, ROLE] {
            let error = identity_of(config, KEYS, &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceDenied, "{config}");
        }
        const HELPER: &str = "[default]\ncredential_process = x\n";
        let own = Identity::Keys { id: "a".into(), secret: "b".into(), session: None };
        assert_eq!(identity_of(HELPER, KEYS, &[]).unwrap(), own);
        let both = format!("{HELPER}aws_access_key_id = a\naws_secret_access_key = b\n");
        identity_of(&both, "", &[]).unwrap_err();
        identity_of(HELPER, "", &[]).unwrap_err();
        assert_eq!(identity_of(ROLE, KEYS, &[("AWS_ACCESS_KEY_ID", "x")]).unwrap(), Identity::Environment);
    }

    #[test]
    fn a_token_of_the_environment_is_not_joined_to_the_keys_of_a_profile() {
        let of = |profile: &str, variables: &[(&str, &str)]| {
            let variables = [&[("AWS_PROFILE", profile), ("AWS_SESSION_TOKEN", "old")], variables].concat();
            let (_home, environment) = home("", KEYS, &variables);
            let profile = Profile::read(&environment).unwrap();
            let identity = identity(&environment, &profile).unwrap();
            let builder = settings("b", &environment, &profile, &identity).unwrap();
            [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::Token]
                .map(|key| builder.get_config_value(&key))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of("default", &[]), [text("a"), None]);
        assert_eq!(of("p", &[]), [text("c"), text("e")]);
        let own = [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y")];
        assert_eq!(of("default", &own), [text("x"), text("old")]);
    }

    #[test]
    fn region_and_endpoint_come_from_the_environment_before_the_profile() {
        let config = "[default]\nregion = eu-north-1\nendpoint_url = http://file\n";
        let of = |variables: &[(&str, &str)]| {
            let (_home, environment) = home(config, "", variables);
            let profile = Profile::read(&environment).unwrap();
            let builder = settings("b", &environment, &profile, &Identity::Environment).unwrap();
            let told = |key| builder.get_config_value(&key);
            (
                told(AmazonS3ConfigKey::Region),
                told(AmazonS3ConfigKey::Endpoint),
                told(AmazonS3ConfigKey::S3Endpoint),
            )
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of(&[]), (text("eu-north-1"), text("http://file"), None));
        assert_eq!(of(&[("AWS_DEFAULT_REGION", "eu-west-1")]).0, text("eu-west-1"));
        let both = [
            ("AWS_DEFAULT_REGION", "eu-west-1"),
            ("AWS_REGION", "eu-west-2"),
            ("AWS_ENDPOINT_URL", "http://e"),
        ];
        assert_eq!(of(&both), (text("eu-west-2"), text("http://e"), None));
        assert_eq!(of(&[("AWS_ENDPOINT_URL_S3", "http://s3")]).2, text("http://s3"));
    }

    #[test]
    fn another_region_of_the_bucket_is_none_for_the_web_identity() {
        let of = |variables: &[(&str, &str)]| {
            let (_home, environment) = home("", "", variables);
            let profile = Profile::read(&environment).unwrap();
            let builder = settings("b", &environment, &profile, &Identity::Environment).unwrap();
            let builder = elsewhere(builder, "ap-east-1");
            [AmazonS3ConfigKey::Region, AmazonS3ConfigKey::StsEndpoint]
                .map(|key| builder.get_config_value(&key).unwrap())
        };
        let told = |sts: &str| ["ap-east-1".to_owned(), sts.to_owned()];
        assert_eq!(of(&[]), told("https://sts.us-east-1.amazonaws.com"));
        let set = ("AWS_REGION", "eu-west-1");
        assert_eq!(of(&[set]), told("https://sts.eu-west-1.amazonaws.com"));
        let own = ("AWS_ENDPOINT_URL_STS", "https://sts.example");
        assert_eq!(of(&[set, own]), told("https://sts.example"));
    }

    #[test]
    fn the_bucket_stands_in_the_host_where_profile_or_environment_want_it() {
        const VIRTUAL: &str = "[default]\ns3 =\n  addressing_style = virtual\n";
        let of = |config: &str, bucket: &str, variables: &[(&str, &str)]| -> Result<Option<String>> {
            let (_home, environment) = home(config, "", variables);
            let profile = Profile::read(&environment)?;
            let builder = settings(bucket, &environment, &profile, &Identity::Environment)?;
            Ok(builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint))
        };
        let on = ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true");
        let endpoint = ("AWS_ENDPOINT_URL", "https://store.example:9000/");
        let hosted = Some("https://b.store.example:9000".to_owned());
        assert_eq!(of("", "b", &[on, endpoint]).unwrap(), hosted);
        assert_eq!(of(VIRTUAL, "b", &[endpoint]).unwrap(), hosted);
        let off = ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false");
        assert_eq!(of(VIRTUAL, "b", &[off, endpoint]).unwrap(), None);
        let written = ("AWS_ENDPOINT_URL_S3", "https://b.store.example");
        assert_eq!(of("", "b", &[on, written]).unwrap(), Some("https://b.store.example".to_owned()));
        assert_eq!(of(VIRTUAL, "b", &[]).unwrap(), None);
        let address = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
        assert_eq!(of("", "b", &[on, address]).unwrap_err().kind(), ErrorKind::Usage);
        // A profile is for other buckets, too.
        let is_hosted = |bucket: &str, variables: &[(&str, &str)]| {
            let (_home, environment) = home(VIRTUAL, "", variables);
            let profile = Profile::read(&environment).unwrap();
            let builder = settings(bucket, &environment, &profile, &Identity::Environment).unwrap();
            builder.get_config_value(&AmazonS3ConfigKey::VirtualHostedStyleRequest).unwrap() == "true"
        };
        assert!(is_hosted("b", &[endpoint]) && is_hosted("b", &[]));
        assert!(
            !is_hosted("b", &[address]) && !is_hosted("my.bucket", &[]) && !is_hosted("My_b", &[endpoint])
        );
        let unknown = VIRTUAL.replace("virtual", "vhost");
        assert_eq!(of(&unknown, "b", &[endpoint]).unwrap_err().kind(), ErrorKind::Usage);
    }
}
