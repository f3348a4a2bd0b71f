//! Link State Acknowledgments that wait to be sent on an interface (RFC 5614, 8.2; RFC 2328, 13.5).

use std::collections::BTreeMap;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::{LsaHeader, LsaKey};

use crate::config::{InterfaceConfig, InterfaceKind};
use crate::random::Random;

/// The margin that RFC 5614, 8.2, keeps from RxmtInterval.
const MARGIN: Duration = Duration::from_millis(500);
/// How long an acknowledgment waits for others on other interfaces (RFC 2328, 13.5: short).
const SHORT: Duration = Duration::from_secs(1);

/// Minimum and maximum delay of a delayed acknowledgment after its LSA was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AckDelay {
    pub soonest: Duration,
    pub latest: Duration,
}

impl AckDelay {
    pub fn of(config: &InterfaceConfig) -> Self {
        match &config.kind {
            InterfaceKind::Manet(manet) => {
                let latest = config.rxmt_interval - MARGIN;
                Self { soonest: latest - manet.ack_interval, latest }
            }
            InterfaceKind::PointToPoint | InterfaceKind::Loopback => Self { soonest: Duration::ZERO, latest: SHORT },
        }
    }

    /// A random delay within the bounds: all neighbours receive an LSA at the same time, and simultaneous
    /// acknowledgments would collide.
    pub fn draw(self, random: &mut Random) -> Duration {
        self.soonest + random.span(self.latest - self.soonest)
    }
}

/// There is no space for another acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

/// The acknowledgments that wait to be sent on an interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckQueue {
    /// Each with the time at which the LSA was received.
    waiting: BTreeMap<LsaKey, (LsaHeader, Instant)>,
    at: Option<Instant>,
}

impl AckQueue {
    /// When the next acknowledgments are sent.
    pub fn next(&self) -> Option<Instant> {
        self.at
    }

    /// Whether any acknowledgment is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| at <= now)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The LSA is flooded, so it needs no acknowledgment.
    pub fn remove(&mut self, key: LsaKey) {
        self.waiting.remove(&key);
    }

    /// A delayed acknowledgment of an instance that was first received at `since`. A newer instance replaces an older
    /// one, and its delay begins again. At most `limit` wait.
    pub fn add_delayed(&mut self, header: LsaHeader, since: Instant, wait: Duration, limit: usize) -> Result<(), Full> {
        let waiting = self.waiting.get(&header.key);
        if waiting.is_some_and(|(waiting, _)| waiting.compare_instance(&header).is_eq()) {
            return Ok(());
        }
        self.insert(header, since, limit)?;
        let leaves = since + wait;
        self.at = Some(self.at.map_or(leaves, |at| at.min(leaves)));
        Ok(())
    }

    /// An acknowledgment that makes the next packet leave now.
    pub fn add_immediate(&mut self, header: LsaHeader, now: Instant, limit: usize) -> Result<(), Full> {
        self.insert(header, now, limit)?;
        self.at = Some(now);
        Ok(())
    }

    /// Removes and returns the acknowledgments of LSAs received at least `waited` ago. `wait` is the delay of those
    /// that are left.
    pub fn take(&mut self, now: Instant, waited: Duration, delay: AckDelay, wait: Duration) -> Vec<LsaHeader> {
        let mut headers = Vec::new();
        self.waiting.retain(|_, (header, since)| {
            let leaves = now.since(*since) >= waited;
            if leaves {
                headers.push(*header);
            }
            !leaves
        });
        // The next packet of delayed acknowledgments follows after AckInterval: those left have waited less than the
        // minimum, so that this is within the maximum.
        let oldest = self.waiting.values().map(|(_, since)| *since).min();
        let interval = delay.latest - delay.soonest;
        self.at = oldest.map(|since| (now + interval).max(since + wait).min(since + delay.latest));
        headers
    }

