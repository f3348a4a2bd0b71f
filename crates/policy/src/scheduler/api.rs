//! What the engine asks of a scheduler, and what it is told.

use crate::ids::SubflowId;
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowView};

/// Why a chunk of data waits to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkKind {
    /// Never sent before.
    New,
    /// Sent before on a subflow that failed, stalled or closed (RFC 8684, section 3.3.6).
    Reinjection,
}

/// The data that is next to go: at most one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Data sequence of its first byte, from 0.
    pub data_seq: u64,
    /// In bytes; may be shortened to the segment size of the chosen subflow.
    pub length: u32,
    /// Why it is to be sent.
    pub kind: ChunkKind,
    /// The last sender: a reinjection never goes back there.
    pub last_sent_on: Option<SubflowId>,
    /// How long it may wait and still be in time on a path as fast as the fastest, if it has a deadline
    /// ([`crate::Reliability::last_moment`]).
    pub time_left: Option<Duration>,
}

/// The decision on a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Assign it to this subflow; if the window is full, it queues there.
    Send(SubflowId),
    /// Leave it: ask again when anything changes, and at this time at the latest.
    Wait(Option<Instant>),
}

impl Decision {
    /// Assigns it to this subflow; without one, asks again when anything changes.
    pub(crate) fn on(subflow: Option<&SubflowView>) -> Self {
        subflow.map_or(Self::Wait(None), |subflow| Self::Send(subflow.id))
    }
}

/// The connection-level window is closed, and bytes at its left edge are missing at the receiver: later bytes are known
/// to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hole {
    /// First missing byte.
    pub data_seq: u64,
    /// Length of the segment that was to fill it, in bytes.
    pub length: u32,
    /// The subflow that carries it.
    pub culprit: SubflowId,
}

/// Reaction to a [`Hole`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relief {
    /// Duplicate the bytes of the hole on this subflow (opportunistic retransmission).
    pub retransmit_on: Option<SubflowId>,
    /// Halve this subflow's window ([`crate::congestion::Congestion::Penalty`]).
    pub penalise: Option<SubflowId>,
}

/// The oldest outstanding data of a subflow that was neither duplicated nor reinjected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Data sequence of its first byte.
    pub data_seq: u64,
    /// In bytes.
    pub length: u32,
    /// The subflow that sent it.
    pub sender: SubflowId,
    /// Latest transmission on that subflow.
    pub sent_at: Instant,
    /// The sender marked it lost, and will retransmit it or has done so.
    pub lost: bool,
    /// The sender marked it lost and has not retransmitted it yet: its window is full.
    pub unrepaired: bool,
}

/// When the connection reinjects data on another subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reinjection {
    /// As soon as a subflow's retransmission timer runs out or the subflow closes.
    OnSubflowTimeout,
    /// Only when the connection's own retransmission timer runs out, or the subflow closes.
    OnConnectionTimeout,
    /// Only when the subflow closes or is suspended by the path manager: until then it retransmits its outstanding data
    /// itself.
    Never,
}

/// What a scheduler looks at, and other constant properties: queried once per connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Needs {
    /// It looks at [`Work::outstanding`], [`Work::recent`] and [`Work::missing`]: it duplicates data. The engine need
    /// not ask others while nothing is unsent.
    pub outstanding: bool,
    /// It looks at [`Work::is_behind`]: every subflow carries the whole stream.
    pub whole_stream: bool,
    /// Smoothed round trips without any acknowledgement, with data outstanding, after which a subflow is stale and its
    /// data is reinjected; none: only after a retransmission timeout. Half a second and this many round trips of the
    /// fastest subflow are enough if its oldest segment is late.
    pub silence: Option<f32>,
    /// How many consecutive segments of a subflow may share one mapping (RFC 8684, section 3.3.1), 1 to 255. Only the
    /// first of them carries it, so that the others hold up to 28 bytes more. A mapping is shared where segments wait
    /// on a subflow with rare losses and on a connection that receives nothing meanwhile: once the first was sent,
    /// those behind it cannot be taken back.
    pub segments_per_mapping: u32,
    /// When data is reinjected.
    pub reinjection: Reinjection,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            outstanding: false,
            whole_stream: false,
            silence: None,
            segments_per_mapping: 1,
            reinjection: Reinjection::OnSubflowTimeout,
        }
    }
}

/// New data at an opportunity to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// There is none, or it must wait for more data (Nagle, silly window avoidance), or for the window.
    Nothing,
    /// The window is closed, and a hole at its left edge keeps it closed.
    Blocked(Hole),
    /// This may be sent.
    Chunk(Chunk),
    /// A tail loss probe of this subflow carries new data (RFC 8985, section 7.3), regardless of the scheduler's
    /// choice.
    Probe(SubflowId),
}

