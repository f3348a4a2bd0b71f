//! A path manager that does what a test orders, and nothing else.

use crate::pair::Pair;
use anabranch_mptcp::{Endpoint, Event};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_policy::time::Instant;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// What a path manager heard, as far as tests ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    Established,
    Announced(AddressId, SocketAddr),
    Removed(AddressId),
    Priority(SubflowId, bool),
}

/// Both ends of the wire to an [`Obedient`].
#[derive(Clone, Default)]
pub struct Orders(Arc<Mutex<(Vec<PathAction>, Vec<Heard>)>>);

impl Orders {
    /// What the path manager heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.0.lock().unwrap().1.clone()
    }

    /// Has a host do something now.
    pub fn give(&self, pair: &mut Pair, host: usize, action: PathAction) {
        self.give_to(&mut pair.hosts[host], pair.now, action);
        pair.settle();
    }

    /// The same without a pair; what the host says then is the caller's to fetch.
    pub fn give_to(&self, host: &mut Endpoint, now: Instant, action: PathAction) {
        self.0.lock().unwrap().0.push(action);
        // Any event makes the path manager look at its orders: an address that never was is gone.
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

/// A pair whose path managers are obedient.
pub fn obedient_pair(paths: usize) -> (Pair, [Orders; 2]) {
    let orders = [Orders::default(), Orders::default()];
    let managers = orders.clone().map(|orders| Box::new(Obedient(orders)) as Box<dyn PathManager>);
    (Pair::with_managers(paths, managers), orders)
}

/// Opens a subflow from the local to the peer's address with these identifiers.
pub fn create(connection: ConnectionId, local: u8, remote: u8, backup: bool) -> PathAction {
    PathAction::CreateSubflow { connection, local: AddressId(local), remote: AddressId(remote), backup }
}

/// How many subflows a host saw established, the first included.
pub fn established(pair: &Pair, host: usize) -> usize {
    pair.events[host].iter().filter(|event| matches!(event, Event::SubflowEstablished(..))).count()
}
