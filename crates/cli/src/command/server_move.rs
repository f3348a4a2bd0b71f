//! Finds out that the server's name has another address.

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
}

impl Lookout<'_> {
    /// As [`moved`], or completes with another address that any resolver knows, if the server proves the key there and does not
    /// answer at the present one: a resolver may lie, such as that of a captive portal.
    pub async fn moved(&self, find: impl AsyncFn() -> Vec<SocketAddr>) -> ServerAddresses {
        tokio::select! {
            moved = moved(self.addresses.first(), find) => moved,
            found = self.elsewhere() => ServerAddresses::new(found, &self.addresses.iter().collect::<Vec<_>>()),
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

/// Completes when `find` has returned others than the address `known` twice in a row; then with the first of
/// them, and the first of the other family.
pub async fn moved(known: SocketAddr, find: impl AsyncFn() -> Vec<SocketAddr>) -> ServerAddresses {
    let mut elsewhere = 0;
    loop {
        sleep(ASK_FOR_NAME_AGAIN).await;
        let found = find().await;
        if let Some(moved) = judge(known, &found, &mut elsewhere) {
            return ServerAddresses::new(moved, &found);
        }
    }
}

/// The server's new address, if what was found this time convinces; `elsewhere` counts how often it was another in a row.
fn judge(known: SocketAddr, found: &[SocketAddr], elsewhere: &mut u32) -> Option<SocketAddr> {
    *elsewhere = if found.is_empty() || found.contains(&known) { 0 } else { *elsewhere + 1 };
    found.first().copied().filter(|_| *elsewhere >= CONVINCED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_moved_when_its_name_had_another_address_twice_in_a_row() {
        let at = |last| SocketAddr::from(([192, 0, 2, last], 4433));
        let mut elsewhere = 0;
        for found in [&[at(1)][..], &[at(2)], &[at(2), at(1)], &[at(2)], &[], &[at(3)]] {
            assert_eq!(judge(at(1), found, &mut elsewhere), None, "{found:?}");
        }
        assert_eq!(judge(at(1), &[at(4), at(5)], &mut elsewhere), Some(at(4)));
    }
}
