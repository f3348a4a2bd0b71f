//! Operations of the path manager: announce, withdraw, close, suspend, resume, probe.

use super::association::Protocol;
use super::reinjections::Extent;
use super::signalling::Announcement;
use super::state::Connection;
use super::timer_table::Timer;
use crate::event::SendKind;
use crate::subflow::{Signals, State, Subflow};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::MptcpOption;
use core::net::{IpAddr, SocketAddr};

/// Transmissions of an ADD_ADDR without an echo, one, two, four retransmission timeouts apart (as in Linux).
const ANNOUNCEMENT_ATTEMPTS: u32 = 4;

/// Identifiers in one REMOVE_ADDR that fit beside timestamps and DATA_ACK.
const REMOVALS_PER_OPTION: usize = 12;

impl Connection {
    /// The peer's address with this identifier; 0 is that of the initial subflow until it is withdrawn.
    pub fn remote_address(&self, id: AddressId) -> Option<SocketAddr> {
        if id == AddressId(0) && !self.joins.initial_removed {
            return Some(self.identity.initial_remote);
        }
        self.signalling.remote_addresses.iter().find(|known| known.id == id).map(|known| known.remote)
    }

    /// Announces a local address until the peer echoes it.
    pub fn announce(&mut self, now: Instant, id: AddressId, address: IpAddr) -> bool {
        let id = self.identity.wire_address(id);
        let known = self.signalling.announcements.iter().any(|announcement| announcement.matches(id, address));
        if self.association.protocol != Protocol::Multipath || known {
            return false;
        }
        self.signalling.announcements.push(Announcement { id, address, attempts: 0, next: now });
        self.send_announcements(now);
        true
    }

    /// Sends due announcements on a subflow and arms the timer for the next.
    pub(super) fn send_announcements(&mut self, now: Instant) {
        let keys = self.identity.keys;
        let Some(carrier) = self.subflows.iter_mut().find(|s| s.state == State::Established && s.handshake.confirmed)
        else {
            return;
        };
        let timeout = carrier.rtt.base_rto(&self.config.tcp);
        self.signalling.announcements.retain(|announcement| announcement.attempts < ANNOUNCEMENT_ATTEMPTS);
        for announcement in self.signalling.announcements.iter_mut().filter(|announcement| announcement.next <= now) {
            let (address_id, address) = (announcement.id, announcement.address);
            let truncated_hmac = Some(keys.sign_add_address(address_id, address, None));
            carrier.push_control(MptcpOption::AddAddress { address_id, address, port: None, truncated_hmac });
            announcement.next = now + timeout * (1_u64 << announcement.attempts);
            announcement.attempts += 1;
        }
        let next = self.signalling.announcements.iter().map(|announcement| announcement.next).min();
        self.timers.set(Timer::Announcement, next.unwrap_or(Instant::NEVER));
        self.output.pending = true;
    }

    /// Sends withdrawals that had to wait for a subflow.
    pub(super) fn resume_signalling(&mut self, now: Instant) {
        if !self.signalling.announcements.is_empty() {
            self.send_announcements(now);
        }
        let carrier = self.subflows.iter_mut().find(|s| s.state == State::Established && s.handshake.confirmed);
        if let Some(carrier) = carrier
            && !self.signalling.removals.is_empty()
        {
            for ids in core::mem::take(&mut self.signalling.removals).chunks(REMOVALS_PER_OPTION) {
                carrier.push_control(MptcpOption::RemoveAddress { address_ids: ids.to_vec() });
            }
        }
    }

    /// Withdraws a local address: sends REMOVE_ADDR, now or on the next subflow, and closes its subflows.
    pub fn withdraw_address(&mut self, now: Instant, id: AddressId) -> bool {
        let wire_id = self.identity.wire_address(id);
        if self.association.protocol != Protocol::Multipath {
            return false;
        }
        self.signalling.announcements.retain(|announcement| announcement.id != wire_id);
        let stays =
            |s: &&mut Subflow| s.state == State::Established && s.handshake.confirmed && s.identity.local_address != id;
        if let Some(carrier) = self.subflows.iter_mut().find(stays) {
            carrier.push_control(MptcpOption::RemoveAddress { address_ids: vec![wire_id] });
        } else if !self.signalling.removals.contains(&wire_id) {
            self.signalling.removals.push(wire_id);
        }
        self.leave_address(now, id);
        true
    }