    fn insert(&mut self, header: LsaHeader, since: Instant, limit: usize) -> Result<(), Full> {
        if self.waiting.len() >= limit && !self.waiting.contains_key(&header.key) {
            return Err(Full);
        }
        self.waiting.insert(header.key, (header, since));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::lsa::LsaSequence;
    use anabranch_wire::ospf::{InterfaceId, LinkStateId, LsaType, RouterId};
    use std::net::Ipv6Addr;

    const DELAY: AckDelay = AckDelay { soonest: Duration::from_secs(5), latest: Duration::from_secs(6) };

    fn header(id: u32, sequence: u32) -> LsaHeader {
        let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(1), id: LinkStateId(id) };
        let sequence = LsaSequence(LsaSequence::INITIAL.0 + sequence as i32);
        LsaHeader { age: 1, key, sequence, checksum: 0, length: 20 }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ids(headers: &[LsaHeader]) -> Vec<u32> {
        headers.iter().map(|header| header.key.id.0).collect()
    }

    #[test]
    fn rfc5614_8_2_delayed_acknowledgments_leave_within_ack_interval_before_rxmt_interval() {
        let config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
        let delay = AckDelay::of(&config);
        let expected = AckDelay { soonest: Duration::from_millis(5500), latest: Duration::from_millis(6500) };
        assert_eq!(delay, expected);
        let mut random = Random::new(1, RouterId(1));
        assert!((0..100).map(|_| delay.draw(&mut random)).all(|wait| (delay.soonest..=delay.latest).contains(&wait)));
    }

    #[test]
    fn what_came_in_too_lately_waits_for_the_next_packet() {
        let mut queue = AckQueue::default();
        let wait = Duration::from_millis(5200);
        assert_eq!(queue.add_delayed(header(1, 0), at(1000), wait, 9), Ok(()));
        assert_eq!(queue.add_delayed(header(2, 0), at(3000), wait, 9), Ok(()));
        assert_eq!(queue.next(), Some(at(6200)));
        assert!(!queue.is_due(at(6199)) && queue.is_due(at(6200)));
        assert_eq!(ids(&queue.take(at(6200), DELAY.soonest, DELAY, wait)), [1]);
        assert_eq!(queue.next(), Some(at(8200)));
    }

    #[test]
    fn the_same_instance_does_not_wait_anew_and_a_newer_one_does() {
        let mut queue = AckQueue::default();
        let wait = DELAY.soonest;
        for (sequence, since) in [(0, 1000), (0, 2000), (1, 3000)] {
            assert_eq!(queue.add_delayed(header(1, sequence), at(since), wait, 9), Ok(()));
        }
        assert!(queue.take(at(7999), DELAY.soonest, DELAY, wait).is_empty());
        assert_eq!(queue.take(at(8000), DELAY.soonest, DELAY, wait), [header(1, 1)]);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn an_immediate_one_takes_the_others_along() {
        let mut queue = AckQueue::default();
        assert_eq!(queue.add_delayed(header(1, 0), at(1000), DELAY.latest, 2), Ok(()));
        assert_eq!(queue.add_immediate(header(2, 0), at(2000), 2), Ok(()));
        assert!(queue.is_due(at(2000)));
        assert_eq!(ids(&queue.take(at(2000), Duration::ZERO, DELAY, DELAY.latest)), [1, 2]);
    }

    #[test]
    fn a_full_queue_takes_only_what_it_holds() {
        let mut queue = AckQueue::default();
        assert_eq!(queue.add_immediate(header(1, 0), at(1000), 1), Ok(()));
        assert_eq!(queue.add_immediate(header(2, 0), at(1000), 1), Err(Full));
        assert_eq!(queue.add_delayed(header(2, 0), at(1000), DELAY.latest, 1), Err(Full));
        assert_eq!(queue.add_delayed(header(1, 1), at(1000), DELAY.latest, 1), Ok(()));
        queue.remove(header(1, 1).key);
        assert_eq!(queue.add_immediate(header(2, 0), at(1000), 1), Ok(()));
    }
}
