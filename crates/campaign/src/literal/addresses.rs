//! Our addresses: which exist, the fate of their subflows, and the announcements (RFC 8684, section 3.4).

use super::tcp::{Signal, State};
use super::{MILLI, Nanos, Peer, Protocol};
use anabranch_wire::mptcp::MptcpOption;
use std::net::SocketAddr;

/// The identifier of our address on a path: 0 for that of the initial subflow.
pub(super) fn id_of(path: usize) -> u8 {
    if path == 0 { 0 } else { path as u8 + 1 }
}

impl Peer {
    /// Whether our address on a path is up.
    pub(super) fn has(&self, path: usize) -> bool {
        path < self.addresses.len() && !self.away.contains(&path)
    }

    /// Any path on which we have an address.
    pub(super) fn any_path(&mut self) -> Option<usize> {
        let there: Vec<usize> = (0..self.addresses.len()).filter(|path| self.has(*path)).collect();
        (!there.is_empty()).then(|| self.luck.pick(&there))
    }

    /// An address of ours goes down, and with it its subflows. The peer is told on another subflow.
    pub fn leave(&mut self, now: Nanos, path: usize) {
        self.now = now;
        if !self.has(path) {
            return;
        }
        self.away.insert(path);
        self.announced.retain(|known| known.path != path);
        for index in 0..self.flows.len() {
            if self.flows[index].local.ip() == self.addresses[path] {
                self.lose(index, false);
            }
        }
        let open = (0..self.flows.len()).find(|index| self.flows[*index].is_open() && self.flows[*index].usable);
        if let Some(index) = open.filter(|_| self.protocol == Protocol::Multipath) {
            let option = MptcpOption::RemoveAddress { address_ids: vec![id_of(path)] };
            self.flows[index].due.signals.push_back(Signal::Beside(option));
        }
        self.drive();
    }

    /// An address comes up.
    pub fn come_back(&mut self, now: Nanos, path: usize) {
        self.now = now;
        if !self.away.remove(&path) || self.protocol != Protocol::Multipath || self.end.is_some() {
            return;
        }
        if self.luck.one_in(2) {
            self.announce_path(path as u8);
        }
        // Without other subflows we have waited for this.
        self.rejoin.at = self.rejoin.at.min(self.now + 100 * MILLI);
        self.drive();
    }

    /// Both addresses of the subflows that carry data.
    pub fn in_use(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let multipath = self.protocol == Protocol::Multipath && self.heard_dss;
        let used = self.flows.iter().filter(move |f| multipath && f.state == State::Established && f.may_send());
        used.map(|flow| (flow.local, flow.remote))
    }
}
