//! HTTP: CONNECT (RFC 9110, section 9.3.6), and requests for `http://` that are passed on (RFC 9112, section 3.2.2), with Basic
//! authentication (RFC 7617).
//!
//! A request that is passed on is the only one of its connection: the server is asked to close after its response, so that the
//! response need not be parsed here, and the next request may be for another server.

use super::step::{Refusal, Step};
use crate::credentials::Credentials;
use crate::target::Target;
use bytes::{Buf as _, Bytes, BytesMut};

/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// Most header fields.
const MOST_FIELDS: usize = 64;

/// The response to a client that is connected (RFC 9110, section 9.3.6: no length, no body).
pub(super) fn accepted() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 200 Connection established\r\n\r\n")
}

/// The response to a client that is not: status, further fields, and a sentence for people.
pub(super) fn answer(status: &str, fields: &str, sentence: &str) -> Bytes {
    let length = sentence.len() + 1;
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Type: text/plain\r\nContent-Length: {length}\r\n");
    Bytes::from(format!("{head}Connection: close\r\n\r\n{sentence}\n"))
}

fn malformed(status: &str, sentence: &str) -> Step {
    Step::Refuse(answer(status, "", sentence), Refusal::Malformed)
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A tunnel.
    Tunnel,
    /// To be passed on; it has been rewritten for its server.
    PassedOn,
}

/// The next step; takes the request from `buffer` when it is whole, or puts one for the server in its place.
pub(super) fn poll(buffer: &mut BytesMut, credentials: Option<&Credentials>) -> (Step, Form) {
    let (step, length, rewritten) = head(buffer, credentials);
    let form = if rewritten.is_some() { Form::PassedOn } else { Form::Tunnel };
    buffer.advance(length);
    if let Some(mut request) = rewritten {
        request.extend_from_slice(buffer);
        *buffer = BytesMut::from(&request[..]);
    }
    (step, form)
}

/// What follows from the head of the request, its length if it is consumed, and the request for the server in its place.
fn head(buffer: &[u8], credentials: Option<&Credentials>) -> (Step, usize, Option<Vec<u8>>) {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let visible = buffer.get(..LONGEST_HEAD).unwrap_or(buffer);
    let length = match request.parse(visible) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if buffer.len() < LONGEST_HEAD => return (Step::Read, 0, None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let sentence = "The head of the request is longer than 16 kB or has more than 64 fields.";
            return (malformed("431 Request Header Fields Too Large", sentence), 0, None);
        }
        Err(_) => return (malformed("400 Bad Request", "This is not HTTP."), 0, None),
    };
    if let Some(credentials) = credentials {
        let shown = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("proxy-authorization"));
        if !shown.is_some_and(|field| credentials.authorize(field.value)) {
            let challenge = "Proxy-Authenticate: Basic realm=\"anabranch\"\r\n";
            let status = "407 Proxy Authentication Required";
            let bytes = answer(status, challenge, "This proxy wants a name and a password.");
            return (Step::Refuse(bytes, Refusal::Unauthorized), 0, None);
        }
    }
    let target = request.path.unwrap_or_default();
    if request.method != Some("CONNECT") {
        return match split(target) {
            Some((target, rest)) => (Step::Connect(target.clone()), length, Some(rewrite(&request, &target, rest))),
            None => {
                let sentence = match target.get(..7) {
                    Some(scheme) if scheme.eq_ignore_ascii_case("http://") => {
                        "What follows http:// is not HOST[:PORT], without a name and password."
                    }
                    _ => "This proxy passes on requests for http://, and knows CONNECT for all else.",
                };
                let bytes = answer("400 Bad Request", "", sentence);
                (Step::Refuse(bytes, Refusal::Unsupported), 0, None)
            }
        };
    }
    match target.parse() {
        Ok(target) => (Step::Connect(target), length, None),
        Err(_) => (malformed("400 Bad Request", "CONNECT wants HOST:PORT."), 0, None),
    }
}

/// The server that `http://HOST[:PORT][/...]` names, and what it is to be asked for.
fn split(target: &str) -> Option<(Target, &str)> {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
    let rest = target.get(scheme.len()..)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let has_port = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let server = if has_port { authority.parse() } else { format!("{authority}:80").parse() };
    Some((server.ok()?, path))
}