    /// Removes the subflows of a local address that is gone.
    pub fn leave_address(&mut self, now: Instant, id: AddressId) {
        while let Some(handle) = self.subflows.find(|s| s.identity.local_address == id) {
            // The address can no longer send, so there is no reset.
            self.drop_subflow(now, handle, CloseReason::AddressGone);
        }
        self.output.pending = true;
    }

    /// Closes a subflow with a FIN after its data.
    pub fn close_subflow(&mut self, id: SubflowId) -> bool {
        let end = self.sender.buffer.end();
        let Some(handle) = self.subflows.handle_of(id) else { return false };
        self.take_back_queued(handle);
        let subflow = &mut self.subflows[handle];
        subflow.close(end);
        self.output.pending = true;
        true
    }

    /// Makes a subflow a backup, or not, at both ends (MP_PRIO).
    pub fn set_backup(&mut self, id: SubflowId, backup: bool) -> bool {
        let Some(subflow) = self.subflow_mut(id) else { return false };
        subflow.priority.backup_local = backup;
        let told = subflow.push_control(MptcpOption::Priority { backup });
        self.output.pending = true;
        told
    }

    /// The same for all established subflows of a local address whose flag differs.
    pub fn set_backup_from(&mut self, local: AddressId, backup: bool) {
        let differs = |subflow: &&Subflow| {
            subflow.identity.local_address == local
                && matches!(subflow.state, State::Established | State::CloseWait)
                && subflow.priority.backup_local != backup
        };
        let ids: Vec<SubflowId> = self.subflows.iter().filter(differs).map(|subflow| subflow.id()).collect();
        for id in ids {
            self.set_backup(id, backup);
        }
    }

    /// Suspends a subflow: it gets no new data, and its outstanding data is reinjected.
    pub fn suspend(&mut self, id: SubflowId) -> bool {
        let Some(handle) = self.subflows.handle_of(id) else { return false };
        let subflow = &mut self.subflows[handle];
        if core::mem::replace(&mut subflow.priority.suspended, true) {
            return false;
        }
        self.take_back_queued(handle);
        self.reinject_outstanding(handle, Extent::Missing);
        self.output.pending = true;
        true
    }

    /// Resumes a suspended subflow.
    pub fn resume(&mut self, id: SubflowId) -> bool {
        let una = self.sender.una();
        let Some(subflow) = self.subflow_mut(id) else { return false };
        subflow.cursor = subflow.cursor.max(una);
        let changed = core::mem::replace(&mut subflow.priority.suspended, false);
        self.output.pending = true;
        changed
    }

