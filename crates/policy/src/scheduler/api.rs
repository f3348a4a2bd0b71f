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
    pub holder: SubflowId,
    /// When it was sent there last.
    pub sent_at: Instant,
    /// The holder found it lost; it sends it again, or has.
    pub lost: bool,
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

/// Distributes the data of one connection over its subflows.
pub trait Scheduler: Send {
    /// Where the chunk goes. `subflows` holds all of them in order of id, full and unusable ones too. A subflow
    /// that is not [`SubflowView::usable`] must not be chosen, nor `chunk.last_sent_on` for a reinjection.
    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision;

    /// The window closed on a hole. Called at each opportunity to send while it lasts.
    fn on_window_blocked(&mut self, _connection: &ConnectionView, _hole: &Hole, _subflows: &[SubflowView]) -> Relief {
        Relief::default()
    }

    /// Whether [`Self::duplicate`] is to be asked.
    fn duplicates(&self) -> bool {
        false
    }

    /// Whether what is outstanding comes before new data now, so that [`Self::duplicate`] is asked first.
    fn duplicates_first(&mut self, _connection: &ConnectionView, _subflows: &[SubflowView]) -> bool {
        false
    }

    /// Nothing new can be sent now, because there is nothing or because the window is shut: whether another subflow
    /// should send this too. Asked for the data of each subflow from the oldest on, in order of the stream; for a
    /// subflow that gets none it is asked again at the next opportunity. What was given to another subflow once is
    /// not asked for again. A subflow that is not usable or is the holder must not be named.
    fn duplicate(
        &mut self,
        _connection: &ConnectionView,
        _outstanding: &Outstanding,
        _subflows: &[SubflowView],
    ) -> Option<SubflowId> {
        None
    }

    /// Nothing new can be sent now: whether a subflow should send this, which it sent, a second time at once. Asked once of
    /// what has a deadline, that is `time_left` away ([`Chunk::time_left`]), and was not sent a second time elsewhere.
    fn twice(
        &mut self,
        _connection: &ConnectionView,
        _outstanding: &Outstanding,
        _time_left: Duration,
        _subflows: &[SubflowView],
    ) -> bool {
        false
    }

    /// The peer says that what a subflow sent has not come there, though what went behind it has: whether it goes elsewhere
    /// at once, and not when the subflow itself has found it lost. Schedulers that duplicate are told
    /// ([`Self::duplicates`]); it costs a segment, since the subflow sends it again in any case.
    fn repairs_elsewhere(&mut self, _connection: &ConnectionView) -> bool {
        false
    }

    /// After how many smoothed round trips without any acknowledgement, with data outstanding, a subflow counts as
    /// stale and its data is sent elsewhere; none: only after a retransmission timeout.
    fn silence(&self) -> Option<f32> {
        None
    }

    /// Whether a subflow with room should walk the unacknowledged stream itself, sending what others have sent
    /// already (ReMP). The engine keeps one cursor per subflow.
    fn redundant(&self) -> bool {
        false
    }

    /// How many consecutive segments of a subflow may share one mapping (RFC 8684, section 3.3.1), 1 to 255.
    /// Only the first of them carries it, so that the others hold up to 28 bytes more. They are shared where segments
    /// wait on a subflow that hardly loses any and on a connection that receives nothing meanwhile: once the first has
    /// left, those behind it cannot be taken back.
    fn mapping_train(&self) -> u32 {
        1
    }

    /// When data is sent again elsewhere.
    fn reinjection(&self) -> Reinjection {
        Reinjection::OnSubflowTimeout
    }

    /// A subflow ended: forget it.
    fn on_subflow_removed(&mut self, _id: SubflowId) {}
}
