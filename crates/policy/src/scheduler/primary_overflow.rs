//! A path is used only when those before it are full: the first in a given order whose window has room.
//!
//! Source: none published; the rule that users of bonding routers ask for ("the cheap line first, the dear one for what it
//! cannot carry"), and what a priority queue does over links. A chunk of l bytes goes to the first subflow, in the order of
//!
//! ```text
//! (place of the local address in `order`, local address, remote address, subflow id)
//! ```
//!
//! with min(l, MSS) <= w - f - q (bytes: window, in flight, queued). Round-trip times do not enter.
//!
//! Decisions:
//! - `order` is a list of local address identifiers, first to last; 0 is the address of the first subflow, the others
//!   are numbered as they are announced. Addresses that are not in it come behind, in order of identifier; with the default,
//!   none is.
//! - A path is full when its congestion window (or the peer's) is. During slow start that is early: a burst longer than the
//!   first path's window overflows although the line itself could carry it a round trip later. Whoever wants
//!   to keep a path for emergencies marks it as a backup.
//! - Reinjections obey the same order, without the subflow that had the data.
//! - Backup and stale subflows come in only when nothing better is left, as with the other schedulers: then in the same order.

use super::candidates::{excluded, fits, preferred};
use super::{Chunk, Decision, Scheduler};
use crate::ids::AddressId;
use crate::table::{Reader, SettingError, Written};
use crate::view::{ConnectionView, SubflowView};

/// The scheduler `primary_overflow`.
#[derive(Debug)]
pub struct PrimaryOverflow {
    order: Vec<AddressId>,
}

impl PrimaryOverflow {
    pub fn new(order: Vec<AddressId>) -> Self {
        Self { order }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self::new(reader.read(&Written {
            name: "order",
            default: "0",
            values: "identifiers of local addresses, first to last, as 1:0:2",
            expected: "a list of different address identifiers from 0 to 255, as 1:0:2",
            read: read_order,
            summary: "Which path comes first; those not named follow in order of identifier",
        })?)))
    }

    fn place(&self, subflow: &SubflowView) -> usize {
        self.order.iter().position(|address| *address == subflow.local_address).unwrap_or(self.order.len())
    }
}

/// Reads `1:0:2`.
fn read_order(text: &str) -> Option<Vec<AddressId>> {
    let order = text.split(':').map(|id| id.trim().parse().ok().map(AddressId)).collect::<Option<Vec<_>>>()?;
    let repeated = (1..order.len()).any(|at| order[..at].contains(&order[at]));
    (!repeated).then_some(order)
}

impl Scheduler for PrimaryOverflow {
    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        let with_room = preferred(subflows, excluded(chunk)).filter(|subflow| fits(subflow, chunk.length));
        let key = |s: &&SubflowView| (self.place(s), s.local_address, s.remote_address, s.id);
        Decision::on(with_room.min_by_key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::TABLE;
    use crate::scheduler::tests::{connection, new_data, reinjection_from, send, subflow};
    use crate::table::Settings;
    use crate::table::build;

    /// Subflows 0, 1, 2 from the addresses 1, 2, 3, the later the faster.
    fn paths() -> [SubflowView; 3] {
        [subflow(0, 300), subflow(1, 200), subflow(2, 100)]
    }

    fn ordered(order: &str) -> Box<dyn Scheduler> {
        build(TABLE, "primary_overflow", &Settings::new().with("order", order)).unwrap()
    }

    #[test]
    fn a_path_is_used_only_when_those_before_it_are_full() {
        let mut scheduler = ordered("0");
        let mut paths = paths();
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(0));
        // 9500 of 10000: no whole segment, but a last piece of 500 bytes.
        (paths[0].in_flight, paths[0].queued) = (9_000, 500);
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(1));
        let tail = Chunk { length: 500, ..new_data() };
        assert_eq!(scheduler.schedule(&connection(0), &tail, &paths), send(0));
        paths[1].in_flight = 10_000;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(2));
        paths[2].in_flight = 10_000;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), Decision::Wait(None));
        paths[0].in_flight = 8_000;
        assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(0));
    }

    #[test]
    fn a_configured_order_comes_before_that_of_the_identifiers() {
        let mut paths = paths();
        let mut scheduler = ordered("3:1");
        for expected in [2, 0, 1] {
            assert_eq!(scheduler.schedule(&connection(0), &new_data(), &paths), send(expected));
            paths[expected as usize].in_flight = 10_000;
        }
    }

    #[test]
    fn subflows_of_one_address_are_taken_in_order_of_the_remote_one() {
        let mut paths = paths();
        paths[2].local_address = AddressId(1);
        paths[0].remote_address = AddressId(4);
        assert_eq!(ordered("0").schedule(&connection(0), &new_data(), &paths), send(2));
    }

    #[test]
    fn reinjections_obey_the_order_without_the_subflow_that_had_the_data() {
        assert_eq!(ordered("0").schedule(&connection(0), &reinjection_from(0), &paths()), send(1));
        assert_eq!(ordered("3").schedule(&connection(0), &reinjection_from(0), &paths()), send(2));
    }

    #[test]
    fn a_malformed_order_is_refused_with_what_it_should_be() {
        for wrong in ["", "1:", "256", "-1", "0:1:0", "0,1"] {
            let error = build(TABLE, "primary_overflow", &Settings::new().with("order", wrong)).err();
            assert!(matches!(error, Some(SettingError::BadValue { .. })), "{wrong}: {error:?}");
        }
    }
}
