//! Standard output, written by a thread of its own, so that a reader who waits does not hold up the connection at once.

use crate::ending::wish_to_end;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Pieces that wait to be written; then the connection waits.
const WAITING: usize = 64;
/// How long a reader has for what waits once we were asked to end.
const LAST: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Debug)]
pub enum Written {
    /// All was written.
    All,
    /// Its reader has closed it.
    Closed,
    /// Its reader does not read, and we were asked to end.
    Unread,
    /// It cannot be written, to a full disk for instance.
    Failed(io::Error),
}

/// The output.
pub struct Output {
    pieces: Sender<Vec<u8>>,
    ended: oneshot::Receiver<Written>,
}

impl Output {
    /// Begins to write to a descriptor.
    ///
    /// # Errors
    /// If there is no thread or no descriptor left.
    pub fn start(to: impl AsFd) -> io::Result<Self> {
        let file = File::from(to.as_fd().try_clone_to_owned()?);
        let (pieces, waiting) = channel(WAITING);
        let (tell, ended) = oneshot::channel();
        // Nobody may want to hear of it any more.
        let work = move || drop(tell.send(write(file, waiting)));
        thread::Builder::new().name("output".to_owned()).spawn(work)?;
        Ok(Self { pieces, ended })
    }

    /// Writes, after what waits. Returns whether anybody still reads.
    pub async fn write(&self, bytes: Vec<u8>) -> bool {
        self.pieces.send(bytes).await.is_ok()
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.pieces.is_closed()
    }

    /// Waits until all is written; not for long once the program was asked to end.
    pub async fn finish(self) -> Written {
        drop(self.pieces);
        let asked = async {
            wish_to_end(None).await;
            sleep(LAST).await;
        };
        tokio::select! {
            written = self.ended => written.unwrap_or(Written::Closed),
            () = asked => Written::Unread,
        }
    }
}

fn write(mut file: File, mut waiting: Receiver<Vec<u8>>) -> Written {
    while let Some(bytes) = waiting.blocking_recv() {
        match file.write_all(&bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Written::Closed,
            Err(error) => return Written::Failed(error),
        }
    }
    Written::All
}