/// The request as its server reads it: in origin form, without what concerns this connection alone (RFC 9110, section 7.6.1).
fn rewrite(request: &httparse::Request<'_, '_>, server: &Target, path: &str) -> Vec<u8> {
    const OURS: [&str; 7] =
        ["connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade", "host"];
    let options = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"));
    let named: Vec<String> = options
        .filter_map(|field| core::str::from_utf8(field.value).ok())
        .flat_map(|value| value.split(',').map(|option| option.trim().to_ascii_lowercase()))
        .collect();
    let host = server.to_string();
    let host = host.strip_suffix(":80").unwrap_or(&host);
    let slash = if path.starts_with('/') { "" } else { "/" };
    let (method, version) = (request.method.unwrap_or_default(), request.version.unwrap_or(1));
    let mut head = format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {host}\r\n").into_bytes();
    for field in request.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        if !OURS.contains(&&*name) && !named.contains(&name) {
            head.extend_from_slice(field.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
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
    fn empty_lines_before_a_request_do_not_count() {
        for whole in [true, false] {
            let (_, step, _) = converse(b"\r\n\nCONNECT example.org:443 HTTP/1.1\r\n\r\n", whole, None);
            assert_eq!(step, Step::Connect("example.org:443".parse().expect("a target")));
        }
        let endless = b"\r\n".repeat(LONGEST_HEAD);
        assert_eq!(status(&converse(&endless, true, None).1), "431");
    }

    #[test]
    fn what_follows_the_head_is_kept() {
        let (negotiation, step, _) = converse(b"CONNECT [::1]:22 HTTP/1.0\r\n\r\nSSH-2.0", true, None);
        assert_eq!(step, Step::Connect("[::1]:22".parse().expect("a target")));
        assert_eq!(&negotiation.into_early()[..], b"SSH-2.0");
    }

    #[test]
    fn a_request_for_http_is_passed_on_to_its_server_in_origin_form_and_is_the_last_of_its_connection() {
        let text = b"POST http://Example.org/a?b HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\nX-Hop: 1\r\n\
            Connection: keep-alive, X-Hop\r\nContent-Length: 4\r\n\r\nbody";
        let (negotiation, step, written) = converse(text, true, None);
        assert_eq!(step, Step::Connect("example.org:80".parse().expect("a target")));
        // The answer comes from the server.
        assert!(written.is_empty() && negotiation.accepted().is_empty());
        assert!(negotiation.refused(Failure::TimedOut).starts_with(b"HTTP/1.1 504 "));
        let rewritten = "POST /a?b HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        assert_eq!(String::from_utf8_lossy(&negotiation.into_early()), rewritten);
        for (target, server, first) in [
            ("http://[2001:db8::1]:8080", "[2001:db8::1]:8080", "GET / HTTP/1.0\r\nHost: [2001:db8::1]:8080\r\n"),
            ("HTTP://[::1]/x", "[::1]:80", "GET /x HTTP/1.0\r\nHost: [::1]\r\n"),
            ("http://a:81?q", "a:81", "GET /?q HTTP/1.0\r\nHost: a:81\r\n"),
        ] {
            let text = format!("GET {target} HTTP/1.0\r\n\r\n");
            let (negotiation, step, _) = converse(text.as_bytes(), false, None);
            assert_eq!(step, Step::Connect(server.parse().expect("a target")));
            let early = negotiation.into_early();
            assert!(early.starts_with(first.as_bytes()), "{}", String::from_utf8_lossy(&early));
        }
    }

    #[test]
    fn other_methods_and_nonsense_are_told_what_is_wrong() {
        for (text, code) in [
            ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "400"),
            ("GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", "400"),
            ("GET http://user@example.org/ HTTP/1.1\r\n\r\n", "400"),
            ("GET http:///x HTTP/1.1\r\n\r\n", "400"),
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
    fn a_name_and_password_in_an_address_are_refused_with_the_reason() {
        // RFC 9110, section 4.2.4: they are to be treated as an error.
        let said = |target: &str| {
            let step = converse(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes(), true, None).1;
            let Step::Refuse(bytes, Refusal::Unsupported) = step else { panic!("{step:?}") };
            String::from_utf8_lossy(&bytes).into_owned()
        };
        assert!(
            said("http://user:secret@example.org/").ends_with("is not HOST[:PORT], without a name and password.\n")
        );
        assert!(said("https://example.org/").ends_with("knows CONNECT for all else.\n"));
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
