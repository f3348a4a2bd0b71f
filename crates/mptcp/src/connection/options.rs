//! Handles the MPTCP options that manage a connection (RFC 8684, sections 3.3.8 to 3.7).

use super::association::Protocol;
use super::output::Notice;
use super::packets::REASON_UNSPECIFIED;
use super::reinjections::Extent;
use super::signalling::RemoteAddress;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::{Subflow, Suspicion};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, Role};
use anabranch_policy::time::Instant;
use anabranch_wire::{MptcpOption, Segment};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Keepalive probes of a path whose address the peer withdrew, one retransmission timeout apart.
const SUSPICION_PROBES: u32 = 3;

/// Limit of stored addresses of the peer; further announcements are ignored.
const MAX_REMOTE_ADDRESSES: usize = 32;

impl Connection {
    /// Handles the options of a segment except DSS. Returns true if the connection has ended or the subflow is gone.
    pub(super) fn handle_mptcp_options(&mut self, now: Instant, handle: Handle, segment: &Segment) -> bool {
        if segment.options.mptcp.is_empty() || self.association.protocol != Protocol::Multipath {
            return false;
        }
        let id = self.subflows[handle].id();
        for option in &segment.options.mptcp {
            if !self.subflows.has(handle) {
                return true;
            }
            match option {
                MptcpOption::FastClose { .. } if self.is_our_fast_close(option) => {
                    self.close_fast(now);
                    return true;
                }
                MptcpOption::Fail { data_seq } => self.handle_failure(now, handle, *data_seq, segment.seq),
                MptcpOption::Priority { backup } => self.handle_priority(id, *backup),
                MptcpOption::AddAddress { address_id, address, port, truncated_hmac } => {
                    self.handle_add_address(id, *address_id, *address, *port, *truncated_hmac);
                }
                MptcpOption::RemoveAddress { address_ids } => self.handle_remove_address(now, address_ids),
                // A repetition: our answer was lost (RFC 8684, section 3.2).
                MptcpOption::JoinAck { .. } => {
                    self.subflow_mut(id).into_iter().for_each(|subflow| subflow.receiver.acknowledge_now());
                }
                // Repeated on data after the handshake, or meant for other segments: ignored.
                MptcpOption::Capable { .. }
                | MptcpOption::JoinSyn { .. }
                | MptcpOption::JoinSynAck { .. }
                | MptcpOption::FastClose { .. }
                | MptcpOption::TcpReset { .. } => {}
                MptcpOption::Experimental { .. } => self.handle_notice(now, option),
            }
        }
        !self.subflows.has(handle)
    }

    /// MP_PRIO applies to the subflow on which it arrives.
    fn handle_priority(&mut self, id: SubflowId, backup: bool) {
        if let Some(subflow) = self.subflow_mut(id)
            && core::mem::replace(&mut subflow.priority.backup_remote, backup) != backup
        {
            self.output.tell(Notice::Priority(id, backup));
        }
    }

    /// ADD_ADDR: an echo confirms our announcement; an announcement is verified, echoed and passed on.
    fn handle_add_address(&mut self, on: SubflowId, id: u8, address: IpAddr, port: Option<u16>, hmac: Option<u64>) {
        let Some(hmac) = hmac else {
            self.signalling.announcements.retain(|announcement| !announcement.matches(id, address));
            return;
        };
        if !self.identity.keys.verify_add_address(id, address, port, hmac) {
            self.stats.bad_hmacs = self.stats.bad_hmacs.saturating_add(1);
            return;
        }
        if let Some(subflow) = self.subflow_mut(on) {
            let echo = MptcpOption::AddAddress { address_id: id, address, port, truncated_hmac: None };
            if !subflow.control.contains(&echo) {
                subflow.push_control(echo);
            }
        }
        let known = self.subflows.iter().find(|subflow| subflow.id() == on).map(|s| s.identity.remote.port());
        let remote = SocketAddr::new(address, port.or(known).unwrap_or(self.identity.initial_remote.port()));
        let id = AddressId(id);
        // Before joins may begin the path manager of a client hears of nothing; then of all that is known.
        if may_be_of_peer(address, self.identity.initial_remote.ip())
            && self.remember_remote_address(id, remote)
        // The path manager of a client is notified only once joins are allowed, then of all addresses known.
            && (self.association.confirmed || self.identity.role == Role::Server)
        {
            self.output.tell(Notice::AddressAnnounced(id, remote));
        }
    }

