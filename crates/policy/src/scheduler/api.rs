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
    /// Bytes; may be trimmed to the chosen subflow's segment size.
    pub length: u32,
    /// Why it waits.
    pub kind: ChunkKind,
    /// Where it was sent last: a reinjection never goes back there.
    pub last_sent_on: Option<SubflowId>,
    /// How long it may wait yet and be in time on a path as quick as the quickest, if it has a deadline
    /// ([`crate::Reliability::last_moment`]).
    pub time_left: Option<Duration>,
}

/// What to do with a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Give it to this subflow; if its window is full, it queues there.
    Send(SubflowId),
    /// Leave it: ask again when anything changes, and at this time at the latest.
    Wait(Option<Instant>),
}

impl Decision {
    /// Give it to this subflow; without one, ask again when anything changes.
    pub(crate) fn on(subflow: Option<&SubflowView>) -> Self {
        subflow.map_or(Self::Wait(None), |subflow| Self::Send(subflow.id))
    }
}

/// The connection-level window is closed while bytes at its left edge are missing at the receiver: later bytes are
/// known to have arrived there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hole {
    /// First missing byte.
    pub data_seq: u64,
    /// Bytes of the segment that was to fill it.
    pub length: u32,
    /// The subflow that carries it.
    pub culprit: SubflowId,
}

/// What to do about a [`Hole`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relief {
    /// Send the hole's bytes here too (opportunistic retransmission).
    pub retransmit_on: Option<SubflowId>,
    /// Halve this subflow's window ([`crate::congestion::Congestion::Penalty`]).
    pub penalise: Option<SubflowId>,
}

/// The oldest data that a subflow has outstanding and that nobody else was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Data sequence of its first byte.
    pub data_seq: u64,
    /// Bytes.
    pub length: u32,
    /// The subflow that sent it.
    pub sender: SubflowId,
    /// When it was sent there last.
    pub sent_at: Instant,
    /// The sender found it lost; it sends it again, or has.
    pub lost: bool,
    /// The sender found it lost and has not sent it again yet: its window is full.
    pub unrepaired: bool,
}

/// When the connection sends data again on another subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reinjection {
    /// As soon as a subflow's retransmission timer runs out or the subflow closes.
    OnSubflowTimeout,
    /// Only when the connection's own retransmission timer runs out, or the subflow closes.
    OnConnectionTimeout,
    /// Only when the subflow closes, is given up, or is suspended by the path manager: until then it sends again itself
    /// what it has outstanding, and nothing else does.
    Never,
}

/// What a scheduler is going to look at, and habits of its that do not change: asked once per connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Needs {
    /// It looks at [`Work::outstanding`], [`Work::recent`] and [`Work::missing`]: it duplicates data. The engine need not
    /// ask others while nothing is unsent.
    pub outstanding: bool,
    /// It looks at [`Work::is_behind`]: subflows walk the whole stream.
    pub whole_stream: bool,
    /// After how many smoothed round trips without any acknowledgement, with data outstanding, a subflow counts as
    /// stale and its data is sent elsewhere; none: only after a retransmission timeout. Half a second and so many round trips of the
    /// quickest subflow are enough if its oldest segment is late.
    pub silence: Option<f32>,
    /// How many consecutive segments of a subflow may share one mapping (RFC 8684, section 3.3.1), 1 to 255.
    /// Only the first of them carries it, so that the others hold up to 28 bytes more. They are shared where segments
    /// wait on a subflow that hardly loses any and on a connection that receives nothing meanwhile: once the first was
    /// sent, those behind it cannot be taken back.
    pub segments_per_mapping: u32,
    /// When data is sent again elsewhere.
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
    /// There is none, or it waits for more (Nagle, silly-window avoidance), or for the window.
    Nothing,
    /// The window is closed, and a hole at its left edge keeps it so.
    Blocked(Hole),
    /// This may be sent.
    Chunk(Chunk),
    /// This subflow's tail loss probe takes new data with it (RFC 8985, section 7.3), wherever it would go otherwise.
    Probe(SubflowId),
}

/// What there is to send, computed when it is looked at.
pub trait Work {
    /// The next range to be sent again; another one at each call, none at the end. What only its last subflow could take
    /// does not keep back what others can.
    fn again(&mut self) -> Option<Chunk>;

    /// Whether new data waits, sendable or not.
    fn has_unsent(&self) -> bool;

    /// The next new data.
    fn unsent(&mut self) -> Unsent;

    /// Whether no new data can be sent now: there is none, or the window is shut.
    fn is_shut(&self) -> bool;

    /// Of what each subflow has outstanding and shares with no other the oldest; of these the one with the lowest data
    /// sequence beyond `after`. What was duplicated on another subflow once is not returned again.
    fn outstanding(&mut self, after: Option<u64>) -> Option<Outstanding>;

    /// Data with a deadline that was sent and neither duplicated nor returned here before, and how long it may wait
    /// ([`Chunk::time_left`]).
    fn recent(&mut self) -> Option<(Outstanding, Duration)>;

    /// Whether the peer reported data missing on a subflow of which later data has come there, before that subflow itself
    /// could know of the loss; see [`Self::repair_missing`]. What is not repaired at once is left to its subflow.
    fn missing(&self) -> bool;

    /// Has what was reported missing sent again elsewhere: [`Self::again`] returns it.
    fn repair_missing(&mut self);

    /// Whether a subflow has not carried all of the unacknowledged stream that was sent.
    fn is_behind(&mut self, subflow: SubflowId) -> bool;

    /// Carries out what is to be done about a [`Hole`].
    fn relieve(&mut self, relief: Relief);

    /// Asks again at this time at the latest; without one, when anything changes.
    fn wait(&mut self, until: Option<Instant>);
}

/// What goes out next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// What [`Work::unsent`] returned, on this subflow.
    New(SubflowId),
    /// The range that [`Work::again`] returned last, on this subflow.
    Again(SubflowId),
    /// A copy of outstanding data, on this subflow; on the one that sent it as well, if it is named.
    Copy(Outstanding, SubflowId),
    /// The next data that this subflow has not carried ([`Work::is_behind`]).
    CatchUp(SubflowId),
    /// Nothing now.
    Wait,
}

/// Distributes the data of one connection over its subflows.
pub trait Scheduler: Send {
    /// What goes out next. `subflows` holds all of them in order of id, full and unusable ones too. A subflow that is not
    /// [`SubflowView::usable`] must not be named, nor [`Chunk::last_sent_on`] for a range that is sent again.
    ///
    /// As provided: what must be sent again comes first, then new data, each where [`Self::schedule`] puts it.
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        again(self, connection, work, subflows)
            .or_else(|| unsent(self, connection, work, subflows))
            .unwrap_or(Answer::Wait)
    }

    /// Where the chunk goes.
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision;

    /// The window closed on a hole. Called at each opportunity to send while it lasts.
    fn on_window_blocked(&mut self, _connection: &ConnectionView, _hole: &Hole, _subflows: &[SubflowView]) -> Relief {
        Relief::default()
    }

    /// What it looks at; does not change.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A subflow ended: forget it.
    fn on_subflow_removed(&mut self, _id: SubflowId) {}
}

/// Whether a subflow can be named in an answer.
fn is_usable(subflows: &[SubflowView], id: SubflowId) -> bool {
    subflows.iter().any(|subflow| subflow.id == id && subflow.usable())
}

/// The first range to be sent again that [`Scheduler::schedule`] has a subflow for.
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

/// New data, where [`Scheduler::schedule`] puts it; if the window is closed by a hole, [`Scheduler::on_window_blocked`] is asked.
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
