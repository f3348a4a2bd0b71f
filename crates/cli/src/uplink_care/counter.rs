//! Byte counters of an interface, for the traffic of all programs.

/// Counters of all interfaces of this thread's network namespace.
const FILE: &str = "/proc/thread-self/net/dev";

/// Bytes sent and received by an interface since its creation; none if it does not exist.
pub fn octets(interface: &str) -> Option<u64> {
    of(&std::fs::read_to_string(FILE).ok()?, interface)
}

/// Parses the kernel's text: after the name and a colon, the first number is bytes received, the ninth bytes sent.
fn of(text: &str, interface: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    let mut numbers = numbers.split_whitespace().map(str::parse::<u64>);
    let received = numbers.next()?.ok()?;
    let sent = numbers.nth(7)?.ok()?;
    Some(received.saturating_add(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_the_interface_that_is_meant_are_added() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n    \
             lo:   100       1    0    0    0     0          0         0      200       1    0    0    0     0       0          0\n \
             wwan0: 3000      10    0    0    0     0          0         0       40       3    0    0    0     0       0          0\n";
        assert_eq!(of(text, "wwan0"), Some(3_040));
        assert_eq!(of(text, "lo"), Some(300));
        assert_eq!(of(text, "wwan"), None);
        assert!(octets("lo").is_some());
    }
}
