//! Credentials of a container: a task of ECS, a pod of EKS, or a helper on this machine that speaks as they
//! do. The environment and the place where the token is enter; credentials leave, asked for anew each minute;
//! those in hand serve on while the agent refuses, until they expire. As AWS's own tools have it, a token
//! goes by http only to this machine and to the addresses of the two agents.

use crate::client;
use crate::environment::Environment;
use crate::failure;
use crate::setting::expect_printable;
use async_trait::async_trait;
use howdah_model::{Error, ErrorKind, Result};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use url::{Host, Url};

const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// The agent of ECS, which the relative URI is meant for.
const ECS: &str = "http://169.254.170.2";

/// The agents of ECS and EKS:
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>.
const AGENTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Agents renew credentials many minutes before they expire, and are asked on the same machine: so that
/// nobody needs to know when.
const KEPT: Duration = Duration::from_secs(60);

/// For so long an agent that has failed is left alone: each try may take as long as its time-out, and all
/// requests wait for it.
const KEPT_BY_FAILURE: Duration = Duration::from_secs(10);

/// Credentials have 2 KiB, tokens of sessions included.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Whom to ask, and by which token. Holds secrets, so its `Debug` tells nothing.
pub(crate) struct ContainerRole {
    client: reqwest::Client,
    url: Url,
    token: Token,
    last: Mutex<Option<Held>>,
}

/// What the agent has told last.
struct Held {
    credential: Arc<AwsCredential>,
    /// Seconds since 1970. Where the agent does not say, the store does.
    expires_at: Option<u64>,
    ask_at: Instant,
}

