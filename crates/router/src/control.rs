//! The socket by which a router at work says what it knows: a line asks, a JSON document answers.
//!
//! It has an abstract name (unix(7)), which belongs to the network namespace as the router does, leaves nothing in the file
//! system, and can be taken only once: so it is also what keeps two routers from one table. Anybody on the host may ask,
//! as anybody may run `ip route`; nothing can be changed by it.

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

/// Who may ask at the same time; the others wait.
const MOST: usize = 16;

/// Longest question, bytes.
const LONGEST: usize = 64;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Largest answer that a client reads.
const LARGEST: u64 = 256 << 20;

/// What can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// The router as a whole: its interfaces and counters.
    Status,
    /// Who is heard, and what he is to us.
    Neighbors,
    /// The link-state database.
    Database,
    /// The routes, and what of them the kernel has.
    Routes,
    /// What is expected of the links.
    Forecast,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Status, Self::Neighbors, Self::Database, Self::Routes, Self::Forecast];

    /// Its name on the command line and on the socket.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Neighbors => "neighbors",
            Self::Database => "lsdb",
            Self::Routes => "routes",
            Self::Forecast => "forecast",
        }
    }

    /// The question of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.name() == name)
    }
}

fn address(table: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("anabranch-route-{table}"))
}

/// Whether a router is at work with this table in the caller's network namespace.
pub(super) fn is_taken(table: u32) -> bool {
    address(table).and_then(|address| StdStream::connect_addr(&address)).is_ok()
}

/// A question that waits for its answer.
pub(super) struct Asked {
    stream: UnixStream,
    question: Question,
}

impl Asked {
    /// What is asked.
    pub(super) fn question(&self) -> Question {
        self.question
    }

    /// Answers, as far as who asked takes it, without waiting for him.
    pub(super) fn answer(mut self, text: String) {
        tokio::spawn(async move {
            // Who does not read it does not want to know.
            let _ = tokio::time::timeout(PATIENCE, self.stream.write_all(text.as_bytes())).await;
        });
    }
}

/// The router's end. It listens until it is dropped.
pub(super) struct Control {
    asked: Receiver<Asked>,
    listening: JoinHandle<()>,
}

impl Control {
    /// Takes the name. To be called within a runtime.
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

    /// The next question.
    pub(super) async fn asked(&mut self) -> Asked {
        match self.asked.recv().await {
            Some(asked) => asked,
            // Nobody listens any more.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Accepts queries, so many at a time.
async fn listen(listener: UnixListener, questions: Sender<Asked>) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((mut stream, _)) = listener.accept().await else {
            // Too many open files, perhaps: not for ever.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let questions = questions.clone();
        tokio::spawn(async move {
            let question = question(&mut stream).await;
            drop(permit);
            if let Some(question) = question {
                // At the end nobody answers any more.
                let _ = questions.send(Asked { stream, question }).await;
            }
        });
    }
}

/// Reads a question; none if it is none, or comes too late.
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

/// Asks the router at work with this table, in the caller's network namespace.
///
/// # Errors
/// [`RouteError::NotRunning`], or what went wrong on the way.
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
        // The last two are those of a router that ends.
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