    /// Duplicates one segment of data in flight on a subflow that carries nothing, to measure it.
    pub fn probe(&mut self, id: SubflowId) -> bool {
        let Some(handle) = self.subflows.handle_of(id) else { return false };
        let only = self.subflows.len() == 1;
        let subflow = &mut self.subflows[handle];
        let una = self.sender.buffer.start();
        if !subflow.scoreboard.is_idle() {
            // At once, regardless of window and back-off.
            subflow.due.probe = true;
            self.output.pending = true;
            return true;
        }
        // A peer on the only subflow that has perhaps fallen back would read it twice.
        let alone = only && subflow.signals == Signals::Gone;
        if alone || !subflow.state.can_send() || !subflow.handshake.confirmed || una >= self.sender.data_nxt {
            return false;
        }
        let length = u64::from(subflow.mss).min(self.sender.data_nxt - una) as usize;
        let Some(payload) = self.sender.buffer.slice(una, length) else { return false };
        let subflow = &mut self.subflows[handle];
        subflow.push(una, payload, SendKind::Duplicate);
        self.output.pending = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TcpConfig;
    use crate::connection::tests::{config, connected};
    use anabranch_policy::time::Duration;

    const FIRST: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 1, 0, 1));
    const SECOND: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 2, 0, 1));

    fn on(connection: &mut Connection, id: u32) -> &mut Subflow {
        connection.subflow_mut(SubflowId(id)).unwrap()
    }

    /// The options that wait on a subflow.
    fn waiting(connection: &mut Connection, id: u32) -> Vec<MptcpOption> {
        let mut waiting = Vec::new();
        on(connection, id).control.retain(|option| {
            waiting.push(option.clone());
            true
        });
        waiting
    }

    /// Identifier and address of each ADD_ADDR that waits on the first subflow.
    fn announced(connection: &mut Connection) -> Vec<(u8, IpAddr)> {
        let of = |option: &MptcpOption| match option {
            MptcpOption::AddAddress { address_id, address, .. } => Some((*address_id, *address)),
            _ => None,
        };
        waiting(connection, 0).iter().filter_map(of).collect()
    }

    #[test]
    fn an_address_is_announced_once_until_its_own_echo_and_no_other_comes() {
        let mut connection = connected(config(), 1);
        assert!(connection.announce(Instant::ZERO, AddressId(2), FIRST));
        assert!(!connection.announce(Instant::ZERO, AddressId(2), FIRST), "its echo is awaited");
        assert!(connection.announce(Instant::ZERO, AddressId(2), SECOND));
        assert!(connection.announce(Instant::ZERO, AddressId(3), FIRST));
        assert_eq!(announced(&mut connection), [(2, FIRST), (2, SECOND), (3, FIRST)]);
        connection.association.protocol = Protocol::Tcp;
        assert!(!connection.announce(Instant::ZERO, AddressId(4), FIRST), "TCP has no addresses");
    }

    #[test]
    fn an_announcement_is_sent_four_times_with_growing_pauses_and_then_given_up() {
        let mut connection = connected(config(), 1);
        let at = |connection: &Connection| connection.timers.at(Timer::Announcement);
        let timeout = on(&mut connection, 0).rtt.base_rto(&TcpConfig::default());
        assert!(connection.announce(Instant::ZERO, AddressId(2), FIRST));
        let mut now = Instant::ZERO;
        for (sent, pause) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
            assert_eq!(connection.signalling.announcements[0].attempts, sent);
            assert_eq!(at(&connection), now + timeout * pause);
            on(&mut connection, 0).control.retain(|_| false);
            connection.send_announcements(now + Duration::from_nanos(1));
            assert!(announced(&mut connection).is_empty(), "it is not due");
            now = at(&connection);
            connection.send_announcements(now);
            assert_eq!(announced(&mut connection).len(), usize::from(sent < 4));
        }
        assert!(connection.signalling.announcements.is_empty());
        assert_eq!(at(&connection), Instant::NEVER);
    }

    #[test]
    fn what_concerns_addresses_waits_for_a_subflow_that_can_carry_it() {
        let mut connection = connected(config(), 2);
        on(&mut connection, 0).state = State::CloseWait;
        on(&mut connection, 1).handshake.confirmed = false;
        assert!(connection.announce(Instant::ZERO, AddressId(5), FIRST));
        assert!(connection.withdraw_address(Instant::ZERO, AddressId(6)));
        assert!(connection.withdraw_address(Instant::ZERO, AddressId(6)));
        assert_eq!(connection.signalling.removals, [6], "once");
        connection.resume_signalling(Instant::ZERO);
        assert_eq!((waiting(&mut connection, 0).len(), waiting(&mut connection, 1).len()), (0, 0));
        on(&mut connection, 1).handshake.confirmed = true;
        connection.resume_signalling(Instant::ZERO);
        let removal = MptcpOption::RemoveAddress { address_ids: vec![6] };
        let carried = waiting(&mut connection, 1);
        assert!(
            matches!(carried.as_slice(), [MptcpOption::AddAddress { address_id: 5, .. }, last] if *last == removal)
        );
        assert!(connection.signalling.removals.is_empty());
    }

    #[test]
    fn an_address_is_withdrawn_on_a_subflow_that_stays_and_takes_its_announcement_and_subflows_along() {
        // Subflow n has local address n + 1.
        let mut connection = connected(config(), 3);
        assert!(connection.announce(Instant::ZERO, AddressId(2), FIRST));
        assert!(connection.announce(Instant::ZERO, AddressId(3), SECOND));
        assert!(connection.withdraw_address(Instant::ZERO, AddressId(2)));
        let ids: Vec<u8> = connection.signalling.announcements.iter().map(|announcement| announcement.id).collect();
        assert_eq!(ids, [3]);
        assert!(waiting(&mut connection, 0).contains(&MptcpOption::RemoveAddress { address_ids: vec![2] }));
        assert!(connection.subflows.iter().map(|subflow| subflow.id().0).eq([0, 2]));
        connection.association.protocol = Protocol::Tcp;
        assert!(!connection.withdraw_address(Instant::ZERO, AddressId(3)));
        assert_eq!(connection.subflows.len(), 2);
    }

    #[test]
    fn the_first_address_of_the_peer_has_identifier_0_and_others_those_that_it_announced() {
        use crate::connection::signalling::RemoteAddress;
        let mut connection = connected(config(), 1);
        let remote = |port: u16| SocketAddr::new(FIRST, port);
        let known = [(3, 30), (5, 50)].map(|(id, port)| RemoteAddress { id: AddressId(id), remote: remote(port) });
        connection.signalling.remote_addresses.extend(known);
        assert_eq!(connection.remote_address(AddressId(0)), Some(([10, 0, 0, 2], 80).into()));
        assert_eq!(connection.remote_address(AddressId(5)), Some(remote(50)));
        assert_eq!(connection.remote_address(AddressId(4)), None);
    }

    #[test]
    fn the_flag_of_an_address_changes_its_established_subflows_that_differ() {
        let mut connection = connected(config(), 4);
        for id in 0..4 {
            on(&mut connection, id).identity.local_address = AddressId(if id == 3 { 9 } else { 1 });
        }
        on(&mut connection, 1).priority.backup_local = true;
        on(&mut connection, 2).state = State::FinWait1;
        connection.set_backup_from(AddressId(1), true);
        let told = |connection: &mut Connection| [0, 1, 2, 3].map(|id| waiting(connection, id).len());
        assert_eq!(told(&mut connection), [1, 0, 0, 0]);
        assert_eq!(waiting(&mut connection, 0), [MptcpOption::Priority { backup: true }]);
        on(&mut connection, 2).state = State::CloseWait;
        connection.set_backup_from(AddressId(1), true);
        assert_eq!(told(&mut connection), [1, 0, 1, 0]);
        assert!(!connection.set_backup(SubflowId(7), true), "there is none");
    }

    #[test]
    fn a_subflow_is_suspended_and_resumed_once_and_goes_on_behind_what_was_acknowledged() {
        let mut connection = connected(config(), 2);
        assert!(connection.suspend(SubflowId(1)) && !connection.suspend(SubflowId(1)));
        connection.sender.window_edge = 5_000;
        assert_eq!(connection.write(bytes::Bytes::from(vec![0; 2_000])), 2_000);
        connection.sender.data_nxt = 2_000;
        connection.sender.buffer.acknowledge(1_500);
        assert!(connection.resume(SubflowId(1)) && !connection.resume(SubflowId(1)));
        assert_eq!(on(&mut connection, 1).cursor, 1_500);
        assert!(!connection.suspend(SubflowId(7)) && !connection.resume(SubflowId(7)), "there is none");
        assert!(!connection.close_subflow(SubflowId(7)));
        assert!(connection.close_subflow(SubflowId(1)));
        assert!(on(&mut connection, 1).fin_queued());
    }

    #[test]
    fn a_path_that_carries_nothing_is_measured_with_a_segment_of_what_is_outstanding() {
        let measured = |assigned: u64, change: fn(&mut Connection)| {
            let mut connection = connected(config(), 2);
            assert_eq!(connection.write(bytes::Bytes::from(vec![0; 5_000])), 5_000);
            connection.sender.buffer.acknowledge(1_000);
            connection.sender.data_nxt = assigned;
            on(&mut connection, 1).mss = 1_000;
            change(&mut connection);
            let done = connection.probe(SubflowId(1));
            let record = on(&mut connection, 1).scoreboard.next_unsent();
            let found = record.map(|record| (record.data_seq, record.length, record.origin));
            assert_eq!(done, found.is_some());
            found.map(|(at, length, origin)| (at, length, origin == SendKind::Duplicate))
        };
        assert_eq!(measured(4_000, |_| {}), Some((1_000, 1_000, true)));
        assert_eq!(measured(1_400, |_| {}), Some((1_000, 400, true)), "no more than was assigned");
        assert_eq!(measured(1_000, |_| {}), None);
        assert_eq!(measured(4_000, |connection| on(connection, 1).state = State::FinWait2), None);
        // With options gone, on the only subflow, a peer in plain TCP would read it twice.
        let gone = |connection: &mut Connection| on(connection, 1).signals = Signals::Gone;
        assert!(measured(4_000, gone).is_some(), "it is not the only one");
        let mut only = connected(config(), 1);
        assert_eq!(only.write(bytes::Bytes::from(vec![0; 5_000])), 5_000);
        only.sender.data_nxt = 5_000;
        on(&mut only, 0).signals = Signals::Gone;
        assert!(!only.probe(SubflowId(0)));
        on(&mut only, 0).signals = Signals::Present;
        assert!(only.probe(SubflowId(0)));
    }
}
