//! Standard output, written by its own thread, so that a slow reader does not block the connection at once.

use crate::ending::asked_to_end;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Maximum pieces waiting to be written; then the connection is blocked.
const WAITING: usize = 64;
/// Time limit for the remaining output after the program was told to end.
const LAST: Duration = Duration::from_secs(1);

/// How writing ended.
#[derive(Debug)]
pub enum Written {
    /// Everything was written.
    All,
    /// The reader closed the pipe.
    Closed,
    /// The reader did not read after the program was told to end.
    Unread,
    /// A write error, for instance on a full disk.
    Failed(io::Error),
}

pub struct Output {
    pieces: Sender<Vec<u8>>,
    ended: oneshot::Receiver<Written>,
}

impl Output {
    /// Starts to write to a descriptor.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(to: impl AsFd) -> io::Result<Self> {
        let file = File::from(to.as_fd().try_clone_to_owned()?);
        let (pieces, waiting) = channel(WAITING);
        let (tell, ended) = oneshot::channel();
        // The receiver of the result may be gone.
        let work = move || drop(tell.send(write(file, waiting)));
        thread::Builder::new().name("output".to_owned()).spawn(work)?;
        Ok(Self { pieces, ended })
    }

    /// Queues bytes. Returns whether the reader is still there.
    pub async fn write(&self, bytes: Vec<u8>) -> bool {
        self.pieces.send(bytes).await.is_ok()
    }

    /// Whether the reader is gone.
    pub fn is_closed(&self) -> bool {
        self.pieces.is_closed()
    }

    /// Waits until everything is written; for a limited time once the program was told to end.
    pub async fn finish(self) -> Written {
        drop(self.pieces);
        let asked = async {
            asked_to_end().await;
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
