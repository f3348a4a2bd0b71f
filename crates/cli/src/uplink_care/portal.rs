//! Detects a captive portal on an uplink: a known page is requested and its answer compared.

use crate::uplink_names::addresses;
use anabranch_proxy::Target;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::timeout;

/// Timeout of the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum bytes read of the answer.
const LONGEST: u64 = 16_384;

/// The port of HTTP.
const PORT: u16 = 80;

/// A page with a known answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    target: Target,
    /// As in the URL, for the Host field.
    host: String,
    path: String,
}

impl FromStr for Page {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{text}' is not possible: {why}, as in http://example.org/generate_204");
        let rest = text.strip_prefix("http://").ok_or_else(|| wrong("it begins with http://"))?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if path.chars().any(|c| c.is_ascii_control() || c == ' ' || c == '#') {
            return Err(wrong("a path has no spaces"));
        }
        let with_port = if host.parse::<Target>().is_ok() { host.to_owned() } else { format!("{host}:{PORT}") };
        let target = with_port.parse().map_err(|error| wrong(&format!("{error}")))?;
        Ok(Self { target, host: host.to_owned(), path: path.to_owned() })
    }
}

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The expected answer.
    Open,
    /// Another answer.
    Portal,
    /// No answer.
    Silent,
}

/// Requests the page over an interface. The expected answer has a body that starts with `expected`, or else status 204.
pub async fn look(page: &Page, expected: Option<&str>, interface: &str) -> Verdict {
    let answered = timeout(PATIENCE, ask(page, interface)).await;
    match answered {
        Ok(Ok(answer)) if answer.is_empty() => Verdict::Silent,
        Ok(Ok(answer)) => judge(&answer, expected),
        _ => Verdict::Silent,
    }
}

async fn ask(page: &Page, interface: &str) -> io::Result<Vec<u8>> {
    let found = addresses(&page.target, &[interface.to_owned()]).await;
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for address in found {
        outcome = ask_at(page, interface, address).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

async fn ask_at(page: &Page, interface: &str, address: SocketAddr) -> io::Result<Vec<u8>> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_nonblocking(true)?;
    let mut stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    let Page { host, path, .. } = page;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // A reset after the answer does not matter.
    let read = (&mut stream).take(LONGEST).read_to_end(&mut answer).await;
    if answer.is_empty() { read.map(|_| answer) } else { Ok(answer) }
}

/// Compares an answer with the expected one.
fn judge(answer: &[u8], expected: Option<&str>) -> Verdict {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = head.parse(answer) else { return Verdict::Portal };
    let body = answer.get(length..).unwrap_or_default();
    let is_known = match expected {
        None => head.code == Some(204),
        Some(text) => head.code == Some(200) && body.starts_with(text.as_bytes()),
    };
    if is_known { Verdict::Open } else { Verdict::Portal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_answer_is_told_from_a_portals() {
        let nothing = b"HTTP/1.1 204 No Content\r\n\r\n";
        let success = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsuccess\n";
        let login = b"HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n";
        assert_eq!(judge(nothing, None), Verdict::Open);
        assert_eq!(judge(success, None), Verdict::Portal);
        assert_eq!(judge(login, None), Verdict::Portal);
        assert_eq!(judge(success, Some("success")), Verdict::Open);
        assert_eq!(judge(nothing, Some("success")), Verdict::Portal);
        assert_eq!(judge(b"SSH-2.0-portal\r\n", None), Verdict::Portal);
    }

    #[test]
    fn a_page_has_a_host_perhaps_a_port_and_a_path() {
        let page: Page = "http://probe.example/generate_204".parse().expect("a page");
        assert_eq!((page.target.to_string().as_str(), page.path.as_str()), ("probe.example:80", "/generate_204"));
        let page: Page = "http://[2001:db8::1]:8080".parse().expect("a page");
        assert_eq!((page.target.to_string().as_str(), page.path.as_str()), ("[2001:db8::1]:8080", "/"));
        for wrong in ["https://probe.example/", "probe.example", "http://", "http://a b/", "http://a/ x"] {
            assert!(wrong.parse::<Page>().is_err(), "{wrong}");
        }
    }
}
