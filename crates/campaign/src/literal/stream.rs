//! Assignment of our stream to subflows: ranges, mappings, and reinjections.

use super::choices::Choice;
use super::tcp::{Kind, Map, Signal};
use super::{NEVER, Peer, Protocol};

/// Timeouts at data level before the connection is aborted.
const MOST_TRIES: u32 = 16;

impl Peer {
    /// The subflows that may carry data: backups only without others.
    fn candidates(&self) -> Vec<usize> {
        let may = |index: &usize| self.flows[*index].may_send();
        let all: Vec<usize> = (0..self.flows.len()).filter(may).collect();
        let regular: Vec<usize> = all.iter().copied().filter(|index| !self.flows[*index].backup).collect();
        if regular.is_empty() { all } else { regular }
    }

    /// How many octets a subflow accepts now.
    pub(super) fn room(&self, index: usize) -> u32 {
        let flow = &self.flows[index];
        let most = u64::from(self.choice(Choice::Burst)) * flow.mss.saturating_sub(40).max(1) as u64;
        most.min(flow.window).saturating_sub(u64::from(flow.end().saturating_sub(flow.una))) as u32
    }

    /// Assigns data to the subflows up to their room.
    pub(super) fn fill(&mut self) {
        if self.protocol == Protocol::Opening || self.end.is_some() {
            return;
        }
        let often = u64::from(self.choice(Choice::Again));
        if often > 0
            && self.protocol == Protocol::Multipath
            && self.data.una < self.data.sent()
            && self.luck.one_in(often)
        {
            self.map_again();
        }
        loop {
            let open: Vec<usize> = self.candidates().into_iter().filter(|index| self.room(*index) > 0).collect();
            if open.is_empty() {
                return;
            }
            let index = self.luck.pick(&open);
            let again = self.data.again.pop_front();
            let (from, to) = match again {
                Some((from, to)) => (from.max(self.data.una), to.min(self.data.sent())),
                None => (self.data.nxt, self.data.length().min(self.data.edge)),
            };
            if from >= to {
                if again.is_some() {
                    continue;
                }
                return;
            }
            let length = (to - from).min(u64::from(self.room(index))).min(self.length_of_mapping(index));
            self.give_to(index, from, length as u32, again.is_none());
            if again.is_some() && from + length < to {
                self.data.again.push_front((from + length, to));
            }
        }
    }

    fn length_of_mapping(&mut self, index: usize) -> u64 {
        // Timestamps, and a DSS with all fields.
        let segment = self.flows[index].mss.saturating_sub(40).max(1) as u64;
        match self.choice(Choice::Mapping) {
            0 => segment,
            _ => segment * self.luck.between(1, 4),
        }
    }

    /// Maps octets of the stream after a subflow's data.
    fn give_to(&mut self, index: usize, from: u64, length: u32, new: bool) {
        let last = new && self.data.closed && from + u64::from(length) == self.data.length();
        let flow = &mut self.flows[index];
        let with_keys = self.client && !self.heard_dss && flow.kind == Kind::Initial && flow.bytes.is_empty();
        let fin = last && self.style.value(Choice::DataFin as usize) == 0 && !with_keys && length < 65_000;
        let fin = fin && self.protocol == Protocol::Multipath;
        let map = Map { start: flow.end(), length, offset: from, fin, with_keys, told: false };
        self.crooked |= u64::from(flow.end()) != from + 1 || flow.kind != Kind::Initial;
        flow.maps.push(map);
        flow.bytes.extend_from_slice(&self.data.stream[from as usize..(from + u64::from(length)) as usize]);
        if new {
            self.data.nxt = from + u64::from(length);
        }
        if fin {
            self.data.sent_fin();
            if self.choice(Choice::Fin) == 2 && self.rejoin.count == 0 {
                self.close_flow(index);
            }
        }
    }

    /// Queues some data in flight for reinjection on any subflow.
    pub(super) fn map_again(&mut self) {
        let (una, sent) = (self.data.una, self.data.sent());
        // Until a DATA_ACK shows that options pass, the data in flight on the only subflow is contiguous (section 3.7).
        let known = una > 0 || self.has_added_subflow();
        if una < sent && known && self.protocol == Protocol::Multipath && self.agains < 20 {
            self.agains += 1;
            let from = self.luck.between(una, sent - 1);
            let to = (from + self.luck.between(1, 3_000)).min(sent);
            self.data.again.push_back((from, to));
        }
    }

