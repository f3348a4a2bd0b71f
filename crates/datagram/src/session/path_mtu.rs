//! Path MTU discovery for sealed datagrams by padded probes that the peer answers (RFC 8899), with regular confirmation
//! while the path is used.

use crate::datagram::INSIDE_MTU;
use crate::format::{HEADER, TAG};
use anabranch_policy::time::{Duration, Instant};

/// Bytes of a sealed datagram with a full packet of the device, UDP over IPv6. Larger ones are never needed.
pub const LARGEST: usize = INSIDE_MTU as usize - 40 - 8 + HEADER + TAG + 11 + 18 + 18;
/// The size assumed initially (RFC 8899, section 5.1.2: BASE_PLPMTU),
const BASE: usize = 1_200;
/// and for paths that do not carry that: with headers less than the 576 bytes that every IPv4 path carries.
const LEAST: usize = 512;
/// The search ends when the bounds are this close.
const EXACT: usize = 8;
/// Unanswered probes after which a size counts as too large (MAX_PROBES),
const TRIES: u32 = 3;
/// each unanswered for this time and two round trips.
const UNANSWERED: Duration = Duration::from_millis(250);
/// Interval between confirmations of the current size, since routes change,
const CONFIRM: Duration = Duration::from_secs(15);
/// shortened to this when there is loss;
const CONFIRM_SOONEST: Duration = Duration::from_secs(1);
/// Interval between attempts at larger sizes (PMTU_RAISE_TIMER). The RFC has 600 s; the paths here are wireless and
/// change.
const RAISE: Duration = Duration::from_secs(60);

/// An unanswered probe.
#[derive(Clone, Copy, Debug)]
struct Asked {
    size: usize,
    tries: u32,
    until: Instant,
}

/// The MTU of a path in one direction.
#[derive(Clone, Copy, Debug)]
pub struct PathMtu {
    carried: usize,
    /// The smallest size assumed too large.
    fails: usize,
    /// When the current size was last confirmed by an answer.
    confirmed: Option<Instant>,
    asked: Option<Asked>,
    /// When to send the next probe.
    next: Instant,
    raise: Instant,
}

impl Default for PathMtu {
    fn default() -> Self {
        Self {
            carried: BASE,
            fails: LARGEST + 1,
            confirmed: None,
            asked: None,
            next: Instant::NEVER,
            raise: Instant::NEVER,
        }
    }
}

impl PathMtu {
    /// The size assumed to be carried, in bytes of a sealed datagram.
    pub fn carried(&self) -> usize {
        self.carried
    }

    /// Whether the search has ended.
    pub fn is_settled(&self) -> bool {
        self.confirmed.is_some() && self.fails.saturating_sub(self.carried) <= EXACT
    }

    /// Starts the search: the path has delivered something.
    pub fn begin(&mut self, now: Instant) {
        if self.confirmed.is_none() && self.asked.is_none() && self.next == Instant::NEVER {
            self.next = now;
        }
    }

    /// Records that a datagram of `size` bytes is about to be sent.
    pub fn used(&mut self, size: usize, now: Instant) {
        let Some(confirmed) = self.confirmed.filter(|_| self.asked.is_none() && self.next == Instant::NEVER) else {
            return;
        };
        let old = size > LEAST && confirmed + CONFIRM <= now;
        if old || self.raise <= now {
            self.next = now;
        }
    }

    /// Records loss on the path: the size may be too large.
    pub fn suspect(&mut self, now: Instant) {
        let settled = self.asked.is_none() && self.next == Instant::NEVER;
        if settled && self.confirmed.is_some_and(|confirmed| confirmed + CONFIRM_SOONEST <= now) {
            self.next = now;
        }
    }

    /// When to call [`Self::poll_probe`].
    pub fn poll_timeout(&self) -> Instant {
        self.asked.map_or(self.next, |asked| asked.until)
    }

    /// The size of the probe to send now. An unusable path is not probed: no answer would say nothing of sizes.
    pub fn poll_probe(&mut self, now: Instant, usable: bool, round_trip: Option<Duration>) -> Option<usize> {
        if self.poll_timeout() > now {
            return None;
        }
        if !usable {
            // The next arrival over the path restarts the search.
            (self.asked, self.next) = (None, Instant::NEVER);
            return None;
        }
        let tries = match self.asked {
            Some(asked) if asked.tries < TRIES => asked.tries,
            Some(asked) => {
                self.failed(asked.size, now);
                0
            }
            None => 0,
        };
        let size = match self.asked {
            Some(asked) => Some(asked.size),
            None => self.choose(now),
        };
        let round_trip = round_trip.unwrap_or(UNANSWERED);
        let until = now + UNANSWERED + round_trip + round_trip;
        self.asked = size.map(|size| Asked { size, tries: tries + 1, until });
        self.next = Instant::NEVER;
        size
    }

    /// The next size to probe; `None` if the search has ended.
    fn choose(&mut self, now: Instant) -> Option<usize> {
        let Some(confirmed) = self.confirmed else {
            // First the largest size, then the base, then bisection.
            return Some(if self.fails > LARGEST { LARGEST } else { self.carried });
        };
        if self.fails - self.carried > EXACT && self.carried < LARGEST {
            return Some(if self.fails > LARGEST { LARGEST } else { self.carried.midpoint(self.fails) });
        }
        if self.raise <= now {
            self.fails = LARGEST + 1;
            self.raise = Instant::NEVER;
            return (self.carried < LARGEST).then_some(LARGEST);
        }
        if self.carried < LARGEST && self.raise == Instant::NEVER {
            self.raise = now + RAISE;
        }
        (confirmed + CONFIRM_SOONEST <= now).then_some(self.carried)
    }

