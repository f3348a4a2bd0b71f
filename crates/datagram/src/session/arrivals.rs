//! Handles received datagrams and pieces of programs: removes duplicates, and delays a datagram while an earlier one is
//! missing, if the sender allows that.

use super::window::Window;
use anabranch_policy::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// How many datagrams a duplicate may be late.
const COPIES: u64 = 16_384;
/// Most delayed datagrams; one more releases the first.
const MOST_HELD: usize = 1_024;

/// The receive state of one direction of a session.
#[derive(Debug)]
pub struct Arrivals<T> {
    /// The sequence numbers of datagrams with duplicates.
    copies: Option<Window>,
    /// The next sequence number in order; none before the first datagram.
    next: Option<u64>,
    /// Delayed datagrams with their deadlines. For datagrams that arrived early and were passed on without delay there
    /// is only the number.
    held: BTreeMap<u64, (Instant, Option<T>)>,
    /// Duplicates removed.
    pub duplicates: u64,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self { copies: None, next: None, held: BTreeMap::new(), duplicates: 0 }
    }
}

impl<T> Arrivals<T> {
    /// Extends the 32 bits of a sequence number: the result is nearest to the numbers seen.
    fn whole(&mut self, sequence: u32) -> u64 {
        // Starts above zero so that earlier numbers fit below the first.
        let next = *self.next.get_or_insert((1 << 32) + u64::from(sequence));
        let distance = sequence.wrapping_sub(next as u32) as i32;
        next.saturating_add_signed(distance.into())
    }

    /// Stops waiting for numbers before `number`.
    fn go_to(&mut self, number: u64) -> u64 {
        let next = self.next.map_or(number, |next| next.max(number));
        self.next = Some(next);
        next
    }

    /// Handles an arrival; datagrams ready for the program are appended to `out`.
    pub fn arrive(
        &mut self,
        now: Instant,
        (sequence, copies, hold): (u32, bool, Duration),
        datagram: T,
        out: &mut VecDeque<T>,
    ) {
        let number = self.whole(sequence);
        if copies {
            let window = self.copies.get_or_insert_with(|| Window::new(COPIES));
            if !window.is_new(number) {
                self.duplicates += 1;
                return;
            }
            window.insert(number);
        }
        let early = self.next.is_some_and(|next| number > next);
        if !early || (hold.is_zero() && self.held.is_empty()) {
            out.push_back(datagram);
            self.go_to(number + 1);
            self.release(out);
            return;
        }
        let entry = if hold.is_zero() {
            out.push_back(datagram);
            (Instant::NEVER, None)
        } else {
            (now + hold, Some(datagram))
        };
        self.held.insert(number, entry);
        if self.held.len() > MOST_HELD
            && let Some(&first) = self.held.keys().next()
        {
            self.go_to(first);
        }
        self.release(out);
    }

