//! State of a connection outside the engine: the tasks that wait.

use anabranch_mptcp::{CloseCause, FallbackCause};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// Limit of path changes that wait to be read.
const MAX_PATH_CHANGES: usize = 64;

/// A change of the paths of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    /// A subflow carries data from now on.
    Established(SubflowId),
    /// A subflow ended.
    Closed(SubflowId, CloseReason),
    /// The connection continues as plain TCP.
    FellBack(FallbackCause),
}

/// A connection, as its application sees it.
#[derive(Default)]
pub(super) struct Connection {
    /// The handshake is complete.
    pub established: bool,
    /// The peer's stream has been read to its end.
    pub ended: bool,
    /// Why it ended.
    pub closed: Option<CloseCause>,
    /// Why it fell back to plain TCP.
    pub fallback: Option<FallbackCause>,
    /// The task that waits for data, or for the handshake.
    pub reader: Option<Waker>,
    /// The task that waits for space.
    pub writer: Option<Waker>,
    /// The task that waits for the end.
    pub closer: Option<Waker>,
    path_changes: VecDeque<PathChange>,
    path_watcher: Option<Waker>,
    /// Whether path changes were ever read.
    watched: bool,
}

/// Stores the waker of a task, without a copy if it is the same as before.
pub(super) fn wait(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}

/// Wakes the task, if there is one.
pub(super) fn wake(place: &mut Option<Waker>) {
    if let Some(waker) = place.take() {
        waker.wake();
    }
}

impl Connection {
    /// Takes the wakers of all tasks.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let all = [&mut self.reader, &mut self.writer, &mut self.closer, &mut self.path_watcher];
        all.map(Option::take).into_iter().flatten()
    }

    /// Wakes all tasks.
    pub(super) fn wake_all(&mut self) {
        self.take_all().for_each(Waker::wake);
    }

    /// Queues a change for the application. Returns false if one was dropped.
    pub(super) fn push_path_change(&mut self, change: PathChange) -> bool {
        let room = self.path_changes.len() < MAX_PATH_CHANGES;
        if room {
            self.path_changes.push_back(change);
            wake(&mut self.path_watcher);
        }
        // A change is not missed if changes were never read.
        room || !self.watched
    }

    /// The next change; none after the last of a connection that has ended.
    pub(super) fn poll_path_change(&mut self, context: &Context<'_>) -> Poll<Option<PathChange>> {
        self.watched = true;
        match self.path_changes.pop_front() {
            Some(change) => Poll::Ready(Some(change)),
            None if self.closed.is_some() => Poll::Ready(None),
            None => {
                wait(&mut self.path_watcher, context);
                Poll::Pending
            }
        }
    }
}
