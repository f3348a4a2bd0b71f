//! HTTP CONNECT (RFC 9110, section 9.3.6) with Basic authentication (RFC 7617).

use super::step::{Refusal, Step};
use crate::credentials::Credentials;
use bytes::{Buf as _, Bytes, BytesMut};

/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// Most header fields.
const MOST_FIELDS: usize = 64;

/// What is said to a client that is connected (RFC 9110, section 9.3.6: no length, no body).
pub(super) fn accepted() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 200 Connection established\r\n\r\n")
}

/// What is said to a client that is not: status, further fields, and a sentence for people.
pub(super) fn answer(status: &str, fields: &str, sentence: &str) -> Bytes {
    let length = sentence.len() + 1;
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Type: text/plain\r\nContent-Length: {length}\r\n");
    Bytes::from(format!("{head}Connection: close\r\n\r\n{sentence}\n"))
}

fn malformed(status: &str, sentence: &str) -> Step {
    Step::Refuse(answer(status, "", sentence), Refusal::Malformed)
}

/// The next step; takes the request from `buffer` when it is whole.
pub(super) fn poll(buffer: &mut BytesMut, credentials: Option<&Credentials>) -> Step {
    let (step, length) = head(buffer, credentials);
    buffer.advance(length);
    step
}

/// What follows from the head of the request, and its length if it is to be taken.
fn head(buffer: &[u8], credentials: Option<&Credentials>) -> (Step, usize) {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let visible = buffer.get(..LONGEST_HEAD).unwrap_or(buffer);
    let length = match request.parse(visible) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if buffer.len() < LONGEST_HEAD => return (Step::Read, 0),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let sentence = "The head of the request is longer than 16 kB or has more than 64 fields.";
            return (malformed("431 Request Header Fields Too Large", sentence), 0);
        }
        Err(_) => return (malformed("400 Bad Request", "This is not HTTP."), 0),
    };
    if let Some(credentials) = credentials {
        let shown = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("proxy-authorization"));
        if !shown.is_some_and(|field| credentials.authorize(field.value)) {
            let challenge = "Proxy-Authenticate: Basic realm=\"anabranch\"\r\n";
            let status = "407 Proxy Authentication Required";
            let bytes = answer(status, challenge, "This proxy wants a name and a password.");
            return (Step::Refuse(bytes, Refusal::Unauthorized), 0);
        }
    }
    if request.method != Some("CONNECT") {
        let sentence = "This proxy knows CONNECT only: use it as a SOCKS5 proxy, or tunnel (curl --proxytunnel).";
        return (
            Step::Refuse(answer("405 Method Not Allowed", "Allow: CONNECT\r\n", sentence), Refusal::Unsupported),
            0,
        );
    }
    match request.path.unwrap_or_default().parse() {
        Ok(target) => (Step::Connect(target), length),
        Err(_) => (malformed("400 Bad Request", "CONNECT wants HOST:PORT."), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::converse;
    use super::*;
    use crate::failure::Failure;

    /// The status line's code.
    fn status(step: &Step) -> String {
        match step {
            Step::Refuse(bytes, _) => String::from_utf8_lossy(bytes.get(9..12).unwrap_or_default()).into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_tunnel_is_asked_for_in_one_piece_or_byte_by_byte() {
        let text = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Connection: Keep-Alive\r\n\r\n";
        for whole in [true, false] {
            let (negotiation, step, written) = converse(text, whole, None);
            assert_eq!(step, Step::Connect("example.org:443".parse().expect("a target")));
            assert!(written.is_empty());
            assert!(negotiation.accepted().starts_with(b"HTTP/1.1 200 "));
            assert!(negotiation.refused(Failure::TimedOut).starts_with(b"HTTP/1.1 504 "));
            assert!(negotiation.refused(Failure::Refused).starts_with(b"HTTP/1.1 502 "));
            assert!(negotiation.refused(Failure::NotAllowed).starts_with(b"HTTP/1.1 403 "));
        }
    }

    #[test]
    fn what_follows_the_head_is_kept() {
        let (negotiation, step, _) = converse(b"CONNECT [::1]:22 HTTP/1.0\r\n\r\nSSH-2.0", true, None);
        assert_eq!(step, Step::Connect("[::1]:22".parse().expect("a target")));
        assert_eq!(&negotiation.into_early()[..], b"SSH-2.0");
    }

    #[test]
    fn other_methods_and_nonsense_are_told_what_is_wrong() {
        for (text, code) in [
            ("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", "405"),
            ("CONNECT example.org HTTP/1.1\r\n\r\n", "400"),
            ("CONNECT http://example.org:80/ HTTP/1.1\r\n\r\n", "400"),
            ("CONNECT example.org:80 HTTP/7.0\r\n\r\n", "400"),
            ("CONNECT example.org:80 HTTP/1.1\r\nno colon\r\n\r\n", "400"),
            ("CONNECT\0", "400"),
        ] {
            assert_eq!(status(&converse(text.as_bytes(), false, None).1), code, "{text}");
        }
    }

    #[test]
    fn a_head_has_a_limit_in_bytes_and_in_fields() {
        let long = format!("CONNECT a:1 HTTP/1.1\r\nX: {}", "x".repeat(LONGEST_HEAD));
        assert_eq!(status(&converse(long.as_bytes(), true, None).1), "431");
        let many = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_FIELDS + 1));
        assert_eq!(status(&converse(many.as_bytes(), true, None).1), "431");
        let enough = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_FIELDS));
        assert!(matches!(converse(enough.as_bytes(), true, None).1, Step::Connect(_)));
    }

    #[test]
    fn name_and_password_are_asked_for_and_checked() {
        let credentials = || Some(Credentials::new("Aladdin", "open sesame").expect("short"));
        let without = b"CONNECT a:1 HTTP/1.1\r\n\r\n";
        let (_, step, _) = converse(without, false, credentials());
        assert_eq!(status(&step), "407");
        let with = b"CONNECT a:1 HTTP/1.1\r\nproxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
        assert!(matches!(converse(with, false, credentials()).1, Step::Connect(_)));
    }
}