/// The data to send, computed on demand.
pub trait Work {
    /// The next range to be reinjected; another one at each call, none at the end. A range that only its last sender
    /// could take does not block later ones.
    fn again(&mut self) -> Option<Chunk>;

    /// Whether there is new data, whether or not it can be sent.
    fn has_unsent(&self) -> bool;

    /// The next new data.
    fn unsent(&mut self) -> Unsent;

    /// Whether no new data can be sent now: there is none, or the window is closed.
    fn is_shut(&self) -> bool;

    /// The data with the lowest sequence beyond `after`, among the oldest data of each subflow that is outstanding and
    /// carried by no other. Data that was duplicated is not returned again.
    fn outstanding(&mut self, after: Option<u64>) -> Option<Outstanding>;

    /// Data with a deadline that was sent and neither duplicated nor returned before, and the time left for it
    /// ([`Chunk::time_left`]).
    fn recent(&mut self) -> Option<(Outstanding, Duration)>;

    /// Whether the peer reported data missing on a subflow, because later data arrived there, before the sender could
    /// detect the loss; see [`Self::repair_missing`]. What is not reinjected at once is left to its subflow.
    fn missing(&self) -> bool;

    /// Queues what was reported missing for reinjection: [`Self::again`] returns it.
    fn repair_missing(&mut self);

    /// Whether a subflow has not carried all of the sent and unacknowledged stream.
    fn is_behind(&mut self, subflow: SubflowId) -> bool;

    /// Carries out the reaction to a [`Hole`].
    fn relieve(&mut self, relief: Relief);

    /// Asks again at this time at the latest; without one, when anything changes.
    fn wait(&mut self, until: Option<Instant>);
}

/// What to send next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The data of [`Work::unsent`] on this subflow.
    New(SubflowId),
    /// The latest range of [`Work::again`] on this subflow.
    Again(SubflowId),
    /// A duplicate of outstanding data on this subflow, which may be its sender.
    Copy(Outstanding, SubflowId),
    /// The next data that this subflow has not carried ([`Work::is_behind`]).
    CatchUp(SubflowId),
    Wait,
}

/// Distributes the data of a connection over its subflows.
pub trait Scheduler: Send {
    /// What to send next. `subflows` are all subflows in order of id, full and unusable ones too. The answer must not
    /// name a subflow that is not [`SubflowView::usable`], nor the last sender of a range to be reinjected
    /// ([`Chunk::last_sent_on`]).
    ///
    /// By default reinjections come first, then new data, each where [`Self::schedule`] assigns it.
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        again(self, connection, work, subflows)
            .or_else(|| unsent(self, connection, work, subflows))
            .unwrap_or(Answer::Wait)
    }

    /// Chooses the subflow of a chunk.
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision;

    /// The window is closed by a hole. Called at each opportunity to send while that lasts.
    fn on_window_blocked(&mut self, _connection: &ConnectionView, _hole: &Hole, _subflows: &[SubflowView]) -> Relief {
        Relief::default()
    }

    /// What it looks at; constant.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A subflow was removed.
    fn on_subflow_removed(&mut self, _id: SubflowId) {}
}

/// Whether a subflow may be named in an answer.
fn is_usable(subflows: &[SubflowView], id: SubflowId) -> bool {
    subflows.iter().any(|subflow| subflow.id == id && subflow.usable())
}

/// The first range to be reinjected for which [`Scheduler::schedule`] has a subflow.
pub fn again<S: Scheduler + ?Sized>(
    scheduler: &mut S,
    connection: &ConnectionView,
    work: &mut dyn Work,
    subflows: &[SubflowView],
) -> Option<Answer> {
    while let Some(chunk) = work.again() {
        match scheduler.schedule(connection, &chunk, subflows) {
            Decision::Send(id) if Some(id) != chunk.last_sent_on && is_usable(subflows, id) => {
                return Some(Answer::Again(id));
            }
            Decision::Send(_) => {}
            Decision::Wait(until) => work.wait(until),
        }
    }
    None
}

/// New data, where [`Scheduler::schedule`] assigns it; if a hole closes the window, [`Scheduler::on_window_blocked`] is
/// asked.
pub fn unsent<S: Scheduler + ?Sized>(
    scheduler: &mut S,
    connection: &ConnectionView,
    work: &mut dyn Work,
    subflows: &[SubflowView],
) -> Option<Answer> {
    if !work.has_unsent() {
        return None;
    }
    match work.unsent() {
        Unsent::Nothing => None,
        Unsent::Probe(id) => Some(Answer::New(id)),
        Unsent::Blocked(hole) => {
            work.relieve(scheduler.on_window_blocked(connection, &hole, subflows));
            None
        }
        Unsent::Chunk(chunk) => match scheduler.schedule(connection, &chunk, subflows) {
            Decision::Send(id) => is_usable(subflows, id).then_some(Answer::New(id)),
            Decision::Wait(until) => {
                work.wait(until);
                None
            }
        },
    }
}
