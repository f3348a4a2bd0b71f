//! The amount sent at once (draft-ietf-ccwg-bbr, section 5.6.3), and the window that it requires.

use crate::rate::Rate;
use crate::time::Duration;

/// The quantum takes this time at the pacing rate, ...
const SPAN: Duration = Duration::from_millis(1);
/// ... and is at most this many GSO packets. The draft's single packet of 64 kB would wake the sender every 0.1 ms at 5
/// Gbit/s, which costs as much as sending the packet.
const MOST_PACKETS: u64 = 4;
/// Bytes of such a packet: 64 kB with the headers of all segments when tunnelled over UDP. One more segment would be
/// sent as a separate packet.
const PACKET: u64 = 62_000;
/// Quanta held by sender and receiver: one being assembled, one in flight, one being acknowledged.
const OFFLOAD_QUANTA: u64 = 3;

/// send_quantum in bytes of payload: a millisecond at `rate`, at least two segments. From one [`whole_packet`] on it is
/// rounded to whole packets, at most four.
///
/// (The draft's single segment below 1.2 Mbit/s would be acknowledged late: receivers wait for two.)
pub fn send_quantum(rate: Rate, mss: u32) -> u64 {
    let carried = (rate.bytes_per_second() as f64 * SPAN.as_secs_f64()) as u64;
    let packet = whole_packet(mss);
    if carried < packet {
        return carried.max(2 * u64::from(mss));
    }
    (carried / packet).min(MOST_PACKETS) * packet
}

/// Bytes of the full segments that fit into one GSO packet, at least two.
pub fn whole_packet(mss: u32) -> u64 {
    let mss = u64::from(mss).max(1);
    (PACKET / mss).max(2) * mss
}

/// offload_budget in bytes: the minimum window that does not idle while a quantum waits for its acknowledgement.
/// Segments sent in pairs need none; their budget is three segments.
pub(super) fn offload_budget(rate: Rate, mss: u64) -> u64 {
    let quantum = send_quantum(rate, mss as u32);
    OFFLOAD_QUANTA * if quantum > 2 * mss { quantum } else { mss }
}

/// How long hosts may delay data or acknowledgements, by aggregation or other work. On a path with less delay the
/// minimum round-trip time does not include that.
pub const HOLD: Duration = Duration::from_millis(3);

/// The minimum window in bytes with which a path of this rate and bandwidth-delay product does not idle because of its
/// hosts.
pub(super) fn host_budget(rate: Rate, mss: u64, bdp: u64) -> u64 {
    let held = (rate.bytes_per_second() as f64 * HOLD.as_secs_f64()) as u64;
    offload_budget(rate, mss).max(bdp + held)
}

#[cfg(test)]
mod tests {
    use super::{Rate, host_budget, offload_budget, send_quantum};

    #[test]
    fn a_quantum_is_a_millisecond_within_two_segments_and_four_whole_packets() {
        let at = |megabits: u64| send_quantum(Rate::from_bits_per_second(megabits * 1_000_000), 1_400);
        assert_eq!((at(1), at(22), at(100)), (2_800, 2_800, 12_500));
        let packets = |megabits| (at(megabits) / (44 * 1_400), at(megabits) % (44 * 1_400));
        assert_eq!((packets(500), packets(1_000), packets(10_000)), ((1, 0), (2, 0), (4, 0)));
    }

    #[test]
    fn the_budget_is_three_quanta_where_more_than_two_segments_leave_together() {
        let at = |megabits: u64| offload_budget(Rate::from_bits_per_second(megabits * 1_000_000), 1_400);
        assert_eq!((at(22), at(100), at(10_000)), (4_200, 37_500, 3 * 4 * 44 * 1_400));
    }

    #[test]
    fn hosts_hold_three_milliseconds_beside_what_the_path_does() {
        let at = |megabits: u64, bdp| host_budget(Rate::from_bits_per_second(megabits * 1_000_000), 1_400, bdp);
        assert_eq!((at(1_000, 10_000), at(1, 0), at(1, 50_000)), (385_000, 4_200, 50_375));
    }
}
