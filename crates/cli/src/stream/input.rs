//! Standard input, read by its own thread and cut into pieces on arrival, each with its arrival time.

use super::pace::Pace;
use anabranch_media::cut::{CutCounters, CutError, Cutter, Format, Piece};
use anabranch_policy::time::Duration;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use tokio::sync::Notify;

/// Bytes per read.
const READ: usize = 64 * 1024;
/// Maximum bytes waiting to be sent; then reading stops.
const WAITING: usize = 8 << 20;

#[derive(Debug)]
pub enum Next {
    Piece(Piece, Instant),
    /// End of input.
    End,
    /// Invalid input.
    Wrong(CutError),
    /// A read error.
    Broken(io::Error),
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<(Piece, Instant)>,
    bytes: usize,
    end: Option<Next>,
    format: Option<Format>,
    counters: CutCounters,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when input arrives.
    came: Notify,
    /// Notified when space is available.
    taken: std::sync::Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Input {
    shared: Arc<Shared>,
}

impl Input {
    /// Starts to read a descriptor.
    ///
    /// # Errors
    /// No thread or descriptor is available.
    pub fn start(from: impl AsFd, cutter: Cutter) -> io::Result<Self> {
        let file = File::from(from.as_fd().try_clone_to_owned()?);
        let shared = Arc::new(Shared::default());
        let reader = Arc::clone(&shared);
        thread::Builder::new().name("input".to_owned()).spawn(move || read(file, cutter, &reader))?;
        Ok(Self { shared })
    }

    /// Completes at the first piece or at the end of input.
    pub async fn begun(&self) {
        while {
            let waiting = self.shared.lock();
            waiting.pieces.is_empty() && waiting.end.is_none()
        } {
            self.shared.came.notified().await;
        }
    }

    /// The next item in order. Must not be called again after an item that is not a piece.
    pub async fn next(&self) -> Next {
        loop {
            {
                let mut waiting = self.shared.lock();
                if let Some((piece, came)) = waiting.pieces.pop_front() {
                    waiting.bytes -= piece.bytes.len();
                    self.shared.taken.notify_one();
                    return Next::Piece(piece, came);
                }
                if let Some(end) = waiting.end.take() {
                    return end;
                }
            }
            self.shared.came.notified().await;
        }
    }

    /// Detected format and counters so far.
    pub fn found(&self) -> (Option<Format>, CutCounters) {
        let waiting = self.shared.lock();
        (waiting.format, waiting.counters)
    }
}

fn read(mut file: File, mut cutter: Cutter, shared: &Shared) {
    let mut block = vec![0; READ];
    let (mut pace, mut began) = (Pace::new(), None);
    let end = loop {
        let bytes = match file.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break Next::Broken(error),
            Ok(length) => block.get(..length).unwrap_or_default(),
        };
        let came = Instant::now();
        let over = bytes.is_empty();
        let mut pieces = match if over { cutter.finish() } else { cutter.push(bytes) } {
            Ok(pieces) => pieces,
            Err(error) => break Next::Wrong(error),
        };
        let since = came.saturating_duration_since(*began.get_or_insert(came));
        // A transport stream has its own time stamps.
        if cutter.format() != Some(Format::TransportStream) {
            pace.handle(bytes, Duration::from_nanos(since.as_nanos() as u64), &mut pieces);
        }
        let mut waiting = shared.lock();
        (waiting.format, waiting.counters) = (cutter.format(), cutter.counters());
        waiting.bytes += pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        waiting.pieces.extend(pieces.into_iter().map(|piece| (piece, came)));
        shared.came.notify_one();
        while waiting.bytes > WAITING {
            waiting = shared.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if over {
            break Next::End;
        }
    };
    shared.lock().end = Some(end);
    shared.came.notify_one();
}
