//! A server of the page on the loopback, for one browser: HTTP/1.1, a request per connection.
//!
//! Its address contains a random token, so that other users of the host do not find it, and it answers to its own name
//! only, so that a page of somebody else cannot read it by a name that leads here.

use super::files::{Files, media_type};
use anabranch_settings::diagnostic::Diagnostic;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once, the longest head of a request, and the time that one may take.
const MOST: usize = 32;
const LONGEST: usize = 8_192;
const PATIENCE: Duration = Duration::from_secs(10);

/// The page needs nothing of others.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; connect-src 'self' data:; worker-src 'self' blob:; object-src 'none'; \
                      base-uri 'none'; frame-ancestors 'none'";

pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
}

struct Site {
    files: Files,
    address: SocketAddr,
    /// The beginning of all paths: `/TOKEN/`.
    root: String,
}

impl Server {
    /// # Errors
    /// The port is taken.
    pub async fn open(files: Files, port: u16) -> Result<Self, Diagnostic> {
        let cannot = |error: std::io::Error| {
            Diagnostic::option("--port", format!("cannot listen on port {port} of the loopback: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let mut token = [0; 16];
        getrandom::fill(&mut token)
            .map_err(|error| Diagnostic::plain(format!("cannot draw a random number: {error}")))?;
        let root = format!("/{:032x}/", u128::from_ne_bytes(token));
        Ok(Self { listener, site: Arc::new(Site { files, address, root }) })
    }

    /// The page's address.
    pub fn address(&self) -> String {
        format!("http://{}{}", self.site.address, self.site.root)
    }

    /// Answers requests; does not end.
    pub async fn serve(&self) {
        let slots = Arc::new(Semaphore::new(MOST));
        // The semaphore is never closed.
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let site = Arc::clone(&self.site);
                    tokio::spawn(async move {
                        // A browser that goes away, or is slow, is no concern of the others.
                        let _ = tokio::time::timeout(PATIENCE, site.answer(stream)).await;
                        drop(slot);
                    });
                }
                // Out of descriptors: connections that end free some.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Site {
    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let answer = loop {
            let mut part = [0; 2_048];
            let length = stream.read(&mut part).await?;
            head.extend_from_slice(part.get(..length).unwrap_or_default());
            match self.answer_to(&head) {
                Some(answer) => break answer,
                None if length == 0 => return Ok(()),
                None if head.len() > LONGEST => break refusal("431 Request Header Fields Too Large"),
                None => {}
            }
        };
        stream.write_all(&answer).await?;
        stream.shutdown().await
    }

    /// The answer to a request with this head; none while it is not complete.
    fn answer_to(&self, head: &[u8]) -> Option<Vec<u8>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return None,
            Err(_) => return Some(refusal("400 Bad Request")),
        }
        let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
        let port = self.address.port();
        let names = [self.address.to_string(), format!("localhost:{port}")];
        if !host.is_some_and(|host| names.iter().any(|name| name.as_bytes() == host.value)) {
            return Some(refusal("421 Misdirected Request"));
        }
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        if !matches!(method, "GET" | "HEAD") {
            return Some(refusal("405 Method Not Allowed"));
        }
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let found = path.strip_prefix(&self.root).and_then(|path| Some((path, self.files.read(path)?)));
        let Some((path, contents)) = found else { return Some(refusal("404 Not Found")) };
        let mut answer = headed("200 OK", media_type(path), contents.len());
        if method == "GET" {
            answer.extend_from_slice(&contents);
        }
        Some(answer)
    }
}

fn headed(status: &str, kind: &str, length: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: {POLICY}\r\n\r\n"
    )
    .into_bytes()
}

fn refusal(status: &str) -> Vec<u8> {
    let mut answer = headed(status, "text/plain", status.len());
    answer.extend_from_slice(status.as_bytes());
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site with a page in a folder that is removed afterwards, and the status of its answer to a request.
    fn statuses(requests: &[&str]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("anabranch-play-{}-{}", std::process::id(), requests.len()));
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(folder.join("index.html"), "<p>page").unwrap();
        std::fs::write(folder.join("assets/a.wasm"), "wasm").unwrap();
        let address = "127.0.0.1:81".parse().unwrap();
        let site = Site { files: Files::Folder(folder.clone()), address, root: "/t0ken/".to_owned() };
        let status = |request: &&str| {
            let answer = site.answer_to(request.as_bytes());
            answer.map_or("waits".to_owned(), |bytes| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let line = text.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ").to_owned();
                format!("{line} {}", text.split("\r\n\r\n").nth(1).unwrap_or_default())
            })
        };
        let all = requests.iter().map(status).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        all
    }

    #[test]
    fn the_page_is_served_below_the_token_and_nothing_else() {
        let all = statuses(&[
            "GET /t0ken/ HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "HEAD /t0ken/assets/a.wasm?v=1 HTTP/1.1\r\nhost: localhost:81\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "GET /t0ken/../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "GET /t0ken//etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "GET /t0ken/assets HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "GET /t0ken/ HTTP/1.1\r\nHost: evil.example:81\r\n\r\n",
            "GET /t0ken/ HTTP/1.1\r\n\r\n",
            "POST /t0ken/ HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "\u{0}\u{1}",
            "GET /t0ken/ HTTP/1.1\r\nHost:",
        ]);
        let expected = [
            "200 OK <p>page",
            "200 OK ",
            "404 Not Found 404 Not Found",
            "404 Not Found 404 Not Found",
            "404 Not Found 404 Not Found",
            "404 Not Found 404 Not Found",
            "421 Misdirected Request 421 Misdirected Request",
            "421 Misdirected Request 421 Misdirected Request",
            "405 Method Not Allowed 405 Method Not Allowed",
            "400 Bad Request 400 Bad Request",
            "waits",
        ];
        assert_eq!(all, expected);
    }
}