impl Held {
    fn has_expired(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

enum Token {
    Nothing,
    Text(String),
    /// Read anew each time: a pod's token is replaced while it runs.
    File(PathBuf),
}

impl ContainerRole {
    /// `None` where the environment names none.
    ///
    /// # Errors
    /// `Usage` for an address that a token must not go to.
    pub(crate) fn of(environment: &Environment) -> Result<Option<ContainerRole>> {
        let url = match (environment.get(RELATIVE), environment.get(FULL)) {
            (Some(path), _) if path.starts_with('/') => address(RELATIVE, &format!("{ECS}{path}"))?,
            (Some(_), _) => {
                let message = format!("{RELATIVE} cannot be used: expected a path that begins with /");
                return Err(Error::new(ErrorKind::Usage, message));
            }
            (None, Some(full)) => address(FULL, full)?,
            (None, None) => return Ok(None),
        };
        let token = match (environment.get(TOKEN_FILE), environment.get(TOKEN)) {
            (Some(path), _) => Token::File(path.into()),
            (None, Some(token)) => {
                expect_printable(TOKEN, token)?;
                Token::Text(token.to_owned())
            }
            (None, None) => Token::Nothing,
        };
        let client = client::of_metadata()?;
        Ok(Some(ContainerRole { client, url, token, last: Mutex::default() }))
    }

    async fn ask(&self) -> Result<Held> {
        let mut request = self.client.get(self.url.clone());
        if let Some(token) = self.token().await? {
            request = request.header(AUTHORIZATION, token);
        }
        let failed = |error: &reqwest::Error| {
            let error = failure::past_proxies(error);
            Error::new(
                error.kind(),
                format!("asking for the container's credentials failed: {}", error.message()),
            )
        };
        let mut answer = request.send().await.map_err(|error| failed(&error))?;
        if !answer.status().is_success() {
            return Err(refused(answer.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(block) = answer.chunk().await.map_err(|error| failed(&error))? {
            body.extend_from_slice(&block);
            if body.len() > ANSWER_BYTES_MAX {
                break;
            }
        }
        let told: Told = serde_json::from_slice(&body).map_err(|_| {
            let message = "the container's credentials cannot be read: expected a document with AccessKeyId and SecretAccessKey";
            Error::new(ErrorKind::SourceDenied, message).with_hint(HINT)
        })?;
        let credential =
            AwsCredential { key_id: told.key_id, secret_key: told.secret_key, token: told.token };
        Ok(Held {
            credential: Arc::new(credential),
            expires_at: told.expiration.as_deref().and_then(seconds_of),
            ask_at: Instant::now() + KEPT,
        })
    }

    async fn token(&self) -> Result<Option<HeaderValue>> {
        let text = match &self.token {
            Token::Nothing => return Ok(None),
            Token::Text(text) => text.clone(),
            Token::File(path) => {
                let read = tokio::fs::read_to_string(path).await;
                read.map_err(|error| of_token(path, &format!("cannot be read: {error}")))?
            }
        };
        let of_file = |what: &str| match &self.token {
            Token::File(path) => of_token(path, what),
            _ => Error::new(ErrorKind::SourceDenied, format!("the token in {TOKEN} {what}")),
        };
        match text.trim() {
            "" => Err(of_file("is empty")),
            token => {
                let mut value = HeaderValue::from_str(token)
                    .map_err(|_| of_file("cannot be sent: expected printable characters"))?;
                value.set_sensitive(true);
                Ok(Some(value))
            }
        }
    }
}

const HINT: &str = "look at the role of the task, or of the pod's service account, or set AWS_ACCESS_KEY_ID and \
                    AWS_SECRET_ACCESS_KEY";

/// What an agent answers.
#[derive(Deserialize)]
struct Told {
    #[serde(rename = "AccessKeyId")]
    key_id: String,
    #[serde(rename = "SecretAccessKey")]
    secret_key: String,
    #[serde(rename = "Token")]
    token: Option<String>,
    #[serde(rename = "Expiration")]
    expiration: Option<String>,
}

/// Seconds since 1970 of a time as agents write it, `2030-01-31T12:00:00Z`.
fn seconds_of(text: &str) -> Option<u64> {
    const DAYS_TO_1970: u64 = 719_468;
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, between: char| -> Option<[u64; 3]> {
        let numbers = text.split(between).map(|number| number.parse().ok());
        numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
    };
    let [year, month, day] = numbers(day, '-')?;
    let [hour, minute, second] = numbers(time.split('.').next()?, ':')?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years that begin in March end with the leap day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - DAYS_TO_1970) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn of_token(path: &std::path::Path, what: &str) -> Error {
    let message = format!("the token file of the container {} {what}", path.display());
    Error::new(ErrorKind::SourceDenied, message).with_hint(format!("{TOKEN_FILE} names it"))
}

fn refused(status: u16) -> Error {
    let kind = match status {
        408 | 429 | 500..=599 => ErrorKind::SourceTransient,
        _ => ErrorKind::SourceDenied,
    };
    Error::new(kind, format!("the container's credentials were refused: HTTP status {status}"))
        .with_hint(HINT)
}

/// The address, where a token may go there.
fn address(name: &str, value: &str) -> Result<Url> {
    let wrong = |got: &str| {
        let message = format!(
            "{name} cannot be used: expected https://, or http:// with a loopback address or one of {}, got {got}",
            AGENTS.join(", ")
        );
        Error::new(ErrorKind::Usage, message)
    };
    expect_printable(name, value)?;
    let url = Url::parse(value).map_err(|error| wrong(&error.to_string()))?;
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        _ => None,
    };
    let is_near = address.map_or(url.host_str() == Some("localhost"), |address| {
        address.is_loopback() || AGENTS.contains(&address.to_string().as_str())
    });
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_near => Ok(url),
        "http" => Err(wrong("another host")),
        _ => Err(wrong("another scheme")),
    }
}

impl fmt::Debug for ContainerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContainerRole")
    }
}

#[async_trait]
impl CredentialProvider for ContainerRole {
    type Credential = AwsCredential;

