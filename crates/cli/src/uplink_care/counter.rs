//! Byte counters of an interface, for the traffic of all programs.

/// Counters of all interfaces of this thread's network namespace.
const FILE: &str = "/proc/thread-self/net/dev";

/// What an interface has carried since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes.
    pub sent: u64,
    /// Bytes.
    pub received: u64,
    pub sent_packets: u64,
    pub received_packets: u64,
}

/// What an interface has carried; none if it does not exist.
pub fn traffic(interface: &str) -> Option<Traffic> {
    of(&std::fs::read_to_string(FILE).ok()?, interface)
}

/// Bytes sent and received by an interface since its creation; none if it does not exist.
pub fn octets(interface: &str) -> Option<u64> {
    traffic(interface).map(|traffic| traffic.received.saturating_add(traffic.sent))
}

/// Parses the kernel's text: after the name and a colon, the first number is bytes received, the second packets, the
/// ninth bytes sent, the tenth packets.
fn of(text: &str, interface: &str) -> Option<Traffic> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let at = |place: usize| numbers.get(place).copied();
    Some(Traffic { received: at(0)?, received_packets: at(1)?, sent: at(8)?, sent_packets: at(9)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_the_interface_that_is_meant_are_read() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n    \
             lo:   100       1    0    0    0     0          0         0      200       1    0    0    0     0       0          0\n \
             wwan0: 3000      10    0    0    0     0          0         0       40       3    0    0    0     0       0          0\n";
        let wwan = Traffic { sent: 40, received: 3_000, sent_packets: 3, received_packets: 10 };
        assert_eq!(of(text, "wwan0"), Some(wwan));
        assert_eq!(of(text, "lo").map(|lo| (lo.received, lo.sent)), Some((100, 200)));
        assert_eq!(of(text, "wwan"), None);
        assert!(octets("lo").is_some());
    }
}
