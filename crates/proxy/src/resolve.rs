//! Addresses of a target: the system's resolver, and the order in which addresses are tried (RFC 8305).

use super::failure::Failure;
use super::target::{Host, Target};
use core::net::SocketAddr;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Most names looked up at once: the system's resolver takes a thread for each, and others wait.
const LOOKUPS: usize = 16;
/// How long a name may take.
const LOOKUP_TIME: Duration = Duration::from_secs(10);
/// Most addresses of a name that are tried.
const ADDRESSES: usize = 8;
/// How long an attempt is alone before the next begins (RFC 8305, section 8: Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The same once an earlier attempt had no answer in its time (RFC 8305, section 8: at least 10 ms).
const LATER_DELAY: Duration = Duration::from_millis(20);

/// Looks names up, a few at a time.
pub(super) struct Resolver {
    lookups: Semaphore,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self { lookups: Semaphore::new(LOOKUPS) }
    }

    /// The target's addresses in the order to try them.
    pub(super) async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, Failure> {
        let name = match &target.host {
            Host::Address(address) => return Ok(vec![SocketAddr::new(*address, target.port)]),
            Host::Name(name) => name,
        };
        let lookup = async {
            let _turn = self.lookups.acquire().await;
            tokio::net::lookup_host((&**name, target.port)).await.map(Iterator::collect::<Vec<_>>)
        };
        match timeout(LOOKUP_TIME, lookup).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(interleave(addresses)),
            Ok(_unknown) => Err(Failure::HostUnreachable),
            Err(_elapsed) => Err(Failure::TimedOut),
        }
    }
}

/// The families in turn, beginning with that of the first, otherwise as the resolver sorted them (RFC 8305, section 4).
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|a| a.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut order = Vec::new();
    loop {
        let before = order.len();
        order.extend(first.next().into_iter().chain(second.next()));
        if order.len() == before || order.len() >= ADDRESSES {
            order.truncate(ADDRESSES);
            return order;
        }
    }
}

/// Connects to the first of `addresses`, or whatever else there is to choose from, that answers. The next attempt
/// begins when one has failed, or after the delay, which is short once one stayed without an answer; earlier ones
/// continue meanwhile, and are dropped when one has succeeded (RFC 8305, section 5).
///
/// # Errors
/// When all have failed, the most specific reason.
pub(super) async fn connect_to_first<A, T, F>(addresses: Vec<A>, mut connect: impl FnMut(A) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut addresses = addresses.into_iter();
    let mut attempts: Vec<Pin<Box<F>>> = Vec::new();
    let mut delay = Box::pin(sleep(Duration::ZERO));
    let mut worst = Failure::General;
    poll_fn(|context| {
        loop {
            let mut failed = false;
            let mut won = None;
            attempts.retain_mut(|attempt| match attempt.as_mut().poll(context) {
                Poll::Ready(Ok(connected)) => {
                    won.get_or_insert(connected);
                    false
                }
                Poll::Ready(Err(failure)) => {
                    worst = worst.max(failure);
                    failed = true;
                    false
                }
                Poll::Pending => true,
            });
            if let Some(connected) = won {
                return Poll::Ready(Ok(connected));
            }
            let due = failed || attempts.is_empty() || delay.as_mut().poll(context).is_ready();
            // One that is not due yet stays for later.
            let next = if due { addresses.next() } else { None };
            match next {
                Some(address) => {
                    delay.set(sleep(if attempts.is_empty() { ATTEMPT_DELAY } else { LATER_DELAY }));
                    attempts.push(Box::pin(connect(address)));
                }
                None if attempts.is_empty() => return Poll::Ready(Err(worst)),
                None => return Poll::Pending,
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        (1..=count).map(|n| SocketAddr::from(([192, 0, 2, n], 80))).collect()
    }

    fn last(address: SocketAddr) -> u8 {
        address.to_string().trim_end_matches(":80").rsplit('.').next().and_then(|n| n.parse().ok()).expect("an address")
    }

    fn run<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(future)
    }

    #[test]
    fn families_take_turns() {
        let v6 = |n: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, n], 80));
        let v4 = |n| SocketAddr::from(([192, 0, 2, n], 80));
        assert_eq!(interleave(vec![v6(1), v6(2), v6(3), v4(1)]), [v6(1), v4(1), v6(2), v6(3)]);
        assert_eq!(interleave(vec![v4(1), v6(1), v6(2)]), [v4(1), v6(1), v6(2)]);
        assert_eq!(interleave(addresses(20)).len(), ADDRESSES);
        assert!(interleave(Vec::new()).is_empty());
    }

    #[test]
    fn after_a_refused_address_the_next_is_tried_at_once_and_the_most_telling_failure_remains() {
        let tried = RefCell::new(Vec::new());
        let failures = [Failure::TimedOut, Failure::Refused, Failure::NetworkUnreachable];
        let outcome: Result<(), Failure> = run(connect_to_first(addresses(3), |address| {
            tried.borrow_mut().push(last(address));
            let failure = failures[usize::from(last(address)) - 1];
            async move { Err(failure) }
        }));
        assert_eq!(outcome, Err(Failure::Refused));
        assert_eq!(*tried.borrow(), [1, 2, 3]);
    }

    #[test]
    fn a_silent_address_does_not_keep_the_next_from_answering() {
        for count in [2, 3, 4] {
            let tried = RefCell::new(Vec::new());
            let outcome = run(connect_to_first(addresses(count), |address| {
                tried.borrow_mut().push(last(address));
                async move {
                    if last(address) < count {
                        std::future::pending::<()>().await;
                    }
                    Ok(last(address))
                }
            }));
            assert_eq!(outcome, Ok(count));
            assert_eq!(*tried.borrow(), (1..=count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn with_all_addresses_silent_but_the_last_it_is_tried_before_300_ms() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let times = RefCell::new(Vec::new());
        let outcome = runtime.expect("a runtime").block_on(async {
            let began = tokio::time::Instant::now();
            connect_to_first(addresses(4), |address| {
                times.borrow_mut().push(began.elapsed().as_millis());
                async move {
                    if last(address) < 4 {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                }
            })
            .await
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(*times.borrow(), [0, 250, 270, 290]);
    }

    #[test]
    fn an_earlier_attempt_may_still_win() {
        let outcome = run(connect_to_first(addresses(2), |address| async move {
            match last(address) {
                1 => sleep(ATTEMPT_DELAY + Duration::from_millis(50)).await,
                _ => std::future::pending::<()>().await,
            }
            Ok(last(address))
        }));
        assert_eq!(outcome, Ok(1));
    }

    #[test]
    fn no_address_at_all_is_a_failure() {
        let outcome: Result<u8, Failure> = run(connect_to_first(Vec::<SocketAddr>::new(), |_| async { Ok(1) }));
        assert_eq!(outcome, Err(Failure::General));
    }
}
