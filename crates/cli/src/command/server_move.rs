//! Finds out that the server's name has another address.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::sleep;

/// Interval of name resolution of the server.
const ASK_FOR_NAME_AGAIN: Duration = Duration::from_secs(30);

/// Consecutive resolutions with another address before the server is considered moved: a name may have several
/// addresses.
const CONVINCED: u32 = 2;

/// Completes when `find` has returned others than the address `known` twice in a row; then with the first of them.
pub async fn moved(known: SocketAddr, find: impl AsyncFn() -> Vec<SocketAddr>) -> SocketAddr {
    let mut elsewhere = 0;
    loop {
        sleep(ASK_FOR_NAME_AGAIN).await;
        if let Some(moved) = judge(known, &find().await, &mut elsewhere) {
            return moved;
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
