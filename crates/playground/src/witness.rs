//! Policies that decide as those they wrap, and keep what they saw and chose.

use anabranch_mptcp::Factory;
use anabranch_policy::ids::{ConnectionId, SubflowId};
use anabranch_policy::path_manager::{ForwardDelays, Measurements, PathAction, PathEvent, PathManager};
use anabranch_policy::scheduler::{
    Answer, Chunk, ChunkKind, Decision, Hole, Needs, Outstanding, Relief, Scheduler, Unsent, Work,
};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions, and actions, that are kept.
const KEPT: usize = 50;

/// A subflow as the scheduler saw it. Sizes are bytes, times are milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    id: u32,
    srtt: f64,
    cwnd: u64,
    in_flight: u64,
    queued: u64,
    window_left: u64,
    loss_rate: f64,
    usable: bool,
    backup: bool,
    suspended: bool,
    stale: bool,
}

impl Seen {
    fn of(view: &SubflowView) -> Self {
        Self {
            id: view.id.0,
            srtt: view.smoothed_rtt.as_secs_f64() * 1e3,
            cwnd: view.cwnd,
            in_flight: view.in_flight,
            queued: view.queued,
            window_left: view.window_left,
            loss_rate: view.loss_rate,
            usable: view.usable(),
            backup: view.backup,
            suspended: view.suspended,
            stale: view.stale,
        }
    }
}

/// What a scheduler decided.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// In seconds.
    time: f64,
    /// First byte of the data; none if there was none to be asked about.
    data_seq: Option<u64>,
    length: u32,
    kind: &'static str,
    /// The subflow; none: it waits.
    choice: Option<u32>,
    view: Vec<Seen>,
}

/// What a path manager did.
#[derive(Clone, Debug, Serialize)]
pub struct Action {
    /// In seconds.
    time: f64,
    text: String,
}

/// The latest decisions and actions.
#[derive(Clone, Debug, Default)]
pub struct Log {
    choices: VecDeque<Choice>,
    actions: VecDeque<Action>,
}

/// The log that policies of a run share.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Log>>);

impl Witness {
    fn write(&self, write: impl FnOnce(&mut Log)) {
        write(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn choices(&self) -> Vec<Choice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).choices.iter().cloned().collect()
    }

    pub fn actions(&self) -> Vec<Action> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).actions.iter().cloned().collect()
    }

    /// A scheduler that decides as one of `factory`.
    pub fn scheduler(&self, factory: Factory<dyn Scheduler>) -> Factory<dyn Scheduler> {
        let witness = self.clone();
        Arc::new(move || Box::new(Watched { inner: factory(), witness: witness.clone() }))
    }

    /// A path manager that decides as one of `factory`.
    pub fn path_manager(&self, end: &'static str, inner: Box<dyn PathManager>) -> Box<dyn PathManager> {
        Box::new(Managed { inner, end, witness: self.clone() })
    }
}

fn push<T>(log: &mut VecDeque<T>, entry: T) {
    if log.len() == KEPT {
        log.pop_front();
    }
    log.push_back(entry);
}

struct Watched {
    inner: Box<dyn Scheduler>,
    witness: Witness,
}

/// The data that a scheduler asks about.
struct Heard<'a> {
    work: &'a mut dyn Work,
    last: Option<Chunk>,
}

impl Work for Heard<'_> {
    fn again(&mut self) -> Option<Chunk> {
        let chunk = self.work.again();
        self.last = chunk.or(self.last);
        chunk
    }

    fn has_unsent(&self) -> bool {
        self.work.has_unsent()
    }

    fn unsent(&mut self) -> Unsent {
        let unsent = self.work.unsent();
        if let Unsent::Chunk(chunk) = unsent {
            self.last = Some(chunk);
        }
        unsent
    }

    fn is_shut(&self) -> bool {
        self.work.is_shut()
    }

    fn outstanding(&mut self, after: Option<u64>) -> Option<Outstanding> {
        self.work.outstanding(after)
    }

    fn recent(&mut self) -> Option<(Outstanding, Duration)> {
        self.work.recent()
    }

    fn missing(&self) -> bool {
        self.work.missing()
    }

    fn repair_missing(&mut self) {
        self.work.repair_missing();
    }

    fn is_behind(&mut self, subflow: SubflowId) -> bool {
        self.work.is_behind(subflow)
    }

    fn relieve(&mut self, relief: Relief) {
        self.work.relieve(relief);
    }

    fn wait(&mut self, until: Option<Instant>) {
        self.work.wait(until);
    }
}

