//! The MPTCP options that manage a connection rather than carry its data (RFC 8684, sections 3.3.8 to 3.7).

use super::paths::RemoteAddress;
use super::{Connection, Notice, Protocol};
use crate::event::CloseCause;
use crate::subflow::Subflow;
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::{MptcpOption, Segment};
use core::net::{IpAddr, SocketAddr};

/// Addresses of the peer's that are remembered; further announcements are ignored.
const MAX_REMOTE_ADDRESSES: usize = 32;

impl Connection {
    /// Handles what options a segment has besides DSS. Gives true if the connection ended or the subflow is gone.
    pub(super) fn handle_mptcp_options(&mut self, now: Instant, index: usize, segment: &Segment) -> bool {
        if segment.options.mptcp.is_empty() || self.protocol != Protocol::Multipath {
            return false;
        }
        let Some(id) = self.subflows.get(index).map(Subflow::id) else { return true };
        for option in &segment.options.mptcp {
            let Some(index) = self.index_of(id) else { return true };
            match option {
                MptcpOption::FastClose { .. } if self.is_our_fast_close(option) => {
                    self.reset_all(CloseCause::AbortedByPeer);
                    return true;
                }
                MptcpOption::Fail { data_seq } => self.handle_failure(now, index, *data_seq),
                MptcpOption::Priority { backup } => self.handle_priority(id, *backup),
                MptcpOption::AddAddress { address_id, address, port, truncated_hmac } => {
                    self.handle_add_address(id, *address_id, *address, *port, *truncated_hmac);
                }
                MptcpOption::RemoveAddress { address_ids } => self.handle_remove_address(now, address_ids),
                // Again on data after the handshake, or meant for other segments: nothing to do.
                MptcpOption::Capable { .. }
                | MptcpOption::JoinSyn { .. }
                | MptcpOption::JoinSynAck { .. }
                | MptcpOption::JoinAck { .. }
                | MptcpOption::FastClose { .. }
                | MptcpOption::TcpReset { .. }
                | MptcpOption::Experimental { .. } => {}
            }
        }
        self.index_of(id).is_none()
    }

    /// MP_PRIO speaks of the subflow that it comes on.
    fn handle_priority(&mut self, id: SubflowId, backup: bool) {
        if let Some(subflow) = self.subflow_mut(id)
            && core::mem::replace(&mut subflow.backup_remote, backup) != backup
        {
            self.notices.push_back(Notice::Priority(id, backup));
        }
    }

    /// ADD_ADDR: an echo settles our announcement; an announcement is checked, echoed and passed on.
    fn handle_add_address(&mut self, on: SubflowId, id: u8, address: IpAddr, port: Option<u16>, hmac: Option<u64>) {
        let Some(hmac) = hmac else {
            self.announcements.retain(|announcement| !announcement.matches(id, address));
            return;
        };
        if !self.keys.verify_add_address(id, address, port, hmac) {
            self.stats.bad_hmacs += 1;
            return;
        }
        if let Some(subflow) = self.subflow_mut(on) {
            let echo = MptcpOption::AddAddress { address_id: id, address, port, truncated_hmac: None };
            if !subflow.control.contains(&echo) {
                subflow.push_control(echo);
            }
        }
        let remote = SocketAddr::new(address, port.unwrap_or(self.initial_remote.port()));
        let id = AddressId(id);
        if self.remember_remote_address(id, remote) {
            self.notices.push_back(Notice::AddressAnnounced(id, remote));
        }
    }

    /// Gives whether the address is new; it is said again until echoed.
    fn remember_remote_address(&mut self, id: AddressId, remote: SocketAddr) -> bool {
        let full = self.remote_addresses.len() >= MAX_REMOTE_ADDRESSES;
        match self.remote_addresses.iter_mut().find(|known| known.id == id) {
            Some(known) => core::mem::replace(&mut known.remote, remote) != remote,
            None if full => false,
            None => {
                self.remote_addresses.push(RemoteAddress { id, remote });
                true
            }
        }
    }

    /// REMOVE_ADDR: the address is gone, and so are its subflows.
    fn handle_remove_address(&mut self, now: Instant, ids: &[u8]) {
        for id in ids.iter().map(|id| AddressId(*id)) {
            self.remote_addresses.retain(|known| known.id != id);
            self.notices.push_back(Notice::AddressRemoved(id));
            while let Some(index) = self.subflows.iter().position(|s| s.identity.remote_address == id) {
                self.reset_subflow(now, index, CloseReason::AddressGone, None);
            }
        }
    }
}
