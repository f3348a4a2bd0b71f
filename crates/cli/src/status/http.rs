//! One HTTP request per connection: `/status` or `/metrics`.

use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Maximum length of a request.
const LONGEST: usize = 8_192;
/// Maximum number of header fields.
const FIELDS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    Status,
    /// For Prometheus.
    Metrics,
}

/// Response to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Give { page: Page, body: bool },
    Refuse(&'static str, &'static str),
}

const MALFORMED: Verdict = Verdict::Refuse("400 Bad Request", "this is no request of HTTP\n");

/// Reads a request and answers it. Errors of the connection are ignored.
pub async fn answer<S>(mut stream: S, any_host: bool, page: impl Fn(Page) -> String) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = Vec::new();
    let verdict = loop {
        if let Some(verdict) = judge(&request, any_host) {
            break verdict;
        }
        if request.len() >= LONGEST || stream.read_buf(&mut request).await? == 0 {
            break MALFORMED;
        }
    };
    let reply = match verdict {
        Verdict::Give { page: which, body } => {
            let kind = match which {
                Page::Status => "application/json",
                Page::Metrics => "text/plain; version=0.0.4; charset=utf-8",
            };
            let text = page(which);
            reply("200 OK", kind, &text, body)
        }
        Verdict::Refuse(status, text) => reply(status, "text/plain; charset=utf-8", text, true),
    };
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}

fn reply(status: &str, kind: &str, text: &str, body: bool) -> String {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        text.len()
    );
    if body { head + text } else { head }
}

/// The response; none while the request is incomplete.
fn judge(bytes: &[u8], any_host: bool) -> Option<Verdict> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(MALFORMED),
    }
    let (host, path) = split(request.path.unwrap_or_default());
    // The host of the request's target counts, if it names one (RFC 9112, section 3.2.2).
    let field = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"));
    let host = host.map(str::as_bytes).or(field.map(|field| field.value));
    if !any_host && host.is_some_and(|host| !is_plain(host)) {
        // Prevents DNS rebinding: a web page whose name resolves to this host must not read this.
        return Some(Verdict::Refuse("403 Forbidden", "say localhost or an address, not a name\n"));
    }
    let page = match path.split('?').next().unwrap_or_default() {
        "/status" => Page::Status,
        "/metrics" => Page::Metrics,
        _ => return Some(Verdict::Refuse("404 Not Found", "there are /status and /metrics\n")),
    };
    Some(match request.method {
        Some("GET") => Verdict::Give { page, body: true },
        Some("HEAD") => Verdict::Give { page, body: false },
        _ => Verdict::Refuse("405 Method Not Allowed\r\nAllow: GET, HEAD", "this can only be read\n"),
    })
}

/// The host and the rest of a target in absolute form, which proxies get; in origin form it has no host.
fn split(target: &str) -> (Option<&str>, &str) {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let Some(rest) = scheme.and_then(|scheme| target.get(scheme.len()..)) else { return (None, target) };
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    (Some(host), path)
}

/// Whether a Host is an address or `localhost`, which no DNS server can redirect.
fn is_plain(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Verdict> {
        judge(text.as_bytes(), false)
    }

    fn status_of(text: &str) -> &'static str {
        match of(text) {
            Some(Verdict::Refuse(status, _)) => status,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_two_pages_can_be_read_and_a_request_is_waited_for_to_its_end() {
        let give = |page, body| Some(Verdict::Give { page, body });
        assert_eq!(of("GET /status HTTP/1.1\r\nHost: 127.0.0.1:9100\r\n\r\n"), give(Page::Status, true));
        assert_eq!(of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), give(Page::Metrics, true));
        assert_eq!(of("HEAD /metrics HTTP/1.1\r\nHost: [::1]:9100\r\n\r\n"), give(Page::Metrics, false));
        assert_eq!(of("GET /status HTTP/1.1\r\nHost: local"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn other_pages_methods_and_what_is_no_http_are_refused() {
        assert!(status_of("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("404"));
        assert!(status_of("POST /status HTTP/1.1\r\n\r\n").starts_with("405"));
        assert!(status_of("\x16\x03\x01\r\n\r\n").starts_with("400"));
    }

    #[test]
    fn a_target_in_absolute_form_names_the_page_and_the_host() {
        let give = |page| Some(Verdict::Give { page, body: true });
        assert_eq!(of("GET http://127.0.0.1:9410/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), give(Page::Metrics));
        assert_eq!(of("GET HTTP://localhost/status?x=1 HTTP/1.1\r\n\r\n"), give(Page::Status));
        // The field does not count then.
        assert_eq!(of("GET http://[::1]/status HTTP/1.1\r\nHost: evil.example\r\n\r\n"), give(Page::Status));
        assert!(status_of("GET http://evil.example/status HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("403"));
        assert!(status_of("GET http:///status HTTP/1.1\r\n\r\n").starts_with("403"));
        assert!(status_of("GET http://localhost HTTP/1.1\r\n\r\n").starts_with("404"));
        assert!(status_of("GET https://localhost/status HTTP/1.1\r\n\r\n").starts_with("404"));
    }

    #[test]
    fn a_page_of_the_web_cannot_read_it_by_a_name_of_its_own() {
        for host in ["evil.example", "evil.example:9100", "127.0.0.1.evil.example", "localhost.evil.example", ""] {
            let request = format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert!(status_of(&request).starts_with("403"), "{host}");
            assert!(matches!(judge(request.as_bytes(), true), Some(Verdict::Give { .. })), "{host}");
        }
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]", "[fe80::1]:9100"] {
            let request = format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert!(matches!(of(&request), Some(Verdict::Give { .. })), "{host}");
        }
    }
}
