//! Serves the status of a program: on its socket, and on a TCP address if configured.

use super::http::{Page, answer};
use super::metrics;
use super::model::Source;
use super::place::Place;
use crate::console::remark;
use crate::values::listener;
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

/// Maximum number of concurrent requests; a further one takes the place of the oldest.
const AT_A_TIME: usize = 8;

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Delay after a failed accept if the system has no descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Where to say how it does.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Status")]
pub struct StatusOptions {
    /// Serve /status (JSON) and /metrics (Prometheus) over HTTP at this address; a port alone is of 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = listener)]
    status: Option<SocketAddr>,
    /// Allow a --status address that other hosts can reach; it has no authentication
    #[arg(long)]
    allow_remote_status: bool,
}

/// The listening sockets.
pub struct Listeners {
    http: Option<TcpListener>,
    any_host: bool,
    /// Queried by `anabranch status`.
    local: Option<(UnixListener, Place)>,
}

impl StatusOptions {
    /// # Errors
    /// The status would be readable by unauthorized users.
    pub fn check(&self) -> Result<(), Diagnostic> {
        match self.status {
            Some(address) if !address.ip().is_loopback() && !self.allow_remote_status => {
                let message = format!(
                    "other hosts can reach {address} and would read who is connected to whom; say --allow-remote-status if they may"
                );
                Err(Diagnostic::option("--status", message))
            }
            _ => Ok(()),
        }
    }

    /// Binds the sockets. Must be called within a runtime, before the host's configuration changes. Without a writable
    /// directory there is no socket for `anabranch status`, which is logged.
    ///
    /// # Errors
    /// The address for HTTP cannot be used.
    pub async fn listen(&self, journal: Option<&Path>, command: &str) -> Result<Listeners, Diagnostic> {
        self.listen_and(journal, command, true).await
    }

    async fn listen_and(&self, journal: Option<&Path>, command: &str, tell: bool) -> Result<Listeners, Diagnostic> {
        self.check()?;
        let http = match self.status {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                Diagnostic::option(&format!("--status {address}"), format!("cannot listen there: {error}"))
            })?),
            None => None,
        };
        let place = Place::take(journal, command);
        let local = place.and_then(|place| Ok((UnixListener::bind(&place.socket)?, place)));
        let told = |error| {
            if tell {
                remark(&format!("note: `anabranch status` cannot ask this process: no socket for it ({error})"));
            }
        };
        Ok(Listeners { http, any_host: self.allow_remote_status, local: local.map_err(told).ok() })
    }
}

impl StatusOptions {
    /// Like [`Self::listen`]; a missing directory is logged only if `tell`.
    ///
    /// # Errors
    /// As for [`Self::listen`].
    pub async fn listen_if_possible(&self, command: &str, tell: bool) -> Result<Listeners, Diagnostic> {
        self.listen_and(None, command, tell).await
    }
}

impl Listeners {
    /// The address of HTTP, if configured.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().and_then(|listener| listener.local_addr().ok())
    }
}

/// The source of the status; none at the start.
type Shared = Arc<RwLock<Option<Source>>>;

/// Serves until it is dropped.
pub struct Serving {
    tasks: Vec<JoinHandle<()>>,
    source: Shared,
    _place: Option<Place>,
}

impl Serving {
    /// Starts to serve. Must be called within a runtime.
    pub fn start(listeners: Listeners, source: Option<Source>) -> Self {
        let (source, any_host) = (Arc::new(RwLock::new(source)), listeners.any_host);
        let mut tasks = Vec::new();
        let place = listeners.local.map(|(listener, place)| {
            let accept = move |context: &mut Context<'_>| listener.poll_accept(context).map_ok(|(stream, _)| stream);
            tasks.push(tokio::spawn(attend(accept, true, Arc::clone(&source))));
            place
        });
        if let Some(listener) = listeners.http {
            let accept = move |context: &mut Context<'_>| listener.poll_accept(context).map_ok(|(stream, _)| stream);
            tasks.push(tokio::spawn(attend(accept, any_host, Arc::clone(&source))));
        }
        Self { tasks, source, _place: place }
    }

    /// Replaces the source.
    pub fn set(&self, source: Source) {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Serves the clients of a listener, a few at a time: those that say nothing keep nobody out.
async fn attend<S>(accept: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>, any_host: bool, source: Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut served: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok(stream) = poll_fn(&accept).await else {
            // There are no descriptors.
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        served.retain(|task| !task.is_finished());
        if served.len() >= AT_A_TIME {
            served.pop_front().into_iter().for_each(|oldest| oldest.abort());
        }
        served.push_back(tokio::spawn(give(stream, any_host, Arc::clone(&source))).abort_handle());
        // A request that is there already is answered before another takes its place.
        yield_now().await;
    }
}

/// Answers one client.
async fn give<S>(stream: S, any_host: bool, source: Shared)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let page = |page| {
        let status = source.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Source::status);
        match (status, page) {
            (Some(status), Page::Status) => serde_json::to_string(&status).unwrap_or_default() + "\n",
            (Some(status), Page::Metrics) => metrics::render(&status),
            // No source yet.
            (None, _) => String::new(),
        }
    };
    // Errors of the client are ignored.
    let _ = timeout(PATIENCE, answer(stream, any_host, page)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::WouldBlock;
    use tokio::io::AsyncReadExt as _;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    #[test]
    fn clients_that_say_nothing_keep_nobody_out_and_only_the_oldest_is_sent_away() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
            let take = std::sync::Mutex::new(&mut take);
            let accept = |context: &mut Context<'_>| {
                let mut take = take.lock().expect("nobody panics");
                take.poll_recv(context).map(|stream| stream.ok_or_else(|| io::Error::from(WouldBlock)))
            };
            let connect = || {
                let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
                give.send(theirs).expect("it is taken");
                ours
            };
            let silent: Vec<UnixStream> = (0..AT_A_TIME).map(|_| connect()).collect();
            let mut asking = connect();
            let mut said = String::new();
            let asked = async {
                asking.write_all(b"GET /nothing HTTP/1.1\r\n\r\n").await.expect("it listens");
                asking.read_to_string(&mut said).await.expect("it answers");
            };
            tokio::select! {
                () = asked => {}
                () = attend(accept, false, Shared::default()) => {}
            }
            assert!(said.starts_with("HTTP/1.1 404 "), "{said}");
            let open =
                |stream: &UnixStream| stream.try_read(&mut [0; 1]).is_err_and(|error| error.kind() == WouldBlock);
            assert_eq!(silent.iter().filter(|stream| open(stream)).count(), AT_A_TIME - 1);
        });
    }
}
