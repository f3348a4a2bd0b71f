//! What became of each datagram of a flow in one direction.

use anabranch_policy::time::Instant;

/// A datagram of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// When the program sent it; of an answer, when its request was sent.
    pub at: Instant,
    /// Bytes of payload.
    pub length: u32,
    /// The number of the frame that it is part of.
    pub frame: u32,
    /// When the program at the other end had it first.
    pub arrived: Option<Instant>,
    /// One that was sent after it came before it (RFC 4737, section 3.3).
    pub reordered: bool,
}

/// A flow in one direction. Of requests there is one direction: the answers, each since its request was sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowScore {
    /// The flow, by its place in the session.
    pub flow: usize,
    /// Whether the client's programs get it.
    pub to_client: bool,
    /// All of them, in the order in which they were sent.
    pub sent: Vec<Sent>,
    /// Those that came, in the order in which they came.
    pub order: Vec<u32>,
    /// Datagrams that programs got a second time.
    pub repeated: u64,
    highest: Option<u32>,
}

impl FlowScore {
    pub(super) fn new(flow: usize, to_client: bool) -> Self {
        Self { flow, to_client, ..Self::default() }
    }

    /// A datagram of so many bytes is sent; gives its number.
    pub(super) fn send(&mut self, at: Instant, length: u32, frame: u32) -> u32 {
        self.sent.push(Sent { at, length, frame, arrived: None, reordered: false });
        self.sent.len() as u32 - 1
    }

    /// It came.
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
