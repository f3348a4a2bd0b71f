//! A path manager that opens a full mesh and suspends subflows by a rule; what all such managers have in common.
//!
//! At each event that the rule acts on: adopts the state of the engine, lets the rule decide, replaces active subflows
//! if all are dead, and once per measurement probes the suspended ones ([`Suspensions`]).

use super::api::{ForwardDelays, Measurements, PathAction, PathEvent, PathManager};
use super::full_mesh::{FullMesh, MeshSettings};
use super::suspension::Suspensions;
use crate::ids::{ConnectionId, SubflowId};
use crate::time::Instant;
use crate::view::{ConnectionView, SubflowView};
use std::collections::BTreeMap;

/// An event with the state of all subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occasion {
    /// [`PathEvent::Measured`].
    Measured,
    /// [`PathEvent::ReceiveBufferBlocked`].
    SenderBlocked,
    /// [`PathEvent::ReceiverBlocked`].
    ReceiverBlocked,
    /// [`PathEvent::SubflowTimeout`] of this subflow.
    Timeout(SubflowId),
}

/// A connection as a rule sees it, and the rule's operations.
#[derive(Debug)]
pub struct Situation<'a> {
    pub connection: &'a ConnectionView,
    /// In order of id.
    pub subflows: &'a [SubflowView],
    pub(super) suspensions: &'a mut Suspensions,
    pub(super) actions: &'a mut Vec<PathAction>,
}

impl Situation<'_> {
    /// Suspends a subflow, unless no other path would stay active.
    pub(super) fn suspend(&mut self, view: &SubflowView) {
        self.suspensions.suspend(self.connection, view, self.subflows, self.actions);
    }

    /// Resumes a subflow.
    pub(super) fn resume(&mut self, id: SubflowId) {
        self.suspensions.resume(self.connection.id, id, self.actions);
    }
}

/// State of a rule for a connection.
pub trait Memory: Default + Send {
    /// Removes the state of a subflow.
    fn forget(&mut self, subflow: SubflowId);
}

/// A rule that suspends and resumes subflows.
pub trait Rule: Send {
    /// Its state of a connection.
    type Memory: Memory;

    /// Decides about the subflows of a connection.
    fn decide(&self, occasion: Occasion, memory: &mut Self::Memory, situation: &mut Situation<'_>);

    /// Whether it acts on such an event.
    fn acts_on(&self, occasion: Occasion) -> bool {
        matches!(occasion, Occasion::Measured | Occasion::Timeout(_))
    }

    /// Whether a suspended subflow is resumed when all active ones have an unanswered timeout and it has none.
    fn replaces_dead(&self) -> bool {
        true
    }

    /// The peer changed the priority of a subflow: whether it is resumed at once.
    fn takes_back(&self, _memory: &mut Self::Memory, _subflow: SubflowId, _backup: bool) -> bool {
        false
    }

    fn mesh(&self) -> MeshSettings;

    fn measurements(&self) -> Measurements {
        Measurements::EveryRoundTrip
    }

    fn forward_delays(&self) -> ForwardDelays {
        ForwardDelays::Unmeasured
    }
}

/// State of a connection.
#[derive(Debug, Default)]
pub(super) struct Known<M> {
    pub(super) memory: M,
    suspensions: Suspensions,
}

/// A full mesh whose subflows a rule suspends.
pub struct Suspending<R: Rule> {
    rule: R,
    mesh: FullMesh,
    pub(super) connections: BTreeMap<ConnectionId, Known<R::Memory>>,
}

impl<R: Rule> Suspending<R> {
    pub fn new(rule: R) -> Self {
        Self { mesh: FullMesh::new(rule.mesh()), rule, connections: BTreeMap::new() }
    }

    /// Follows connections and subflows as they begin and end.
    fn follow(&mut self, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        match *event {
            PathEvent::ConnectionEstablished { connection, .. } => {
                self.connections.entry(connection).or_default().suspensions.established(SubflowId(0));
            }
            PathEvent::ConnectionClosed { connection } => {
                self.connections.remove(&connection);
            }
            PathEvent::SubflowEstablished { connection, subflow, .. } => {
                let Some(known) = self.connections.get_mut(&connection) else { return };
                known.suspensions.established(subflow);
            }
            PathEvent::SubflowClosed { connection, subflow, .. } => {
                let Some(known) = self.connections.get_mut(&connection) else { return };
                known.memory.forget(subflow);
                known.suspensions.closed(connection, subflow, actions);
            }
            PathEvent::SubflowPriority { connection, subflow, backup } => {
                let Some(known) = self.connections.get_mut(&connection) else { return };
                if self.rule.takes_back(&mut known.memory, subflow, backup) {
                    known.suspensions.resume(connection, subflow, actions);
                }
            }
            _ => {}
        }
    }
}

impl<R: Rule> PathManager for Suspending<R> {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.mesh.handle(now, event, actions);
        self.follow(event, actions);
        let (occasion, connection, subflows) = match *event {
            PathEvent::Measured { connection, subflows } => (Occasion::Measured, connection, subflows),
            PathEvent::ReceiveBufferBlocked { connection, subflows, .. } => {
                (Occasion::SenderBlocked, connection, subflows)
            }
            PathEvent::ReceiverBlocked { connection, subflows, .. } => {
                (Occasion::ReceiverBlocked, connection, subflows)
            }
            PathEvent::SubflowTimeout { connection, subflows, subflow } => {
                (Occasion::Timeout(subflow), connection, subflows)
            }
            _ => return,
        };
        let Some(known) = self.connections.get_mut(&connection.id).filter(|_| self.rule.acts_on(occasion)) else {
            return;
        };
        known.suspensions.observe(connection, subflows, actions);
        let mut situation = Situation { connection, subflows, suspensions: &mut known.suspensions, actions };
        self.rule.decide(occasion, &mut known.memory, &mut situation);
        if self.rule.replaces_dead() {
            known.suspensions.replace_dead(connection.id, actions);
        }
        if occasion == Occasion::Measured {
            known.suspensions.probe(now, connection.id, subflows, actions);
        }
    }

    fn measurements(&self) -> Measurements {
        self.rule.measurements()
    }

    fn forward_delays(&self) -> ForwardDelays {
        self.rule.forward_delays()
    }
}