    /// Queues the data of a lost subflow for reinjection.
    pub(super) fn take_back(&mut self, index: usize) {
        let una = self.data.una;
        let maps: Vec<Map> = self.flows[index].maps.clone();
        for map in maps.iter().filter(|map| map.offset + u64::from(map.length) > una) {
            self.data.again.push_back((map.offset, map.offset + u64::from(map.length)));
        }
    }

    /// Sends DATA_FIN without data, or FIN in plain TCP, when all data has been assigned to subflows.
    pub(super) fn end_stream(&mut self) {
        if !self.data.closed || self.data.nxt < self.data.length() || self.end.is_some() {
            return;
        }
        match self.protocol {
            Protocol::Opening => {}
            Protocol::Plain => self.close_flow(0),
            Protocol::Multipath if self.data.fin_sent => {}
            Protocol::Multipath => {
                // Before the keys are confirmed, the peer could not authenticate a DATA_FIN.
                if self.client && !self.heard_dss && self.data.una < self.data.length() {
                    return;
                }
                if self.signal_fin() {
                    self.data.sent_fin();
                }
            }
        }
    }

    fn signal_fin(&mut self) -> bool {
        let open: Vec<usize> =
            (0..self.flows.len()).filter(|index| self.flows[*index].is_open() && self.flows[*index].usable).collect();
        if open.is_empty() {
            return false;
        }
        let one = self.luck.pick(&open);
        let all = self.choice(Choice::DataFin) == 2 || self.data.tries > 0;
        for index in open.into_iter().filter(|index| all || *index == one) {
            self.flows[index].due.signals.push_back(Signal::DataFin);
        }
        true
    }

    pub(super) fn arm_data_timers(&mut self) {
        if self.end.is_some() {
            (self.data.resend_at, self.data.probe_at) = (NEVER, NEVER);
            return;
        }
        let outstanding = self.protocol == Protocol::Multipath && self.data.una < self.data.nxt;
        if !outstanding {
            self.data.resend_at = NEVER;
        } else if self.data.resend_at == NEVER {
            self.data.resend_at = self.now + 2 * self.timeout(self.data.tries);
        }
        let idle = !self.flows.iter().any(|flow| flow.is_open() && flow.outstanding());
        let waits = self.protocol != Protocol::Opening && self.data.nxt < self.data.length() && idle;
        if !waits || self.candidates().is_empty() {
            (self.data.probe_at, self.data.probes) = (NEVER, 0);
        } else if self.data.probe_at == NEVER {
            self.data.probe_at = self.now + self.timeout(self.data.probes);
        }
    }

    pub(super) fn data_timers(&mut self) {
        if self.data.resend_at <= self.now {
            self.data.resend_at = NEVER;
            self.data.tries += 1;
            if self.data.tries > MOST_TRIES {
                return self.abort_with("the data level is not acknowledged");
            }
            self.resend_data();
        }
        if self.data.probe_at <= self.now {
            self.data.probe_at = NEVER;
            self.data.probes += 1;
            self.probe();
        }
    }

    /// Reinjects after a timeout of the data level (RFC 8684, section 3.3.6).
    fn resend_data(&mut self) {
        let (una, sent) = (self.data.una, self.data.sent());
        let under_way = self.flows.iter().any(|flow| flow.is_open() && flow.outstanding());
        if una < sent && (!under_way || self.data.tries > 2) && self.data.again.is_empty() {
            self.data.again.push_back((una, sent.min(una + 4_000)));
        }
        if self.data.fin_sent && una <= self.data.length() {
            self.signal_fin();
        }
    }

    /// Probes a zero window (RFC 9293, section 3.8.6.1).
    fn probe(&mut self) {
        let open = self.candidates();
        if open.is_empty() {
            return;
        }
        let index = self.luck.pick(&open);
        // An octet that the peer refuses must still cause an answer, so probes with an old number alternate with it.
        if self.choice(Choice::Probe) == 1
            && self.data.nxt < self.data.length()
            && self.flows[index].end() == self.flows[index].nxt
        {
            let from = self.data.nxt;
            self.give_to(index, from, 1, true);
            self.flows[index].force = true;
        } else {
            self.flows[index].due.signals.push_back(Signal::Probe);
        }
    }
}
