//! Delivery of the datagrams of a flow in one direction.

use anabranch_policy::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// When the program sent it; for an answer, when its request was sent.
    pub at: Instant,
    /// Bytes of payload.
    pub length: u32,
    /// The number of its frame.
    pub frame: u32,
    /// First arrival at the program of the other end.
    pub arrived: Option<Instant>,
    /// It arrived after a datagram that was sent later (RFC 4737, section 3.3).
    pub reordered: bool,
}

/// A flow in one direction. Requests have one direction only: the answers, timed from their requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowScore {
    /// Index of the flow in the session.
    pub flow: usize,
    /// Whether the client receives it.
    pub to_client: bool,
    /// In the order of sending.
    pub sent: Vec<Sent>,
    /// Numbers of the datagrams that arrived, in the order of arrival.
    pub order: Vec<u32>,
    /// Duplicates that reached programs.
    pub repeated: u64,
    highest: Option<u32>,
}

impl FlowScore {
    pub(super) fn new(flow: usize, to_client: bool) -> Self {
        Self { flow, to_client, ..Self::default() }
    }

    /// Records the sending of a datagram of `length` bytes; returns its number.
    pub(super) fn send(&mut self, at: Instant, length: u32, frame: u32) -> u32 {
        self.sent.push(Sent { at, length, frame, arrived: None, reordered: false });
        self.sent.len() as u32 - 1
    }

    /// Records an arrival.
    pub(super) fn arrive(&mut self, now: Instant, number: u32) {
        let Some(sent) = self.sent.get_mut(number as usize) else { return };
        if sent.arrived.is_some() {
            self.repeated += 1;
            return;
        }
        sent.arrived = Some(now);
        sent.reordered = self.highest.is_some_and(|highest| number < highest);
        self.highest = self.highest.max(Some(number));
        self.order.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_later_one_is_reordered_and_what_comes_twice_counts_once() {
        let mut score = FlowScore::new(0, true);
        (0..5).for_each(|_| {
            score.send(Instant::ZERO, 100, 0);
        });
        [0, 2, 1, 2, 4, 9].into_iter().for_each(|number| score.arrive(Instant::from_nanos(7), number));
        let reordered: Vec<bool> = score.sent.iter().map(|sent| sent.reordered).collect();
        assert_eq!(reordered, [false, true, false, false, false]);
        assert_eq!((score.order.as_slice(), score.repeated), ([0, 2, 1, 4].as_slice(), 1));
        assert_eq!(score.sent[3].arrived, None);
    }
}