impl Scheduler for Watched {
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        let mut heard = Heard { work, last: None };
        let answer = self.inner.next(connection, &mut heard, subflows);
        let asked = heard.last;
        let (choice, kind, copied) = match answer {
            Answer::New(id) => (Some(id), "new", None),
            Answer::Again(id) => (Some(id), "reinjection", None),
            Answer::Copy(data, id) => (Some(id), "duplicate", Some((data.data_seq, data.length))),
            Answer::CatchUp(id) => (Some(id), "duplicate", None),
            Answer::Wait => {
                let kind =
                    if asked.is_some_and(|chunk| chunk.kind == ChunkKind::Reinjection) { "reinjection" } else { "new" };
                (None, kind, None)
            }
        };
        let data = copied.or(asked.map(|chunk| (chunk.data_seq, chunk.length)));
        // A wait without data tells nothing.
        if choice.is_some() || data.is_some() {
            let entry = Choice {
                time: connection.now.since(Instant::ZERO).as_secs_f64(),
                data_seq: data.map(|(data_seq, _)| data_seq),
                length: data.map_or(0, |(_, length)| length),
                kind,
                choice: choice.map(|id| id.0),
                view: subflows.iter().map(Seen::of).collect(),
            };
            self.witness.write(|log| push(&mut log.choices, entry));
        }
        answer
    }

    fn schedule(&mut self, connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        self.inner.schedule(connection, chunk, subflows)
    }

    fn on_window_blocked(&mut self, connection: &ConnectionView, hole: &Hole, subflows: &[SubflowView]) -> Relief {
        self.inner.on_window_blocked(connection, hole, subflows)
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn on_subflow_removed(&mut self, id: SubflowId) {
        self.inner.on_subflow_removed(id);
    }
}

struct Managed {
    inner: Box<dyn PathManager>,
    end: &'static str,
    witness: Witness,
}

impl PathManager for Managed {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        let before = actions.len();
        self.inner.handle(now, event, actions);
        for text in actions.iter().skip(before).filter_map(describe) {
            let time = now.since(Instant::ZERO).as_secs_f64();
            let text = format!("{}: {text}, {}", self.end, reason(event));
            self.witness.write(|log| push(&mut log.actions, Action { time, text }));
        }
    }

    fn measurements(&self) -> Measurements {
        self.inner.measurements()
    }

    fn forward_delays(&self) -> ForwardDelays {
        self.inner.forward_delays()
    }
}

/// An action in words; none for what has no effect on paths.
fn describe(action: &PathAction) -> Option<String> {
    Some(match action {
        PathAction::Announce { local, .. } => format!("announces {local:?}"),
        PathAction::Remove { local, .. } => format!("withdraws {local:?}"),
        PathAction::CreateSubflow { local, remote, backup, .. } => {
            let kind = if *backup { "a backup subflow" } else { "a subflow" };
            format!("opens {kind} from {local:?} to {remote:?}")
        }
        PathAction::CloseSubflow { subflow, .. } => format!("closes {subflow:?}"),
        PathAction::SetBackup { subflow, backup: true, .. } => format!("makes {subflow:?} a backup"),
        PathAction::SetBackup { subflow, .. } => format!("makes {subflow:?} no backup any more"),
        PathAction::Suspend { subflow, .. } => format!("suspends {subflow:?}"),
        PathAction::Resume { subflow, .. } => format!("resumes {subflow:?}"),
        PathAction::Probe { subflow, .. } => format!("probes {subflow:?}"),
        PathAction::WakeAt(_) => return None,
    })
}

/// The event in words.
fn reason(event: &PathEvent<'_>) -> String {
    let round_trips = |subflows: &[SubflowView]| {
        let one = |view: &SubflowView| format!("{:?} {:.0} ms", view.id, view.smoothed_rtt.as_secs_f64() * 1e3);
        subflows.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match event {
        PathEvent::AddressUp { id, .. } => format!("since {id:?} is available"),
        PathEvent::AddressDown { id } => format!("since {id:?} is gone"),
        PathEvent::ConnectionEstablished { .. } => "since the connection is established".to_owned(),
        PathEvent::ConnectionClosed { connection: ConnectionId(_) } => "since the connection ended".to_owned(),
        PathEvent::AddressAnnounced { id, .. } => format!("since the peer announced {id:?}"),
        PathEvent::AddressRemoved { id, .. } => format!("since the peer withdrew {id:?}"),
        PathEvent::SubflowEstablished { subflow, .. } => format!("since {subflow:?} is established"),
        PathEvent::SubflowClosed { subflow, reason, .. } => format!("since {subflow:?} ended ({reason:?})"),
        PathEvent::SubflowPriority { subflow, .. } => format!("since the peer changed the priority of {subflow:?}"),
        PathEvent::Measured { subflows, .. } => format!("by measured round-trip times: {}", round_trips(subflows)),
        PathEvent::ReceiveBufferBlocked { hole, subflows, .. } => {
            format!("since the receive buffer is blocked at byte {hole}; round-trip times: {}", round_trips(subflows))
        }
        PathEvent::ReceiverBlocked { hole, .. } => format!("since bytes from {hole} on are missing at the receiver"),
        PathEvent::SubflowTimeout { subflow, .. } => format!("since a retransmission timer of {subflow:?} expired"),
        PathEvent::Wake => "at a time that it had set".to_owned(),
    }
}