    /// Returns whether the address is new; announcements are repeated until echoed.
    fn remember_remote_address(&mut self, id: AddressId, remote: SocketAddr) -> bool {
        let full = self.signalling.remote_addresses.len() >= MAX_REMOTE_ADDRESSES;
        match self.signalling.remote_addresses.iter_mut().find(|known| known.id == id) {
            // An identifier must be withdrawn before it may be used for another address (RFC 8684, section 3.4.1).
            Some(known) if known.remote.ip() != remote.ip() => false,
            Some(known) => core::mem::replace(&mut known.remote, remote) != remote,
            None if full => false,
            None => {
                self.signalling.remote_addresses.push(RemoteAddress { id, remote });
                true
            }
        }
    }

    /// REMOVE_ADDR: no new subflow is opened to the address. Existing ones are closed if they do not answer keepalive
    /// probes, since the option is not authenticated (RFC 8684, section 3.4.2).
    fn handle_remove_address(&mut self, now: Instant, ids: &[u8]) {
        for id in ids.iter().map(|id| AddressId(*id)) {
            self.signalling.remote_addresses.retain(|known| known.id != id);
            self.joins.initial_removed |= id == AddressId(0);
            self.output.tell(Notice::AddressRemoved(id));
            let affected: Vec<SubflowId> =
                self.subflows.iter().filter(|s| s.identity.remote_address == id).map(Subflow::id).collect();
            for subflow in affected {
                self.suspicion(now, subflow);
            }
        }
    }

    /// Probes a path whose address the peer withdrew. Meanwhile its data is reinjected.
    fn suspicion(&mut self, now: Instant, id: SubflowId) {
        let Some(handle) = self.subflows.handle_of(id) else { return };
        let subflow = &mut self.subflows[handle];
        if !subflow.state.is_synchronised() {
            return self.reset_subflow(now, handle, CloseReason::AddressGone, REASON_UNSPECIFIED);
        }
        if subflow.suspicion.is_some() {
            return;
        }
        subflow.suspicion = Some(Box::new(Suspicion { since: now, probes: 0, until: Instant::NEVER }));
        self.take_back_queued(handle);
        self.reinject_outstanding(handle, Extent::All);
        self.probe_suspect(now, handle);
    }

    /// Probes such a path again, or decides. Returns false if it must be closed.
    pub(super) fn probe_suspect(&mut self, now: Instant, handle: Handle) -> bool {
        let subflow = &mut self.subflows[handle];
        let rto = subflow.rtt.base_rto(&self.config.tcp);
        let Some(mut suspicion) = subflow.suspicion.take() else { return true };
        // Segments in flight before the first probe are no answer.
        let earliest = suspicion.since + subflow.rtt.min() / 2;
        if suspicion.probes > 0 && subflow.unheard(now) < now.since(earliest) {
            subflow.suspicion = None;
            self.output.pending = true;
            return true;
        }
        if suspicion.probes >= SUSPICION_PROBES {
            self.reset_subflow(now, handle, CloseReason::AddressGone, REASON_UNSPECIFIED);
            return false;
        }
        suspicion.probes += 1;
        suspicion.until = now + rto;
        subflow.suspicion = Some(suspicion);
        subflow.due.keepalive = true;
        self.output.pending = true;
        true
    }
}

/// Whether an announced address can belong to a peer that has the address `known`. A join to any other address would go
/// nowhere, or to a service on this host. Only a peer on loopback has loopback addresses.
fn may_be_of_peer(address: IpAddr, known: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let is_nobodys = address.is_unspecified() || address.is_multicast() || is_broadcast;
    !is_nobodys && (!address.to_canonical().is_loopback() || known.is_loopback())
}
