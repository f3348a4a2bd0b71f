//! Bare acknowledgements and the MPTCP options on them.

use super::agenda::Task;
use super::association::Protocol;
use super::packets::ip_header;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::receiver::AckDue;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Instant;
use anabranch_wire::mptcp::{CapableKeys, DataSequence, Dss, Mapping, VERSION, dss_checksum};
use anabranch_wire::tcp::OPTION_SPACE;
use anabranch_wire::{MptcpOption, Packet};

impl Connection {
    /// Writes a bare acknowledgement into `place` if one is due. Returns whether it did.
    pub(super) fn next_acknowledgement(&mut self, now: Instant, place: &mut Packet) -> bool {
        let Some(handle) = self.subflows.next_for(now, Task::Acknowledgement, None) else { return false };
        let subflow = &self.subflows[handle];
        place.ip = ip_header(&subflow.identity);
        let was_due = subflow.receiver.due != AckDue::No;
        let (dss, options) = self.acknowledgement_options(handle);
        // An option may take the space of what was due, which then follows.
        let takes_place =
            |option: &MptcpOption| matches!(option, MptcpOption::AddAddress { .. } | MptcpOption::Experimental { .. });
        let owes_data_ack = was_due && dss.is_none() && options.as_ref().is_some_and(takes_place);
        let space = dss.as_ref().map_or(0, Dss::encoded_len) + options.as_ref().map_or(0, MptcpOption::encoded_len);
        let window = self.receiver.offer_window();
        let (subflow, cx) = self.subflow_in_context(now, handle);
        let segment = &mut place.segment;
        subflow.acknowledgement(&cx, window, space, segment);
        // This is already a bare acknowledgement: nothing stays due because it did not fit.
        subflow.receiver.acknowledged(true);
        if owes_data_ack {
            subflow.receiver.acknowledge_now();
        }
        segment.options.dss = dss;
        self.association.dss_sent |= segment.options.dss.is_some();
        segment.options.mptcp.extend(options);
        true
    }

    /// Whether an acknowledgement is due on some subflow.
    pub(super) fn owes_acknowledgement(&self, now: Instant) -> bool {
        self.subflows.iter().any(|subflow| subflow.wants_acknowledgement(now))
    }

    fn acknowledgement_options(&mut self, handle: Handle) -> (Option<Dss>, Option<MptcpOption>) {
        if let Some(proof) = self.join_proof(handle) {
            return (None, Some(proof));
        }
        let control = self.subflows[handle].control.pop();
        if self.association.protocol != Protocol::Multipath {
            return (None, control.filter(|option| matches!(option, MptcpOption::Fail { .. })));
        }
        let data_ack = Dss { data_ack: Some(self.wire_data_ack()), mapping: None, data_fin: false };
        if let Some(option) = control {
            let stamps = if self.subflows[handle].negotiated.timestamps { 12 } else { 0 };
            // ADD_ADDR and its echo are sent alone, as Linux does: with IPv6 there is no space for more.
            let fits = stamps + option.encoded_len() + data_ack.encoded_len() <= OPTION_SPACE;
            let alone = !fits || matches!(option, MptcpOption::AddAddress { .. });
            return ((!alone).then_some(data_ack), Some(option));
        }
        // A DATA_FIN does not fit beside the keys: it follows them.
        let subflow = &self.subflows[handle];
        let end_waits = subflow.due.data_fin && subflow.receiver.due != AckDue::Now;
        let keys_wait = self.identity.role == Role::Client
            && !self.association.confirmed
            && self.is_initial(handle)
            && self.sender.data_nxt == 0;
        if keys_wait && !end_waits {
            let keys = CapableKeys::Both { sender: self.identity.keys.local.0, receiver: self.identity.keys.remote.0 };
            return (None, Some(MptcpOption::Capable { version: VERSION, flags: self.capable_flags(), keys }));
        }
        let fin = self.subflows[handle].due.take_data_fin();
        if fin && self.life.write_closed() && self.sender.all_assigned() {
            return (Some(self.data_fin_signal(data_ack)), None);
        }
        (Some(data_ack), None)
    }

    /// A DATA_FIN without data: subflow sequence 0, length 1 (RFC 8684, section 3.3.3).
    fn data_fin_signal(&self, data_ack: Dss) -> Dss {
        let number = self.identity.wire_data_seq(self.sender.buffer.end());
        let checksum = self.association.checksum.then(|| dss_checksum(number, 0, 1, []));
        let mapping = Mapping { data_seq: DataSequence::Long(number), subflow_seq: 0, length: 1, checksum };
        Dss { mapping: Some(mapping), data_fin: true, ..data_ack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};

    /// The options of the next acknowledgement, after this change.
    fn next(change: impl Fn(&mut Connection)) -> (bool, Option<Dss>, Vec<MptcpOption>, bool) {
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        connection.subflows[handle].receiver.acknowledge_now();
        change(&mut connection);
        let mut packet = Packet::default();
        let sent = connection.next_acknowledgement(Instant::ZERO, &mut packet);
        let options = packet.segment.options.mptcp.to_vec();
        (sent, packet.segment.options.dss, options, connection.association.dss_sent)
    }

    #[test]
    fn a_bare_acknowledgement_has_a_data_ack_in_mptcp_and_then_a_dss_has_gone_out() {
        let (sent, dss, options, told) = next(|_| {});
        assert!(sent && dss.is_some_and(|dss| dss.data_ack.is_some() && dss.mapping.is_none()) && told);
        assert!(options.is_empty());
        let (sent, dss, _, told) = next(|connection| connection.association.protocol = Protocol::Tcp);
        assert!(sent && dss.is_none() && !told);
    }

    #[test]
    fn an_announcement_goes_alone_and_the_data_ack_that_was_due_follows_it() {
        let option = MptcpOption::AddAddress {
            address_id: 3,
            address: [10, 0, 0, 3].into(),
            port: None,
            truncated_hmac: Some(7),
        };
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        connection.subflows[handle].receiver.acknowledge_now();
        assert!(connection.subflows[handle].control.push(option.clone()));
        let mut packet = Packet::default();
        assert!(connection.next_acknowledgement(Instant::ZERO, &mut packet));
        assert!(packet.segment.options.dss.is_none() && packet.segment.options.mptcp.iter().eq([&option]));
        assert!(connection.owes_acknowledgement(Instant::ZERO));
        let mut packet = Packet::default();
        assert!(connection.next_acknowledgement(Instant::ZERO, &mut packet));
        assert!(packet.segment.options.dss.is_some());
        assert!(!connection.owes_acknowledgement(Instant::ZERO));
        assert!(!connection.next_acknowledgement(Instant::ZERO, &mut packet));
    }

    #[test]
    fn a_data_fin_is_on_an_acknowledgement_when_all_data_is_assigned() {
        let is_on = |closed: bool, unassigned: bool| {
            let (_, dss, ..) = next(|connection| {
                if unassigned {
                    assert_eq!(connection.write(bytes::Bytes::from_static(b"data")), 4);
                }
                if closed {
                    connection.life.close_writing();
                }
                let handle = connection.subflows.first_handle().unwrap();
                connection.subflows[handle].due.data_fin = true;
            });
            dss.is_some_and(|dss| dss.data_fin && dss.mapping.is_some_and(|mapping| mapping.length == 1))
        };
        assert!(is_on(true, false));
        assert!(!is_on(true, true) && !is_on(false, false));
    }
}
