//! A path manager controlled by the test.

use crate::pair::Pair;
use anabranch_mptcp::{Endpoint, Event};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_policy::time::Instant;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// What a path manager was told, as far as tests need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    Established,
    Announced(AddressId, SocketAddr),
    Removed(AddressId),
    Priority(SubflowId, bool),
}

/// The shared state of a test and an [`Obedient`].
#[derive(Clone, Default)]
pub struct Orders(Arc<Mutex<(Vec<PathAction>, Vec<Heard>)>>);

impl Orders {
    /// What the path manager was told so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.0.lock().unwrap().1.clone()
    }

    /// Makes a host carry out an action now.
    pub fn give(&self, pair: &mut Pair, host: usize, action: PathAction) {
        self.give_to(&mut pair.hosts[host], pair.now, action);
        pair.settle();
    }

    /// The same without a pair; the caller fetches the host's output.
    pub fn give_to(&self, host: &mut Endpoint, now: Instant, action: PathAction) {
        self.0.lock().unwrap().0.push(action);
        // Any event makes the path manager carry out its orders: an unknown address is removed.
        host.handle_address_down(now, AddressId(250));
    }
}

/// The path manager.
pub struct Obedient(pub Orders);

impl PathManager for Obedient {
    fn handle(&mut self, _now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        let mut orders = self.0.0.lock().unwrap();
        actions.append(&mut orders.0);
        let heard = match *event {
            PathEvent::ConnectionEstablished { .. } => Heard::Established,
            PathEvent::AddressAnnounced { id, remote, .. } => Heard::Announced(id, remote),
            PathEvent::AddressRemoved { id, .. } => Heard::Removed(id),
            PathEvent::SubflowPriority { subflow, backup, .. } => Heard::Priority(subflow, backup),
            _ => return,
        };
        orders.1.push(heard);
    }
}

/// A pair whose path managers are controlled by the test.
pub fn obedient_pair(paths: usize) -> (Pair, [Orders; 2]) {
    let orders = [Orders::default(), Orders::default()];
    let managers = orders.clone().map(|orders| Box::new(Obedient(orders)) as Box<dyn PathManager>);
    (Pair::with_managers(paths, managers), orders)
}

/// Opens a subflow between the local and the peer's address with these IDs.
pub fn create(connection: ConnectionId, local: u8, remote: u8, backup: bool) -> PathAction {
    PathAction::CreateSubflow { connection, local: AddressId(local), remote: AddressId(remote), backup }
}

/// The number of subflows established at a host, including the first.
pub fn established(pair: &Pair, host: usize) -> usize {
    pair.events[host].iter().filter(|event| matches!(event, Event::SubflowEstablished(..))).count()
}
