//! What a page draws of a moment, besides packets.

use anabranch_mptcp::{ConnectionInfo, SubflowInfo};
use anabranch_sim::link::DropCause;
use anabranch_sim::world::view::LinkView;
use serde::Serialize;
use std::net::IpAddr;

#[derive(Serialize)]
pub struct LaneFrame {
    queue_packets: usize,
    queue_bytes: u64,
    delivered_bytes: u64,
    /// Packets dropped so far, by whatever cause.
    dropped: u64,
    /// Those of them that the queue did not take, or dropped.
    refused: u64,
    up: bool,
}

impl LaneFrame {
    pub fn of(view: &LinkView) -> Self {
        let (queue_packets, queue_bytes) = view.waiting;
        let (delivered_bytes, dropped) = (view.counters.delivered_bytes, view.counters.drops.total());
        let of_queue = [DropCause::Overflow, DropCause::CoDel, DropCause::TooBig];
        let refused = of_queue.iter().map(|cause| view.counters.drops.get(*cause)).sum();
        Self { queue_packets, queue_bytes, delivered_bytes, dropped, refused, up: view.up }
    }
}

/// The first connection of the transfer. All are bytes.
#[derive(Serialize)]
pub struct ConnectionFrame {
    rcvbuf: u64,
    /// Received out of order at data level.
    out_of_order: u64,
    /// Received in order, not yet read.
    readable: u64,
    unacked: u64,
    snd_wnd: u64,
}

/// A subflow at the sender. Sizes are bytes, times milliseconds, rates bits per second.
#[derive(Serialize)]
pub struct SubflowFrame {
    id: u32,
    /// Index of its path among the scenario's.
    path: Option<usize>,
    state: String,
    phase: String,
    cwnd: u64,
    srtt: f64,
    in_flight: u64,
    mss: u32,
    stale: bool,
    backup: bool,
    suspended: bool,
    loss_rate: f64,
    delivery_rate: f64,
}

#[derive(Serialize)]
pub struct Frame {
    /// In seconds.
    pub time: f64,
    pub lanes: Vec<LaneFrame>,
    /// Bytes that the receiver has read so far, of all connections of the transfer.
    pub goodput_bytes: u64,
    /// Those of other hosts' TCP.
    pub other_bytes: u64,
    pub connection: Option<ConnectionFrame>,
    pub subflows: Vec<SubflowFrame>,
}

impl ConnectionFrame {
    pub fn of(sender: &ConnectionInfo, receiver: Option<&ConnectionInfo>) -> Self {
        let at_receiver = |value: fn(&ConnectionInfo) -> u64| receiver.map_or(0, value);
        Self {
            rcvbuf: at_receiver(|info| info.rcvbuf),
            out_of_order: at_receiver(|info| info.out_of_order),
            readable: at_receiver(|info| info.readable),
            unacked: sender.snd_nxt - sender.snd_una,
            snd_wnd: sender.snd_wnd,
        }
    }
}

impl SubflowFrame {
    /// `paths` are the addresses of the client's interfaces, each with the index of its path; `other` is the path of others.
    pub fn of(info: &SubflowInfo, paths: &[(IpAddr, usize)], other: Option<usize>) -> Self {
        let ends = [info.identity.local.ip(), info.identity.remote.ip()];
        Self {
            id: info.identity.id.0,
            path: paths.iter().find(|(address, _)| ends.contains(address)).map(|(_, path)| *path).or(other),
            state: format!("{:?}", info.state),
            phase: format!("{:?}", info.phase),
            cwnd: info.snd_cwnd,
            srtt: info.round_trip.rtt.as_secs_f64() * 1e3,
            in_flight: info.in_flight,
            mss: info.snd_mss,
            stale: info.stale,
            backup: info.priority.backup || info.priority.request_bkup,
            suspended: info.priority.suspended,
            loss_rate: info.loss_rate,
            delivery_rate: info.delivery_rate.bits_per_second() as f64,
        }
    }
}