    /// Passes on the datagrams that are next in order.
    fn release(&mut self, out: &mut VecDeque<T>) {
        let mut next = self.next.unwrap_or_default();
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= next) {
            next = next.max(entry.key() + 1);
            out.extend(entry.remove().1);
        }
        self.go_to(next);
    }

    /// The deadline of the first delayed datagram.
    pub fn poll_timeout(&self) -> Instant {
        self.held.values().map(|(until, _)| *until).min().unwrap_or(Instant::NEVER)
    }

    /// Passes on delayed datagrams whose deadline is reached, and all before them.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<T>) {
        let due = self.held.iter().filter(|(_, (until, _))| *until <= now).map(|(number, _)| *number).max();
        let Some(last) = due else { return };
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= last) {
            out.extend(entry.remove().1);
        }
        self.go_to(last + 1);
        self.release(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{Datagram, Kind};
    use bytes::Bytes;

    const HOLD: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn datagram(number: u32) -> Datagram {
        let address = "10.0.0.1:1".parse().expect("an address");
        let payload = Bytes::copy_from_slice(&number.to_be_bytes());
        Datagram { kind: Kind::Udp, inside: address, outside: address, payload }
    }

    /// The datagrams passed on when these numbers arrive at intervals of 1 ms.
    fn passed(arrivals: &mut Arrivals<Datagram>, numbers: &[u32], copies: bool, hold: Duration) -> Vec<u32> {
        let mut out = VecDeque::new();
        for (millis, number) in (0..).zip(numbers) {
            arrivals.arrive(at(millis), (*number, copies, hold), datagram(*number), &mut out);
        }
        numbers_of(out)
    }

    fn numbers_of(out: VecDeque<Datagram>) -> Vec<u32> {
        out.iter().map(|datagram| u32::from_be_bytes(datagram.payload[..].try_into().expect("four bytes"))).collect()
    }

    #[test]
    fn copies_are_removed_and_nothing_else_is() {
        let mut arrivals = Arrivals::default();
        assert_eq!(passed(&mut arrivals, &[0, 0, 2, 1, 2, 1, 0], true, Duration::ZERO), [0, 2, 1]);
        assert_eq!(arrivals.duplicates, 4);
    }

    #[test]
    fn without_a_hold_everything_goes_at_once() {
        assert_eq!(passed(&mut Arrivals::default(), &[3, 0, 1, 7], false, Duration::ZERO), [3, 0, 1, 7]);
    }

    #[test]
    fn a_stream_of_datagrams_may_begin_at_any_number() {
        for first in [0, 1, 3_000_000_000, u32::MAX] {
            let numbers = [first, first.wrapping_sub(1), first.wrapping_add(1)];
            assert_eq!(passed(&mut Arrivals::default(), &numbers, true, Duration::ZERO), numbers);
        }
    }

    #[test]
    fn what_does_not_wait_is_not_kept_by_what_does_and_is_not_waited_for() {
        let mut arrivals = Arrivals::default();
        assert_eq!(passed(&mut arrivals, &[0, 2], false, HOLD), [0]);
        assert_eq!(passed(&mut arrivals, &[3], false, Duration::ZERO), [3]);
        assert_eq!(passed(&mut arrivals, &[4, 1], false, HOLD), [1, 2, 4]);
        assert!(arrivals.held.is_empty());
    }

    #[test]
    fn what_came_too_early_waits_for_its_turn() {
        let mut arrivals = Arrivals::default();
        assert_eq!(passed(&mut arrivals, &[0, 2, 3, 1, 4], false, HOLD), [0, 1, 2, 3, 4]);
        assert_eq!(arrivals.poll_timeout(), Instant::NEVER);
    }

    #[test]
    fn what_waits_for_one_that_is_lost_goes_on_in_time() {
        let mut arrivals = Arrivals::default();
        assert_eq!(passed(&mut arrivals, &[0, 2, 5, 3], false, HOLD), [0]);
        assert_eq!(arrivals.poll_timeout(), at(21));
        let mut out = VecDeque::new();
        arrivals.handle_timeout(at(20), &mut out);
        assert_eq!(out.len(), 0);
        arrivals.handle_timeout(at(21), &mut out);
        assert_eq!(numbers_of(out), [2, 3]);
        // 5 still waits for 4; 1 arrives last and is passed on.
        assert_eq!(arrivals.poll_timeout(), at(22));
        assert_eq!(passed(&mut arrivals, &[1, 4], false, HOLD), [1, 4, 5]);
    }

    #[test]
    fn numbers_go_on_over_the_end_of_their_32_bits() {
        let mut arrivals = Arrivals { next: Some(u64::from(u32::MAX) - 1), ..Arrivals::default() };
        let numbers = [u32::MAX - 1, 0, u32::MAX, 1];
        assert_eq!(passed(&mut arrivals, &numbers, true, HOLD), [u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(arrivals.next, Some((1 << 32) + 2));
    }

    #[test]
    fn no_more_than_so_many_wait() {
        let numbers: Vec<u32> = (1..=MOST_HELD as u32 + 1).collect();
        let mut arrivals = Arrivals { next: Some(0), ..Arrivals::default() };
        assert_eq!(passed(&mut arrivals, &numbers, false, HOLD), numbers);
    }
}
