//! Whether what listens at an address speaks PostgreSQL's protocol at all. Asked where its answer to a start
//! was no message of that: trying again helps against a server that was cut off in the middle of one, and
//! against no web server.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// SSLRequest: its length, and the number that stands for it. (PostgreSQL documentation, "Message Formats".)
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// Whoever says nothing is taken for a PostgreSQL server: nothing is known of it.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// It answers SSLRequest as no PostgreSQL server does: with other than one byte, `S` or `N`, or the message
/// of an error.
pub(super) async fn is_of_another_protocol(address: Option<IpAddr>, port: u16) -> bool {
    let Some(address) = address else { return false };
    let asking = async {
        let mut stream = TcpStream::connect(SocketAddr::new(address, port)).await?;
        stream.write_all(&SSL_REQUEST).await?;
        let mut answer = [0; 2];
        let bytes = stream.read(&mut answer).await?;
        Ok::<_, std::io::Error>(is_foreign(&answer[..bytes]))
    };
    timeout(ANSWER_WITHIN, asking).await.is_ok_and(|answered| answered.unwrap_or(false))
}

fn is_foreign(answer: &[u8]) -> bool {
    !matches!(answer, [] | [b'S' | b'N'] | [b'E', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_or_an_error_is_an_answer() {
        for answer in [&b""[..], b"S", b"N", b"E\0"] {
            assert!(!is_foreign(answer), "{answer:?}");
        }
        for answer in [&b"HT"[..], b"SS", b"J\0", b"\xff"] {
            assert!(is_foreign(answer), "{answer:?}");
        }
    }
}
