//! The addresses of a server's name at the start: by the system's resolver, and over each uplink if that does not answer.
//!
//! The system asks by the host's routes. The uplink of the first one may be dead, and a kill switch that an `up` has left
//! refuses the question.

use crate::console::event;
use crate::serving::{SLOW, unknown};
use crate::uplink_names::addresses;
use anabranch_datagram::is_uplink;
use anabranch_host::{Netlink, Snapshot};
use anabranch_proxy::Target;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_system::leave_signals_to_others;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Retry interval of name resolution.
const ASK_FOR_NAME_AGAIN: Duration = Duration::from_secs(5);

/// All addresses of a server, at least one. `uplinks` are asked over, or all interfaces with a default route. Must be
/// called within a runtime.
///
/// # Errors
/// The name is not known.
pub async fn known(server: &Target, uplinks: &[String]) -> Result<Vec<SocketAddr>, Diagnostic> {
    let mut reason = "it has no address".to_owned();
    let by_system = async {
        let found = by_the_system(server.to_string()).await;
        found.unwrap_or_else(|error| {
            reason = error.to_string();
            Vec::new()
        })
    };
    let found = {
        let mut by_system = pin!(by_system);
        match timeout(SLOW, &mut by_system).await {
            Ok(found) if found.is_empty() => over_uplinks(server, uplinks).await,
            Ok(found) => found,
            Err(_) => {
                event(&format!("waiting for the address of {server}: no resolver of this host answers"));
                first_with_any(over_uplinks(server, uplinks), by_system).await
            }
        }
    };
    if found.is_empty() { Err(unknown("--server", server, &reason)) } else { Ok(found) }
}

/// Like [`known`], retried until the name is known: a host that has just started may have no resolver yet.
pub async fn known_in_time(server: &Target, uplinks: &[String]) -> Vec<SocketAddr> {
    let mut told = false;
    loop {
        match known(server, uplinks).await {
            Ok(addresses) => return addresses,
            Err(unknown) if !told => event(&format!("{}; it is asked for again", unknown.message())),
            Err(_) => {}
        }
        told = true;
        sleep(ASK_FOR_NAME_AGAIN).await;
    }
}

/// The addresses of a server whose name was known, found as by [`known`] without a word of what takes long; empty if nobody
/// answers.
pub async fn known_again(server: &Target, uplinks: &[String]) -> Vec<SocketAddr> {
    match timeout(SLOW, by_the_system(server.to_string())).await {
        Ok(Ok(found)) if !found.is_empty() => found,
        _ => over_uplinks(server, uplinks).await,
    }
}

/// What the system's resolver finds, in a thread of its own: nobody waits for one that is silent once another way has found
/// it, and a runtime would at its end.
async fn by_the_system(target: String) -> io::Result<Vec<SocketAddr>> {
    let (tell, told) = oneshot::channel();
    let find = move || {
        leave_signals_to_others();
        let mut all: Vec<SocketAddr> = Vec::new();
        let found = target.to_socket_addrs().map(|found| {
            for address in found {
                if !all.contains(&address) {
                    all.push(address);
                }
            }
            all
        });
        // Nobody waits any more.
        let _ = tell.send(found);
    };
    std::thread::Builder::new().name("resolver".to_owned()).spawn(find)?;
    told.await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}

async fn over_uplinks(server: &Target, uplinks: &[String]) -> Vec<SocketAddr> {
    let all = if uplinks.is_empty() { with_default_routes() } else { uplinks.to_vec() };
    addresses(server, &all).await
}

/// The uplinks that are used if none is named; none if the kernel does not tell.
fn with_default_routes() -> Vec<String> {
    let taken = Netlink::open().and_then(|mut netlink| Snapshot::take(&mut netlink));
    let all = taken.map(|taken| taken.interfaces).unwrap_or_default().into_iter();
    all.filter(|one| is_uplink(one, &[])).map(|one| one.name).collect()
}

/// The first outcome that is not empty.
async fn first_with_any<T>(one: impl Future<Output = Vec<T>>, other: impl Future<Output = Vec<T>>) -> Vec<T> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    tokio::select! {
        found = &mut one => if found.is_empty() { other.await } else { found },
        found = &mut other => if found.is_empty() { one.await } else { found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_found_first_counts_and_nothing_found_does_not() {
        let never = std::future::pending::<Vec<u8>>;
        assert_eq!(first_with_any(async { vec![1] }, never()).await, [1]);
        assert_eq!(first_with_any(never(), async { vec![2] }).await, [2]);
        assert_eq!(first_with_any(async { Vec::new() }, async { vec![3] }).await, [3]);
        assert_eq!(first_with_any(async { vec![4] }, async { Vec::new() }).await, [4]);
        assert!(first_with_any::<u8>(async { Vec::new() }, async { Vec::new() }).await.is_empty());
    }
}
