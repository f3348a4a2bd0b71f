//! SYN and SYN/ACK of a subflow, and their acknowledgement (RFC 9293, section 3.5).

use super::parts::SynSent;
use super::segment_arrives::ECN_SETUP;
use super::state::Subflow;
use super::tcp_state::State;
use super::timers::SubflowTimer;
use crate::config::{EcnMode, RtoRule, TcpConfig};
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::tcp::Timestamps;
use anabranch_wire::{Flags, Segment, SeqNumber};

/// A SYN that comes again earlier is a duplicate of the network: hosts repeat theirs after a second (RFC 6298, section
/// 2.1).
const SOONEST_AGAIN: Duration = Duration::from_millis(500);

impl Subflow {
    /// The SYN, or the SYN/ACK in SYN-RECEIVED.
    pub fn syn(&self, config: &TcpConfig, stamp: u32, scale: u8, window: u64) -> Segment {
        let answers = self.state == State::SynReceived;
        let agreed = |offered: bool, negotiated: bool| if answers { negotiated } else { offered };
        let mut flags = if answers { Flags::SYN | Flags::ACK } else { Flags::SYN };
        if answers && self.negotiated.ecn.echoes() {
            flags |= Flags::ECE;
        } else if !answers && config.ecn == EcnMode::Request && self.liveness.timeouts_in_row == 0 {
            // Not on a retransmission: some middleboxes drop SYNs with these bits (RFC 3168, section 6.1.1.1).
            flags |= ECN_SETUP;
        }
        let mut segment = Segment {
            source_port: self.identity.local.port(),
            destination_port: self.identity.remote.port(),
            seq: self.send.initial,
            ack: if answers { self.receiver.next } else { SeqNumber(0) },
            flags,
            window: window.min(0xffff) as u16,
            ..Segment::default()
        };
        let scaling = !answers || self.negotiated.receive_scale > 0 || self.negotiated.send_scale > 0;
        segment.options.maximum_segment_size = Some(config.mtu.saturating_sub(self.identity.header_length()));
        segment.options.sack_permitted = agreed(config.options.sack, self.negotiated.sack);
        segment.options.window_scale = (config.options.window_scaling && scaling).then_some(scale);
        if agreed(config.options.timestamps, self.negotiated.timestamps) {
            let echo = if answers { self.receiver.timestamp } else { 0 };
            segment.options.timestamps = Some(Timestamps { value: stamp, echo });
        }
        segment
    }

    /// A SYN or SYN/ACK was sent, not by the timer.
    pub fn record_handshake_sent(&mut self, now: Instant) {
        self.liveness.handshake_sent = now;
        self.liveness.syn_sent = match self.liveness.syn_sent {
            SynSent::Never => SynSent::Once,
            SynSent::Once | SynSent::Again => SynSent::Again,
        };
    }

    /// The peer's SYN comes again: our SYN/ACK was lost, unless it has not been sent yet, or the network duplicated the
    /// SYN.
    pub fn record_repeated_syn(&mut self, now: Instant) {
        let repeated = now.since(self.liveness.handshake_sent) >= SOONEST_AGAIN;
        if repeated && self.liveness.syn_sent != SynSent::Never {
            self.rtt.record_lost_handshake();
        }
    }

    /// Our SYN is acknowledged: takes a round-trip time sample, unless it was sent again (RFC 6298, section 3).
    pub fn handle_syn_acknowledged(&mut self, now: Instant, ack: SeqNumber, rule: RtoRule) {
        self.send.una = ack;
        if self.liveness.timeouts_in_row > 0 {
            self.rtt.record_lost_handshake();
        } else if self.liveness.syn_sent == SynSent::Once {
            self.rtt.sample(now.since(self.liveness.handshake_sent).max(Duration::from_nanos(1)), rule);
        }
        self.rtt.end_back_off();
        self.liveness.timeouts_in_row = 0;
        self.handshake.due = false;
        self.timers.stop(SubflowTimer::Handshake);
    }
}