    /// Handles the answer to a probe of this size.
    pub fn answered(&mut self, size: usize, now: Instant) {
        if self.asked.is_none_or(|asked| asked.size != size) {
            return;
        }
        self.asked = None;
        self.carried = self.carried.max(size);
        self.fails = self.fails.max(self.carried + 1);
        self.confirmed = Some(now);
        self.next = now;
    }

    /// Records that a datagram of this size exceeds the interface's MTU.
    pub fn too_large(&mut self, size: usize, now: Instant) {
        if size > LEAST && size <= LARGEST {
            self.failed(size, now);
        }
    }

    fn failed(&mut self, size: usize, now: Instant) {
        self.asked = None;
        self.next = now;
        self.fails = self.fails.min(size);
        if size <= self.carried {
            // The size was carried before and is not any more.
            self.carried = if size > BASE { BASE } else { LEAST };
            self.confirmed = None;
        }
        if self.carried == LEAST {
            // That size is assumed without an answer: smaller probes are answered.
            self.confirmed.get_or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(20);

    /// Advances time until no probe is due; `carries` is the MTU of the path. Returns the probed sizes.
    fn run(mtu: &mut PathMtu, now: &mut Instant, carries: usize) -> Vec<usize> {
        let mut asked = Vec::new();
        while mtu.poll_timeout() != Instant::NEVER {
            *now = (*now).max(mtu.poll_timeout());
            if let Some(size) = mtu.poll_probe(*now, true, Some(TRIP)) {
                asked.push(size);
                if size <= carries {
                    *now += TRIP;
                    mtu.answered(size, *now);
                }
            }
            assert!(asked.len() < 100, "it ends");
        }
        asked
    }

    fn started(carries: usize) -> (PathMtu, Instant, Vec<usize>) {
        let (mut mtu, mut now) = (PathMtu::default(), Instant::ZERO + Duration::from_secs(1));
        mtu.begin(now);
        let asked = run(&mut mtu, &mut now, carries);
        (mtu, now, asked)
    }

    #[test]
    fn a_path_that_carries_all_is_known_after_one_probe() {
        let (mtu, now, asked) = started(1_472);
        assert_eq!((mtu.carried(), asked), (1_433, vec![1_433]));
        assert_eq!(now, Instant::ZERO + Duration::from_secs(1) + TRIP);
    }

    #[test]
    fn what_a_path_carries_is_found_to_eight_bytes_in_ten_seconds() {
        for carries in [1_232, 1_252, 1_300, 1_392, 1_424, 1_432, 1_200] {
            let (mtu, now, _) = started(carries);
            assert!((carries - EXACT..=carries).contains(&mtu.carried()), "{} of {carries}", mtu.carried());
            assert!(now < Instant::ZERO + Duration::from_secs(11), "{now:?}");
        }
    }

    #[test]
    fn a_path_that_carries_less_than_the_base_is_searched_from_the_least() {
        for carries in [512, 548, 900, 1_100] {
            let (mtu, ..) = started(carries);
            assert!((carries - EXACT..=carries).contains(&mtu.carried()), "{} of {carries}", mtu.carried());
        }
    }

    #[test]
    fn a_route_that_carries_less_is_noticed_when_datagrams_are_lost_and_one_that_carries_more_later() {
        let (mut mtu, mut now, _) = started(1_472);
        mtu.suspect(now);
        assert_eq!(mtu.poll_timeout(), Instant::NEVER, "it was known a moment ago");
        now += Duration::from_secs(2);
        mtu.suspect(now);
        let asked = run(&mut mtu, &mut now, 1_300);
        assert_eq!(asked[..3], [1_433; 3]);
        assert!((1_292..=1_300).contains(&mtu.carried()), "{}", mtu.carried());
        let before = now;
        now += Duration::from_secs(59);
        mtu.used(400, now);
        assert_eq!(mtu.poll_timeout(), Instant::NEVER);
        now = before + Duration::from_secs(60);
        mtu.used(400, now);
        run(&mut mtu, &mut now, 1_472);
        assert_eq!(mtu.carried(), 1_433);
    }

    #[test]
    fn what_is_used_is_confirmed_every_15_seconds_and_what_is_idle_is_left_alone() {
        let (mut mtu, mut now, _) = started(1_472);
        now += Duration::from_secs(3_600);
        assert_eq!(mtu.poll_timeout(), Instant::NEVER);
        mtu.used(1_300, now);
        assert_eq!(run(&mut mtu, &mut now, 1_472), [1_433]);
        mtu.used(1_300, now + Duration::from_secs(14));
        assert_eq!(mtu.poll_timeout(), Instant::NEVER);
    }

    #[test]
    fn a_path_that_answers_nothing_says_nothing_of_sizes() {
        let (mut mtu, now) = (PathMtu::default(), Instant::ZERO);
        mtu.begin(now);
        for millis in (0..5_000).step_by(10) {
            assert_eq!(mtu.poll_probe(now + Duration::from_millis(millis), false, None), None);
        }
        assert_eq!((mtu.carried(), mtu.poll_timeout()), (BASE, Instant::NEVER));
        mtu.begin(now);
        assert_eq!(mtu.poll_probe(now, true, None), Some(LARGEST), "it is asked when it is heard again");
    }

    #[test]
    fn what_the_interface_does_not_take_is_not_asked_for_again() {
        let (mut mtu, mut now) = (PathMtu::default(), Instant::ZERO);
        mtu.begin(now);
        assert_eq!(mtu.poll_probe(now, true, Some(TRIP)), Some(1_433));
        mtu.too_large(1_433, now);
        let asked = run(&mut mtu, &mut now, 1_252);
        assert_eq!(asked[0], 1_200);
        assert!((1_244..=1_252).contains(&mtu.carried()), "{}", mtu.carried());
    }
}
