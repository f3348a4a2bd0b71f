//! The control socket of a running router: a query is a line, the answer a JSON document.
//!
//! Its name is abstract (unix(7)): it belongs to the network namespace like the router, leaves nothing in the file
//! system, and can be bound only once, which keeps two routers from using one table. Any user may query it, as with `ip
//! route`; queries change nothing.

use super::RouteError;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// Most concurrent queries; others wait.
const MOST: usize = 16;

/// Bytes of the longest query.
const LONGEST: usize = 64;

/// Timeout for the other side.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of the largest answer that a client reads.
const LARGEST: u64 = 256 << 20;

/// A query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// The router as a whole: its interfaces and counters.
    Status,
    /// The neighbours and their states.
    Neighbors,
    /// The link-state database.
    Database,
    /// The routes, and those installed in the kernel.
    Routes,
    /// The forecasts for links.
    Forecast,
}

impl Question {
    /// All queries.
    pub const ALL: [Self; 5] = [Self::Status, Self::Neighbors, Self::Database, Self::Routes, Self::Forecast];

    /// The name on the command line and on the socket.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Neighbors => "neighbors",
            Self::Database => "lsdb",
            Self::Routes => "routes",
            Self::Forecast => "forecast",
        }
    }

    /// The query of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.name() == name)
    }
}

fn address(table: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("anabranch-route-{table}"))
}

/// Whether a router with this table is running in the caller's network namespace.
pub(super) fn is_taken(table: u32) -> bool {
    address(table).and_then(|address| StdStream::connect_addr(&address)).is_ok()
}

/// A query that waits for its answer.
pub(super) struct Asked {
    stream: UnixStream,
    question: Question,
}

impl Asked {
    pub(super) fn question(&self) -> Question {
        self.question
    }

    /// Sends the answer from a task of its own, with a timeout.
    pub(super) fn answer(mut self, text: String) {
        tokio::spawn(async move {
            // A client that does not read it is dropped.
            let _ = tokio::time::timeout(PATIENCE, self.stream.write_all(text.as_bytes())).await;
        });
    }
}

/// The router's end, which listens until dropped.
pub(super) struct Control {
    asked: Receiver<Asked>,
    listening: JoinHandle<()>,
}

impl Control {
    /// Binds the socket. Call this within a runtime.
    pub(super) fn open(table: u32) -> Result<Self, RouteError> {
        let listener = address(table).and_then(|address| StdListener::bind_addr(&address)).map_err(|error| {
            if error.kind() == io::ErrorKind::AddrInUse {
                RouteError::AlreadyRuns { table }
            } else {
                RouteError::system("open the control socket")(error)
            }
        })?;
        let listener = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let listener = listener.map_err(RouteError::system("open the control socket"))?;
        let (questions, asked) = channel(MOST);
        Ok(Self { asked, listening: tokio::spawn(listen(listener, questions)) })
    }

    /// The next query.
    pub(super) async fn asked(&mut self) -> Asked {
        match self.asked.recv().await {
            Some(asked) => asked,
            // The listener has ended.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Accepts queries, a limited number at a time.
async fn listen(listener: UnixListener, questions: Sender<Asked>) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((mut stream, _)) = listener.accept().await else {
            // Perhaps too many open files; retry later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let questions = questions.clone();
        tokio::spawn(async move {
            let question = question(&mut stream).await;
            drop(permit);
            if let Some(question) = question {
                // Fails only when the router ends.
                let _ = questions.send(Asked { stream, question }).await;
            }
        });
    }
}

/// Reads a query; `None` if it is invalid or too late.
async fn question(stream: &mut UnixStream) -> Option<Question> {
    let mut line = Vec::new();
    let read = async {
        while line.len() < LONGEST && !line.ends_with(b"\n") {
            if stream.read_buf(&mut line).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    tokio::time::timeout(PATIENCE, read).await.ok()?.ok()?;
    Question::named(std::str::from_utf8(&line).ok()?.trim())
}

/// Queries the running router with this table in the caller's network namespace.
///
/// # Errors
/// [`RouteError::NotRunning`], or an error of the socket.
pub fn ask(table: u32, question: Question) -> Result<serde_json::Value, RouteError> {
    let asking = || {
        let mut stream = StdStream::connect_addr(&address(table)?)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{}\n", question.name()).as_bytes())?;
        let mut text = String::new();
        stream.take(LARGEST).read_to_string(&mut text)?;
        io::Result::Ok(text)
    };
    let text = asking().map_err(|error| match error.kind() {
        // The last two occur when the router is ending.
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => RouteError::NotRunning { table },
        _ => RouteError::system("ask the router at work")(error),
    })?;
    if text.is_empty() {
        return Err(RouteError::NotRunning { table });
    }
    serde_json::from_str(&text).map_err(|error| RouteError::NotUnderstood(error.to_string()))
}
