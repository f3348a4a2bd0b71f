//! Reports of a connection: counters, and views with one-way delays.

use super::association::Protocol;
use super::state::Connection;
use crate::info::ConnectionInfo;
use crate::stats::{ConnectionStats, ReceiveState, SubflowReport};
use crate::subflow::Subflow;
use anabranch_policy::time::Instant;
use anabranch_policy::view::SubflowView;

impl Connection {
    /// State of the connection and its subflows.
    pub fn info(&self, now: Instant) -> ConnectionInfo {
        let (stats, una, receive) = (self.stats(), self.sender.una(), self.receive_state());
        ConnectionInfo {
            role: self.identity.role,
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

    /// The subflows as path managers see them, with measured one-way delays.
    pub fn subflow_views_with_delays(&self, views: &mut Vec<SubflowView>) {
        self.subflow_views(views);
        let Some(watch) = &self.measurement.watch else { return };
        for (view, subflow) in views.iter_mut().zip(self.subflows.iter()).filter(|(_, s)| s.negotiated.timestamps) {
            view.forward_delay = Some(watch.meters.get(subflow.id()).map(|meter| meter.delay).unwrap_or_default());
        }
    }

    /// The subflows with addresses and counters.
    pub fn subflow_reports(&self) -> Vec<SubflowReport> {
        let report = |subflow: &Subflow| SubflowReport {
            local: subflow.identity.local,
            remote: subflow.identity.remote,
            bytes_received: subflow.counters.bytes_received,
            bytes_retransmitted: subflow.counters.bytes_retransmitted,
            view: subflow.view(&*self.congestion, &self.config.tcp),
        };
        self.subflows.iter().map(report).collect()
    }

    /// State of the receiving side.
    pub fn receive_state(&self) -> ReceiveState {
        ReceiveState {
            next: self.receiver.buffer.next(),
            readable: self.receiver.buffer.readable(),
            out_of_order: self.receiver.buffer.out_of_order(),
            buffer: self.receiver.buffer.size(),
            dropped: self.receiver.buffer.dropped(),
        }
    }

    pub fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats.with(self.sender.una(), self.receiver.buffer.next());
        if let Some(partial) = &self.partial {
            partial.report(&mut stats);
            stats.worst_path_of_peer = self.worst_path_of_peer();
        }
        stats
    }
}
