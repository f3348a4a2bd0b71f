//! Other signals of MPTCP: addresses (RFC 8684, section 3.4), priorities (3.3.8), MP_FAIL (3.7); and actions of a
//! history that no application requests.

use super::action::{Action, Announced};
use super::choices::Choice;
use super::tcp::{Kind, Signal, State};
use super::{NEVER, Nanos, Peer, Protocol, keys};
use anabranch_wire::mptcp::MptcpOption;
use std::net::SocketAddr;

impl Peer {
    pub(super) fn option_arrives(&mut self, index: usize, option: &MptcpOption) {
        match option {
            MptcpOption::AddAddress { address_id, address, port, truncated_hmac: Some(proof) } => {
                let (key, peer) = (self.secrets.key, self.secrets.peer_key);
                if keys::address(peer, key, *address_id, *address, *port) != *proof {
                    return;
                }
                let echo = MptcpOption::AddAddress {
                    address_id: *address_id,
                    address: *address,
                    port: *port,
                    truncated_hmac: None,
                };
                self.flows[index].due.signals.push_back(Signal::Alone(echo));
                let target = SocketAddr::new(*address, port.unwrap_or(self.flows[index].remote.port()));
                if !self.known.contains(&target) && self.known.len() < 8 {
                    self.known.push(target);
                    if self.choice(Choice::Joins) == 0
                        && self.heard_dss
                        && self.end.is_none()
                        && let Some(path) = self.any_path()
                    {
                        self.join(path, target, self.secrets.peer_token);
                    }
                }
            }
            MptcpOption::AddAddress { address_id, truncated_hmac: None, .. } => {
                self.announced.retain(|announced| announced.id != *address_id);
            }
            MptcpOption::Priority { backup } => self.flows[index].backup = *backup,
            MptcpOption::FastClose { key } if *key == self.secrets.key => self.fast_closed(),
            MptcpOption::Fail { .. } => {
                let number = self.secrets.peer_first.wrapping_add(self.data.rcv_nxt);
                self.flows[index].due.signals.push_back(Signal::Alone(MptcpOption::Fail { data_seq: number }));
                self.fall_back(None);
            }
            _ => {}
        }
    }

    /// The target of a join.
    pub(super) fn join_target(&mut self) -> Option<SocketAddr> {
        let mut targets = self.known.clone();
        targets.extend(self.initial_remote.filter(|_| !self.peer_denies));
        (!targets.is_empty()).then(|| self.luck.pick(&targets))
    }

    pub(super) fn announce_again(&mut self) {
        for place in 0..self.announced.len() {
            if self.announced[place].again_at <= self.now {
                self.announce(place);
            }
        }
        self.announced.retain(|announced| announced.tries < 5);
    }

    fn announce(&mut self, place: usize) {
        let announced = &mut self.announced[place];
        announced.tries += 1;
        announced.again_at = self.now + 1_500 * super::MILLI;
        let Some(index) = self.open_flow(place as u8) else { return };
        let announced = &self.announced[place];
        let (id, address) = (announced.id, self.addresses[announced.path]);
        let proof = keys::address(self.secrets.key, self.secrets.peer_key, id, address, None);
        let option = MptcpOption::AddAddress { address_id: id, address, port: None, truncated_hmac: Some(proof) };
        self.flows[index].due.signals.push_back(Signal::Alone(option));
    }

    fn open_flow(&self, number: u8) -> Option<usize> {
        let open: Vec<usize> =
            (0..self.flows.len()).filter(|index| self.flows[*index].is_open() && self.flows[*index].usable).collect();
        (!open.is_empty()).then(|| open[usize::from(number) % open.len()])
    }

    /// Carries out an action of a history, if the RFC allows it now.
    pub fn act(&mut self, now: Nanos, action: Action) {
        self.now = now;
        if self.protocol != Protocol::Multipath || !self.heard_dss || !self.secrets.confirmed || self.end.is_some() {
            return;
        }
        self.do_act(action);
        self.drive();
    }

    fn do_act(&mut self, action: Action) {
        match action {
            Action::Join(path) => self.join_from(path, self.secrets.peer_token),
            Action::JoinUnknown(path) => self.join_from(path, !self.secrets.peer_token),
            Action::Announce(path) => self.announce_path(path),
            Action::Withdraw(path) => self.withdraw_path(path),
            Action::Priority(number) => self.change_priority(number),
            Action::Reset(number) => self.reset_one(number),
            Action::Fin(number) => self.end_one(number),
            Action::Again => self.map_again(),
            Action::Infinite => self.fall_back_if_straight(),
        }
    }

    fn join_from(&mut self, path: u8, token: u32) {
        if let Some(remote) = self.join_target().filter(|_| self.flows.len() < 12) {
            self.join(usize::from(path) % self.addresses.len(), remote, token);
        }
    }

    pub(super) fn announce_path(&mut self, path: u8) {
        let path = usize::from(path) % self.addresses.len();
        if path > 0 && self.has(path) && !self.announced.iter().any(|known| known.path == path) {
            self.announced.push(Announced { id: path as u8 + 1, path, tries: 0, again_at: NEVER });
            self.announce(self.announced.len() - 1);
        }
    }

    fn withdraw_path(&mut self, path: u8) {
        let id = (usize::from(path) % self.addresses.len()) as u8 + 1;
        self.announced.retain(|known| known.id != id);
        if let Some(index) = self.open_flow(path).filter(|_| id > 1) {
            let option = MptcpOption::RemoveAddress { address_ids: vec![id] };
            self.flows[index].due.signals.push_back(Signal::Beside(option));
        }
    }

    fn change_priority(&mut self, number: u8) {
        if let Some(index) = self.open_flow(number) {
            let backup = !self.flows[index].backup;
            self.flows[index].backup = backup;
            self.flows[index].due.signals.push_back(Signal::Beside(MptcpOption::Priority { backup }));
        }
    }

    fn reset_one(&mut self, number: u8) {
        let open = self.flows.iter().filter(|flow| flow.state == State::Established && flow.usable).count();
        if let Some(index) = self.open_flow(number).filter(|_| open > 1) {
            self.reset(index, 0);
        }
    }

    fn end_one(&mut self, number: u8) {
        let open = self.flows.iter().filter(|flow| flow.may_send()).count();
        // The only subflow may be ended only if another can be opened.
        let able = open > 1 || self.join_target().is_some();
        if let Some(index) = self.open_flow(number).filter(|_| able) {
            self.close_flow(index);
        }
    }

    fn fall_back_if_straight(&mut self) {
        let first = self.flows[0].state == State::Established && self.flows[0].kind == Kind::Initial;
        let straight = !self.crooked && self.data.early.is_empty() && self.flows[0].early.is_empty();
        // All data acknowledged on the subflow must have arrived: no DATA_ACK follows.
        let arrived = u64::from(self.flows[0].una) == self.data.una + 1 && !self.flows[0].outstanding();
        // The infinite mapping is sent at once.
        let speaks = self.data.nxt < self.data.length().min(self.data.edge) && self.room(0) > 0 && arrived;
        if speaks && self.flows.len() == 1 && first && straight && !self.data.fin_sent && !self.data.fin_taken {
            self.fall_back(None);
        }
    }
}
