//! A connection for those who ask ([`ConnectionInfo`]).

use super::{Connection, Protocol};
use crate::info::ConnectionInfo;
use anabranch_policy::time::Instant;

impl Connection {
    /// It and its subflows, now.
    pub fn info(&self, now: Instant) -> ConnectionInfo {
        let (stats, una, receive) = (self.stats(), self.sender.una(), self.receive_state());
        ConnectionInfo {
            role: self.role,
            protocol: self.association.protocol,
            fell_back: self.association.protocol == Protocol::Tcp && self.config.multipath,
            token: (self.association.protocol == Protocol::Multipath).then_some(self.identity.local.token),
            csum_enabled: self.association.protocol == Protocol::Multipath && self.association.checksum,
            write_seq: self.sender.buffer.end(),
            snd_una: una,
            snd_nxt: self.sender.data_nxt,
            rcv_nxt: receive.next,
            snd_wnd: self.sender.window_edge.saturating_sub(una),
            rcv_wnd: self.receiver.buffer.window(),
            rcvbuf: receive.buffer,
            readable: receive.readable,
            out_of_order: receive.out_of_order,
            bytes_sent: stats.bytes_sent,
            bytes_acked: stats.bytes_acked,
            bytes_received: stats.bytes_delivered,
            bytes_retrans: stats.bytes_retransmitted,
            bytes_reinjected: stats.bytes_reinjected,
            bytes_duplicated: stats.bytes_duplicated,
            duplicate_bytes_received: stats.duplicate_bytes_received,
            total_rto: stats.timeouts,
            segs_out: stats.segments_sent,
            segs_in: stats.segments_received,
            subflows: self.subflows.iter().map(|s| s.info(now, &*self.congestion, &self.config.tcp)).collect(),
        }
    }
}
