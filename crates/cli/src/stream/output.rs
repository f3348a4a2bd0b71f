//! Standard output, written by a thread of its own, so that a reader who waits does not hold up the connection at once.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces that wait to be written; then the connection waits.
const WAITING: usize = 64;

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// All was written.
    All,
    /// Whoever read it has closed it.
    Closed,
}

/// The output.
pub struct Output {
    pieces: Sender<Vec<u8>>,
    thread: JoinHandle<Written>,
}

impl Output {
    /// Begins to write to a descriptor.
    ///
    /// # Errors
    /// If there is no thread or no descriptor left.
    pub fn start(to: impl AsFd) -> io::Result<Self> {
        let file = File::from(to.as_fd().try_clone_to_owned()?);
        let (pieces, waiting) = channel(WAITING);
        let thread = thread::Builder::new().name("output".to_owned()).spawn(move || write(file, waiting))?;
        Ok(Self { pieces, thread })
    }

    /// Writes, after what waits. Gives whether anybody still reads.
    pub async fn write(&self, bytes: Vec<u8>) -> bool {
        self.pieces.send(bytes).await.is_ok()
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.pieces.is_closed()
    }

    /// Waits until all is written.
    pub fn finish(self) -> Written {
        drop(self.pieces);
        self.thread.join().unwrap_or(Written::Closed)
    }
}

fn write(mut file: File, mut waiting: Receiver<Vec<u8>>) -> Written {
    while let Some(bytes) = waiting.blocking_recv() {
        // A full disk is as good as a reader who is gone.
        if file.write_all(&bytes).is_err() {
            return Written::Closed;
        }
    }
    Written::All
}