    /// Whoever comes while another one asks, waits for what it is told.
    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut last = self.last.lock().await;
        if let Some(held) = last.as_ref().filter(|held| Instant::now() < held.ask_at) {
            return Ok(Arc::clone(&held.credential));
        }
        match self.ask().await {
            Ok(told) => Ok(Arc::clone(&last.insert(told).credential)),
            Err(error) => match last.as_mut().filter(|held| !held.has_expired()) {
                Some(held) => {
                    held.ask_at = Instant::now() + KEPT_BY_FAILURE;
                    Ok(Arc::clone(&held.credential))
                }
                None => Err(object_store::Error::Generic { store: "S3", source: Box::new(error) }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn a_token_goes_by_http_to_this_machine_and_the_agents_alone() {
        for near in [
            "https://store.example/c",
            "http://localhost:1/c",
            "http://127.8.0.1/c",
            "http://[::1]/c",
            "http://169.254.170.2/c",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
        ] {
            address("NAME", near).unwrap();
        }
        for far in [
            "http://169.254.169.254/c",
            "http://store.example/c",
            "http://localhost.example/c",
            "ftp://localhost/c",
            "c",
        ] {
            let error = address("NAME", far).unwrap_err();
            assert!(error.kind() == ErrorKind::Usage && error.message().starts_with("NAME"), "{error}");
        }
    }

    #[test]
    fn nothing_is_asked_where_nothing_is_named() {
        assert!(ContainerRole::of(&Environment::new([])).unwrap().is_none());
        let relative = |path: &str| Environment::new([(RELATIVE.to_owned(), path.to_owned())]);
        let role = ContainerRole::of(&relative("/v2/credentials/x")).unwrap().unwrap();
        assert_eq!(role.url.as_str(), "http://169.254.170.2/v2/credentials/x");
        assert_eq!(ContainerRole::of(&relative("@elsewhere/x")).unwrap_err().kind(), ErrorKind::Usage);
    }

    #[test]
    fn times_are_read_as_agents_write_them() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799)),
            ("2030-01-31T12:00:00.5Z", Some(1_896_091_200)),
            ("2030-01-31 12:00:00Z", None),
            ("2030-13-31T12:00:00Z", None),
            ("2030-01-31T12:00:00+01:00", None),
            ("2030-01-31T18446744073709551615:00:00Z", None),
        ] {
            assert_eq!(seconds_of(text), seconds, "{text}");
        }
    }

    /// An agent that gives out these credentials once, and refuses whoever asks again.
    async fn agent_of(expiration: &str) -> ContainerRole {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/c", listener.local_addr().unwrap());
        let told =
            format!(r#"{{"AccessKeyId":"a","SecretAccessKey":"s","Token":"t","Expiration":"{expiration}"}}"#);
        tokio::spawn(async move {
            let length = told.len();
            let mut answer =
                format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{told}");
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(connection.read_u8().await.unwrap());
                }
                connection.write_all(answer.as_bytes()).await.unwrap();
                answer = "HTTP/1.1 403 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned();
            }
        });
        let environment = Environment::new([(FULL.to_owned(), uri)]);
        ContainerRole::of(&environment).unwrap().unwrap()
    }

    /// The minute is over.
    async fn wait(role: &ContainerRole) {
        role.last.lock().await.as_mut().unwrap().ask_at = Instant::now();
    }

    #[tokio::test]
    async fn credentials_in_hand_serve_until_they_expire_where_the_agent_refuses() {
        let role = agent_of("2099-01-01T00:00:00Z").await;
        let first = role.get_credential().await.unwrap();
        wait(&role).await;
        assert_eq!(role.get_credential().await.unwrap(), first);
        let ask_at = role.last.lock().await.as_ref().unwrap().ask_at;
        assert!(ask_at > Instant::now(), "the agent is not asked for each request");
        let role = agent_of("2020-01-01T00:00:00Z").await;
        role.get_credential().await.unwrap();
        wait(&role).await;
        assert!(role.get_credential().await.unwrap_err().to_string().contains("HTTP status 403"));
    }
}
