//! Finds out that the server's name has another address.

use crate::console::event;
use crate::datagrams::proving;
use crate::uplink_names::all_addresses;
use anabranch_datagram::{Client, ClientState};
use anabranch_host::ServerAddresses;
use anabranch_proxy::{Key, Target};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Interval of name resolution of the server.
const ASK_FOR_NAME_AGAIN: Duration = Duration::from_secs(30);

/// Consecutive resolutions with another address before the server is considered moved: a name may have several
/// addresses.
const CONVINCED: u32 = 2;

/// When a server that does not answer is looked for at other addresses for the first time; then after twice as long each time.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(5);

/// Longest interval of that.
const RARELY: Duration = Duration::from_secs(60);

/// How long other addresses have for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server that is to answer datagrams, and how to look for it.
pub struct Lookout<'a> {
    pub named: &'a Target,
    /// Its present addresses.
    pub addresses: ServerAddresses,
    pub key: &'a Key,
    /// The port of datagrams, if it is not the one after that of streams.
    pub port: Option<u16>,
    /// Those that are used now.
    pub uplinks: &'a dyn Fn() -> Vec<String>,
    /// The client at its present address.
    pub datagrams: &'a Client,
    /// Takes addresses of which only the second is another; connections continue.
    pub change: &'a dyn Fn(ServerAddresses),
}

impl Lookout<'_> {
    /// As [`moved`], or completes with another address that any resolver knows, if the server proves the key there and does not
    /// answer at the present one: a resolver may lie, such as that of a captive portal.
    pub async fn moved(&self, find: impl AsyncFn() -> Vec<SocketAddr>) -> ServerAddresses {
        tokio::select! {
            moved = self.by_name(find) => moved,
            found = self.elsewhere() => ServerAddresses::new(found, &self.addresses.iter().collect::<Vec<_>>()),
        }
    }

    /// The addresses of the name once the first is another.
    async fn by_name(&self, find: impl AsyncFn() -> Vec<SocketAddr>) -> ServerAddresses {
        let mut known = self.addresses;
        loop {
            let now = moved(known, &find).await;
            if now.first() != known.first() {
                return now;
            }
            tell(self.named, known, now);
            (self.change)(now);
            known = now;
        }
    }

    async fn elsewhere(&self) -> SocketAddr {
        let mut pause = LOOK_ELSEWHERE;
        loop {
            sleep(pause).await;
            if self.datagrams.state() == ClientState::Connected {
                pause = LOOK_ELSEWHERE;
                continue;
            }
            pause = (pause * 2).min(RARELY);
            let uplinks = (self.uplinks)();
            let mut others = all_addresses(self.named, &uplinks).await;
            others.retain(|address| *address != self.addresses.first());
            if let Ok(found) = timeout(PATIENCE, proving(&others, self.port, self.key, &uplinks)).await {
                return found;
            }
        }
    }
}

/// Completes when `find` has returned others than the addresses `known` twice in a row; then with the first of
/// them, or with the one known if it is still among them, and the first of the other family.
pub async fn moved(known: ServerAddresses, find: impl AsyncFn() -> Vec<SocketAddr>) -> ServerAddresses {
    let mut elsewhere = 0;
    loop {
        sleep(ASK_FOR_NAME_AGAIN).await;
        let found = find().await;
        if let Some(moved) = judge(known, &found, &mut elsewhere) {
            return moved;
        }
    }
}

/// A line about another address of the server.
pub fn tell(named: &Target, known: ServerAddresses, now: ServerAddresses) {
    match now.other() {
        Some(other) if now.first() == known.first() => {
            event(&format!("the server {named} is at {} too now", other.ip()));
        }
        _ => event(&format!("the server {named} is at {} now", now.first().ip())),
    }
}

/// The server's new addresses, if what was found this time convinces; `elsewhere` counts how often it was another in a row. That one
/// family is missing is no change: a resolver may not have answered for it.
fn judge(known: ServerAddresses, found: &[SocketAddr], elsewhere: &mut u32) -> Option<ServerAddresses> {
    let Some(first) = found.iter().copied().find(|address| *address == known.first()).or(found.first().copied()) else {
        *elsewhere = 0;
        return None;
    };
    let now = ServerAddresses::new(first, found);
    let other_stays = now.other().is_none() || known.other().is_some_and(|other| found.contains(&other));
    let stays = first == known.first() && other_stays;
    *elsewhere = if stays { 0 } else { *elsewhere + 1 };
    Some(now).filter(|_| *elsewhere >= CONVINCED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_moved_when_its_name_had_another_address_twice_in_a_row() {
        let at = |last| SocketAddr::from(([192, 0, 2, last], 4433));
        let mut elsewhere = 0;
        for found in [&[at(1)][..], &[at(2)], &[at(2), at(1)], &[at(2)], &[], &[at(3)]] {
            assert_eq!(judge(at(1).into(), found, &mut elsewhere), None, "{found:?}");
        }
        assert_eq!(judge(at(1).into(), &[at(4), at(5)], &mut elsewhere), Some(at(4).into()));
    }

    #[test]
    fn another_second_address_is_noticed_and_a_missing_one_is_none() {
        let four = SocketAddr::from(([192, 0, 2, 1], 4433));
        let six = |last| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 4433));
        let known = ServerAddresses::new(four, &[six(1)]);
        let mut elsewhere = 0;
        for found in [&[six(2), four][..], &[four], &[four, six(2)], &[four, six(2), six(1)], &[six(2), four]] {
            assert_eq!(judge(known, found, &mut elsewhere), None, "{found:?}");
        }
        // The first one stays the first.
        assert_eq!(judge(known, &[six(2), four], &mut elsewhere), Some(ServerAddresses::new(four, &[six(2)])));
        let mut elsewhere = 1;
        let new = ServerAddresses::new(four, &[six(1)]);
        assert_eq!(judge(four.into(), &[six(1), four], &mut elsewhere), Some(new), "one where there was none");
        assert_eq!(judge(four.into(), &[four], &mut elsewhere), None);
    }
}
