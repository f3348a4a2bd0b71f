//! How subflows and the connection end: FIN and DATA_FIN (RFC 9293, section 3.6; RFC 8684, section 3.3.3, appendix D), resets
//! (3.6), fast close (3.5), and falling back (3.7).

use super::choices::Choice;
use super::data_level::DataState;
use super::tcp::{Flow, Kind, Signal, State};
use super::{End, NEVER, Peer, Protocol};
use anabranch_wire::Flags;
use anabranch_wire::mptcp::MptcpOption;
use bytes::Bytes;

/// TIME-WAIT in nanoseconds.
const LINGER: u64 = 60_000 * super::MILLI;

impl Peer {
    /// Processes a FIN that is next on its subflow: the eighth step of RFC 9293, section 3.10.7.4.
    pub(super) fn fin_arrives(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.fin_at != Some(flow.rcv_nxt) {
            return;
        }
        flow.rcv_nxt += 1;
        flow.due.ack_now = true;
        let plain = self.protocol == Protocol::Plain;
        flow.state = match flow.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                flow.due.linger_at = self.now + LINGER;
                State::TimeWait
            }
            other => other,
        };
        if plain && self.flows[index].kind == Kind::Initial {
            self.data.fin_at = Some(self.data.rcv_nxt);
        }
    }

    /// Checks whether our FIN has been acknowledged, and changes the state.
    pub(super) fn fin_acknowledged(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.fin.is_none_or(|fin| flow.una <= fin) {
            return;
        }
        flow.state = match flow.state {
            State::FinWait1 => State::FinWait2,
            State::Closing => {
                flow.due.linger_at = self.now + LINGER;
                State::TimeWait
            }
            State::LastAck => State::Closed,
            other => other,
        };
        if flow.state == State::Closed {
            (flow.due.resend_at, flow.due.ack_at, flow.due.ack_now) = (NEVER, NEVER, false);
        }
        if self.protocol == Protocol::Plain && !self.data.fin_sent {
            self.data.sent_fin();
        }
        if self.protocol == Protocol::Plain && self.data.una <= self.data.length() {
            self.data.una = self.data.length() + 1;
            self.data.fin_acknowledged();
        }
    }

    /// The peer's stream has ended: its DATA_FIN, or in plain TCP its FIN, is next.
    pub(super) fn take_end_of_stream(&mut self) {
        self.data.take_fin();
    }

    /// No more data is assigned to this subflow: FIN follows its data.
    pub(super) fn close_flow(&mut self, index: usize) {
        // Until the peer is known to have the keys, a FIN would look like that of plain TCP.
        let unheard = self.protocol == Protocol::Multipath && self.client && !self.heard_dss;
        let flow = &mut self.flows[index];
        if matches!(flow.state, State::Established | State::CloseWait) && !unheard && flow.usable && flow.fin.is_none()
        {
            flow.fin = Some(flow.end());
        }
    }

    /// Sends FINs when the data level is closed.
    pub(super) fn close_flows(&mut self) {
        if self.protocol != Protocol::Multipath || self.end.is_some_and(|end| end != End::Finished) {
            return;
        }
        let over = self.data.is_over();
        // A subflow that was opened for the remaining data stays until that has been acknowledged.
        let early = match self.choice(Choice::Fin) {
            _ if self.rejoin.count > 0 => false,
            0 => false,
            // Appendix D: CLOSE all subflows when our DATA_FIN is acknowledged, even if the peer still sends.
            1 => matches!(self.data.state, DataState::FinWait2),
            _ => self.data.fin_sent && self.data.una >= self.data.length(),
        };
        for index in 0..self.flows.len() {
            let answered = self.flows[index].state == State::CloseWait && !self.wants_to_send();
            if over || early || answered {
                self.close_flow(index);
            }
            let opening = matches!(self.flows[index].state, State::SynSent | State::SynReceived);
            if over && (opening || !self.flows[index].usable) && self.flows[index].state != State::Closed {
                self.reset(index, 0);
            }
        }
    }

    /// Whether any of our stream is unsent or unacknowledged.
    pub(super) fn wants_to_send(&self) -> bool {
        !self.data.closed || self.data.una <= self.data.length()
    }

    /// Resets a subflow.
    pub(super) fn reset(&mut self, index: usize, reason: u8) {
        self.reset_with(index, None, reason);
    }

    pub(super) fn reset_with(&mut self, index: usize, option: Option<MptcpOption>, reason: u8) {
        let mut options = self.tcp_options(index);
        options.mptcp.extend(option);
        if self.protocol != Protocol::Plain {
            options.mptcp.push(MptcpOption::TcpReset { transient: false, flags: 0, reason });
        }
        let syn_sent = self.flows[index].state == State::SynSent;
        if !syn_sent {
            let number = self.flows[index].nxt;
            self.send(index, number, Flags::RST | Flags::ACK, options, Bytes::new());
        }
        self.lose(index, true);
    }

    /// A subflow is gone. In plain TCP, or before any DSS, that is the end of the connection.
    pub(super) fn lose(&mut self, index: usize, by_reset: bool) {
        let flow = &mut self.flows[index];
        let was = std::mem::replace(&mut flow.state, State::Closed);
        (flow.due.resend_at, flow.due.ack_at, flow.due.linger_at, flow.due.ack_now) = (NEVER, NEVER, NEVER, false);
        flow.due.signals.clear();
        flow.early.clear();
        if self.end.is_some() || was == State::Closed {
            return;
        }
        let single = self.protocol != Protocol::Multipath;
        // Before any DSS we cannot join, but the peer may have.
        let alone = !self.flows.iter().any(|flow| flow.usable && flow.is_open());
        if (single || (!self.heard_dss && alone)) && self.flows[index].kind == Kind::Initial {
            self.finish(if by_reset { End::Reset } else { End::GaveUp("silence") });
            // A join in progress comes too late.
            let opening = |flow: &&mut Flow| flow.state == State::SynReceived;
            self.flows.iter_mut().filter(opening).for_each(|flow| flow.state = State::Closed);
            return;
        }
        self.take_back(index);
        if self.rejoin.at == NEVER {
            self.rejoin.at = self.now + 500 * super::MILLI;
        }
    }

    /// MP_FASTCLOSE with our key has arrived.
    pub(super) fn fast_closed(&mut self) {
        for index in 0..self.flows.len() {
            if self.flows[index].is_open() || self.flows[index].state == State::SynReceived {
                self.reset(index, 0);
            } else {
                self.flows[index].state = State::Closed;
            }
        }
        self.finish(End::Reset);
    }

    /// The application aborts.
    pub fn abort(&mut self, now: u64) {
        self.now = now;
        if self.end.is_none() {
            self.finish(End::Aborted);
            self.shut_down();
        }
    }

    pub(super) fn abort_with(&mut self, why: &'static str) {
        if self.end.is_none() {
            // Both ends have all data, and only the acknowledgement of our DATA_FIN is missing, from a peer that may be
            // gone: finished.
            let whole = self.data.closed && self.data.una >= self.data.length() && self.data.fin_taken;
            self.finish(if whole { End::Finished } else { End::GaveUp(why) });
            self.shut_down();
        }
    }

    /// Resets all subflows, in MPTCP with the peer's key.
    fn shut_down(&mut self) {
        let key = self.secrets.peer_key;
        let close = (self.protocol == Protocol::Multipath).then_some(MptcpOption::FastClose { key });
        for index in 0..self.flows.len() {
            let flow = &self.flows[index];
            if matches!(flow.state, State::Closed | State::TimeWait | State::SynSent) {
                self.flows[index].state = State::Closed;
                self.flows[index].due.linger_at = NEVER;
                self.flows[index].due.resend_at = NEVER;
                continue;
            }
            if self.choice(Choice::FastClose) == 1
                && let Some(close) = close.clone()
            {
                self.acknowledge(index, Some(Signal::Alone(close)));
            }
            self.reset_with(index, close.clone(), 0);
        }
    }

    fn finish(&mut self, end: End) {
        self.end = self.end.or(Some(end));
        self.rejoin.at = NEVER;
        self.announced.clear();
    }

    /// Both streams have ended: the application is told.
    pub(super) fn record_end(&mut self) {
        if self.end.is_none() && self.data.is_over() {
            self.finish(End::Finished);
        }
        // The peer may be gone, so we do not wait for its FIN forever.
        let due = self.now + LINGER;
        if self.end.is_some() {
            let waits = |flow: &&mut Flow| flow.state == State::FinWait2 && flow.due.linger_at == NEVER;
            self.flows.iter_mut().filter(waits).for_each(|flow| flow.due.linger_at = due);
        }
    }

    /// Falls back to plain TCP. `infinite` is the peer's infinite mapping: a subflow sequence number, and its offset.
    pub(super) fn fall_back(&mut self, infinite: Option<(u32, u64)>) {
        let shifted = infinite.is_some_and(|(start, offset)| offset.wrapping_add(1) != u64::from(start));
        // A FIN of the subflow would end the stream.
        let cut = self.flows[0].fin.is_some() && !(self.data.closed && self.data.nxt >= self.data.length());
        if self.protocol != Protocol::Multipath || self.flows.len() > 1 || self.crooked || shifted || cut {
            if self.protocol == Protocol::Multipath {
                self.abort_with("it cannot go on as plain TCP");
            }
            return;
        }
        self.protocol = Protocol::Plain;
        self.secrets.confirmed = true;
        self.data.again.clear();
        self.data.tries = 0;
        self.rejoin.at = NEVER;
        self.announced.clear();
        // The DATA_FIN that was sent is void: FIN replaces it.
        self.data.fin_sent = false;
        self.data.nxt = self.data.nxt.min(self.data.length());
        self.data.una = self.data.una.min(self.data.length());
        self.data.fin_at = None;
        if !self.data.fin_taken {
            self.data.state = DataState::Established;
        }
        self.infinite = Some((self.flows[0].una.max(1), self.flows[0].nxt + 1));
        let flow = &mut self.flows[0];
        flow.due.signals.retain(|signal| matches!(signal, Signal::Alone(MptcpOption::Fail { .. })));
        // Acknowledged data of an incomplete mapping is accepted without its checksum.
        let held = std::mem::take(&mut flow.mappings.held);
        let from = flow.rcv_nxt - held.len() as u32;
        let offset = flow.heard_at(from).map(|heard| heard.offset + u64::from(from - heard.start));
        if let Some(offset) = offset.filter(|_| !held.is_empty()) {
            self.data.receive(offset, Bytes::from(held));
        }
        self.plain_edges();
    }

    fn plain_edges(&mut self) {
        let flow = &self.flows[0];
        let una = u64::from(flow.una.saturating_sub(1)).min(self.data.length());
        self.data.una = self.data.una.max(una);
        self.data.edge = self.data.edge.max(una + flow.window);
    }

    /// Whether the remaining data needs a new subflow.
    pub(super) fn wants_a_subflow(&mut self) {
        if self.protocol != Protocol::Multipath
            || self.end.is_some()
            || self.rejoin.at != NEVER
            || self.flows.is_empty()
        {
            return;
        }
        let opening = |flow: &Flow| matches!(flow.state, State::SynSent | State::SynReceived) || !flow.usable;
        let alive = |flow: &Flow| flow.state != State::Closed && opening(flow);
        let waits = self.data.nxt < self.data.length() || !self.data.again.is_empty();
        let open = self.flows.iter().any(|flow| flow.is_open() && (flow.may_send() || !waits));
        if !open && !self.flows.iter().any(alive) {
            self.rejoin.at = self.now + 500 * super::MILLI;
        }
    }

    /// Without a usable subflow, another is opened: break before make.
    pub(super) fn rejoin(&mut self) {
        if self.rejoin.at > self.now {
            return;
        }
        self.rejoin.at = NEVER;
        let able = self.protocol == Protocol::Multipath && self.end.is_none();
        let opening = |flow: &Flow| matches!(flow.state, State::SynSent | State::SynReceived);
        // If nothing is left to send, a half-closed subflow on which the peer still sends is enough.
        let waits = self.data.nxt < self.data.length() || !self.data.again.is_empty();
        let enough = |flow: &Flow| flow.may_send() || opening(flow) || (!waits && flow.is_open());
        if !able || !self.heard_dss || self.flows.iter().any(enough) {
            return;
        }
        let Some(path) = self.any_path() else { return };
        self.rejoin.count += 1;
        if self.rejoin.count > 8 {
            return self.abort_with("no subflow is left");
        }
        self.rejoin.at = self.now + 3_000 * super::MILLI;
        if let Some(remote) = self.join_target() {
            self.join(path, remote, self.secrets.peer_token);
        }
    }
}
