//! Who listens at a unix socket: whom `requirepeer` names, or, where nobody has named the socket, one to be
//! believed. In `/tmp` any user of the machine may listen, and would be given the password: so only who could
//! take it anyway is believed. It is the process at the other end that is asked, once it is connected, not
//! the file.

use super::hosts::Host;
use crate::embedded::user_id;
use howdah_model::{Error, ErrorKind, Result};
use tokio::net::UnixStream;

/// The user that packages run servers as.
const SERVER_USER: &str = "postgres";

/// # Errors
/// `ConnectionRefused` for a server that neither root, nor the user `postgres`, nor the user of this process
/// runs.
pub(super) async fn check(stream: &UnixStream, host: &Host) -> Result<()> {
    let refused = |why: String| {
        Error::new(ErrorKind::ConnectionRefused, format!("connection to {host} refused: {why}"))
            .with_hint("if that is the right server, name its directory by host=/tmp or PGHOST=/tmp")
    };
    let peer =
        stream.peer_cred().map_err(|error| refused(format!("who listens there cannot be told: {error}")))?;
    let ours = rustix::process::geteuid().as_raw();
    if is_believed(peer.uid(), ours, None) {
        return Ok(());
    }
    let server = tokio::task::spawn_blocking(|| user_id(SERVER_USER)).await.ok().flatten();
    match is_believed(peer.uid(), ours, server) {
        true => Ok(()),
        false => Err(refused(format!(
            "no host is named, and the server there is run by the user with id {}, expected {SERVER_USER}, root or the caller",
            peer.uid()
        ))),
    }
}

/// `requirepeer`, as in libpq.
///
/// # Errors
/// `ConnectionRefused` for a server that another user runs.
pub(super) async fn require(stream: &UnixStream, host: &Host, user: &str) -> Result<()> {
    let refused = |why: String| {
        Error::new(ErrorKind::ConnectionRefused, format!("connection to {host} refused: {why}"))
    };
    let peer =
        stream.peer_cred().map_err(|error| refused(format!("who listens there cannot be told: {error}")))?;
    // A name that looks like an option would be one.
    let name = Some(user.to_owned()).filter(|name| !name.starts_with('-'));
    let wanted =
        tokio::task::spawn_blocking(move || name.and_then(|name| user_id(&name))).await.ok().flatten();
    let why = match wanted {
        Some(wanted) if wanted == peer.uid() => return Ok(()),
        Some(_) => format!(
            "the server there is run by the user with id {}, expected {user}, as requirepeer says",
            peer.uid()
        ),
        None => format!("requirepeer names {user}, and no user of that name is known here"),
    };
    Err(refused(why).with_hint("check requirepeer (or PGREQUIREPEER), and who has made the socket"))
}

fn is_believed(peer: u32, ours: u32, server: Option<u32>) -> bool {
    peer == 0 || peer == ours || Some(peer) == server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_the_server_s_user_and_ourselves_are_believed_and_nobody_else() {
        for (peer, believed) in [(0, true), (1000, true), (101, true), (1001, false)] {
            assert_eq!(is_believed(peer, 1000, Some(101)), believed, "{peer}");
        }
        assert!(!is_believed(101, 1000, None));
    }
}
