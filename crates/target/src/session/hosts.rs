//! The hosts of a connection description: `host`, `hostaddr` and `port` lists paired as libpq pairs them,
//! with the default unix socket directory where no host is named. Lists of unequal length are refused.

use super::conninfo::value;
use super::words::{ENCODE_HINT, Words};
use howdah_model::{Error, ErrorKind, Result};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Where packages of most systems put the socket, and only root and the server may.
const PACKAGED_DIRECTORY: &str = "/var/run/postgresql";
/// PostgreSQL's own default, where anybody may put one.
const OPEN_DIRECTORY: &str = "/tmp";

/// More than this is a mistake in a list, not a cluster.
const HOSTS_MAX: usize = 1000;

/// Where one server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The directory of a unix socket.
    Unix(PathBuf),
    /// A name to look up, also the name a certificate must bear.
    Name(String),
    /// A numeric address, with the name a certificate must bear if one was given.
    Ip { ip: IpAddr, name: Option<String> },
}

/// One server to try.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) address: Address,
    pub(super) port: u16,
    pub(super) password: Option<String>,
    /// Nobody has named this directory, and anybody may listen there: the server has to be looked at before
    /// it is told anything.
    pub(super) is_guessed: bool,
}

impl Host {
    /// A unix socket or a loopback address.
    pub(super) fn is_local(&self) -> bool {
        match &self.address {
            Address::Unix(_) => true,
            Address::Name(name) => {
                name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
            Address::Ip { ip, .. } => ip.is_loopback(),
        }
    }

    /// An address of which it is not told what the certificate behind it has to say.
    pub(super) fn lacks_name(&self) -> bool {
        matches!(self.address, Address::Ip { name: None, .. })
    }

    /// A unix socket, on which TLS is never used.
    pub(super) fn is_unix(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    /// What the first field of a password file is compared with.
    pub(super) fn password_file_name(&self) -> String {
        match &self.address {
            Address::Unix(directory) if is_default_directory(directory) => "localhost".to_owned(),
            Address::Unix(directory) => directory.display().to_string(),
            Address::Name(name) | Address::Ip { name: Some(name), .. } => name.clone(),
            Address::Ip { ip, name: None } => ip.to_string(),
        }
    }

    /// As a URI has it: a socket's directory percent-encoded.
    pub(super) fn in_uri(&self) -> String {
        match &self.address {
            Address::Unix(directory) => {
                format!("{}:{}", directory.display().to_string().replace('/', "%2F"), self.port)
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Host {
    /// `host:port`, or the path of the socket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(directory) => {
                return write!(f, "{}", directory.join(format!(".s.PGSQL.{}", self.port)).display());
            }
            Address::Name(name) | Address::Ip { name: Some(name), .. } if name.contains(':') => {
                write!(f, "[{name}]")?;
            }
            Address::Name(name) | Address::Ip { name: Some(name), .. } => f.write_str(name)?,
            Address::Ip { ip: IpAddr::V6(ip), .. } => write!(f, "[{ip}]")?,
            Address::Ip { ip, .. } => write!(f, "{ip}")?,
        }
        write!(f, ":{}", self.port)
    }
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// Pairs the three lists.
pub(super) fn resolve(words: &Words) -> Result<Vec<Host>> {
    let list = |name| value(words, name).map(|text| text.split(',').map(str::trim).collect::<Vec<_>>());
    let names: Option<Vec<&str>> = list("host");
    let addresses: Option<Vec<&str>> = list("hostaddr");
    if let (Some(names), Some(addresses)) = (&names, &addresses)
        && names.len() != addresses.len()
    {
        let (names, addresses) = (names.len(), addresses.len());
        return Err(usage(format!("could not match {names} host names to {addresses} hostaddr values")));
    }
    let count = names.as_ref().or(addresses.as_ref()).map_or(1, Vec::len);
    let ports = list("port").unwrap_or_default();
    if ports.len() > 1 && ports.len() != count {
        return Err(usage(format!("could not match {} port numbers to {count} hosts", ports.len())));
    }
    if count > HOSTS_MAX {
        return Err(usage(format!("{count} hosts are named, at most {HOSTS_MAX} are allowed")));
    }
    let nth = |list: &Option<Vec<&str>>, index: usize| -> String {
        list.as_ref().and_then(|list| list.get(index)).copied().unwrap_or_default().to_owned()
    };
    (0..count)
        .map(|index| {
            let port = parse_port(ports.get(index).or(ports.first()).copied().unwrap_or_default())
                .ok_or_else(|| bad_port(index, ports.len()))?;
            let (name, address) = (nth(&names, index), nth(&addresses, index));
            if name.is_empty() && address.is_empty() {
                return Ok(default_host(port));
            }
            let address = parse_address(&name, &address)?;
            Ok(Host { address, port, password: None, is_guessed: false })
        })
        .collect()
}

fn parse_port(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(5432);
    }
    text.parse().ok().filter(|port| *port != 0)
}

/// Never the text itself: in a URI whose password holds a `/` it is the password's beginning.
fn bad_port(index: usize, count: usize) -> Error {
    let which = if count > 1 { format!(" {} of {count}", index + 1) } else { String::new() };
    usage(format!("the port{which} is no number from 1 to 65535"))
        .with_hint(format!("check port and PGPORT; {ENCODE_HINT}"))
}

fn parse_address(name: &str, address: &str) -> Result<Address> {
    if !address.is_empty() {
        let ip = address
            .parse()
            .map_err(|_| usage(format!("could not parse network address \"{address}\" of hostaddr")))?;
        let name = Some(name).filter(|name| !name.is_empty() && !name.starts_with('/'));
        return Ok(Address::Ip { ip, name: name.map(str::to_owned) });
    }
    match name {
        _ if name.starts_with('/') => Ok(Address::Unix(PathBuf::from(name))),
        _ if name.starts_with('@') => {
            Err(usage("unix sockets in the abstract namespace (@...) are not supported".to_owned()))
        }
        _ => Ok(Address::Name(name.to_owned())),
    }
}

/// The server of this port on this machine. Any libpq looks into one of the two directories, as it was built.
fn default_host(port: u16) -> Host {
    let has_socket = |directory: &str| Path::new(directory).join(format!(".s.PGSQL.{port}")).exists();
    let is_guessed = !has_socket(PACKAGED_DIRECTORY) && has_socket(OPEN_DIRECTORY);
    let directory = if is_guessed { OPEN_DIRECTORY } else { PACKAGED_DIRECTORY };
    Host { address: Address::Unix(directory.into()), port, password: None, is_guessed }
}

fn is_default_directory(directory: &Path) -> bool {
    [PACKAGED_DIRECTORY, OPEN_DIRECTORY].iter().any(|default| Path::new(default) == directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::words;

    fn hosts(text: &str) -> Vec<String> {
        resolve(&words::parse(text).unwrap()).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_addresses_and_ports_pair_by_position() {
        assert_eq!(hosts("host=a,b port=1,2"), ["a:1", "b:2"]);
        assert_eq!(hosts("host=a,b port=7"), ["a:7", "b:7"]);
        assert_eq!(hosts("host=a,b port=,2"), ["a:5432", "b:2"]);
        assert_eq!(hosts("hostaddr=::1,127.0.0.1"), ["[::1]:5432", "127.0.0.1:5432"]);
    }

    #[test]
    fn a_socket_is_its_path_in_messages_and_encoded_in_uris() {
        let socket = resolve(&words::parse("host=/run/x port=1").unwrap()).unwrap().remove(0);
        assert_eq!(socket.to_string(), "/run/x/.s.PGSQL.1");
        assert_eq!(socket.in_uri(), "%2Frun%2Fx:1");
    }

    #[test]
    fn lists_that_do_not_pair_are_refused() {
        for text in
            ["host=a,b hostaddr=::1", "host=a,b port=1,2,3", "port=0", "port=x", "hostaddr=name", "host=@x"]
        {
            assert!(resolve(&words::parse(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn only_sockets_and_loopback_are_local() {
        for (text, local) in [
            ("host=/x", true),
            ("host=localhost", true),
            ("hostaddr=127.0.0.5", true),
            ("host=db", false),
            ("host=::1", true),
        ] {
            let hosts = resolve(&words::parse(text).unwrap()).unwrap();
            assert_eq!(hosts[0].is_local(), local, "{text}");
        }
    }
}
