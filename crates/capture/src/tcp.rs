//! TCP: a program's connection is accepted once its target is connected, and otherwise refused as the target or a
//! router would.

use crate::counters::Shared;
use crate::device::MTU;
use crate::refusal::unreachable;
use anabranch_datagram::Reason;
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_proxy::{Carrier, Failure, Target};
use anabranch_stack::{Asked, Gateway};
use std::io;
use std::sync::Arc;

/// Settings of programs' connections: plain TCP over a lossless link.
pub(crate) fn near(combination: &Combination) -> io::Result<ConnectionConfig> {
    let mut config = ConnectionConfig::new(Policies::of(combination).map_err(io::Error::other)?);
    // Multipath applies only to the outgoing connections.
    config.multipath = false;
    config.tcp.mtu = MTU;
    Ok(config)
}

/// Connects to the target, then accepts or refuses the connection.
pub(crate) fn serve(
    asked: Asked,
    carrier: &mut Carrier,
    near: &ConnectionConfig,
    gateway: &Arc<Gateway>,
    shared: &Arc<Shared>,
) {
    let (from, target) = (asked.from(), Target::from(asked.to()));
    let (near, gateway, shared) = (near.clone(), Arc::clone(gateway), Arc::clone(shared));
    carrier.carry(from, target, move |reached| match reached {
        Ok(()) => asked.accept(near).ok(),
        Err(failure) => {
            refuse(asked, failure, &gateway, &shared);
            None
        }
    });
}

/// Refuses a connection as its target, or a router on the way, would.
fn refuse(asked: Asked, failure: Failure, gateway: &Gateway, shared: &Shared) {
    let reason = match failure {
        Failure::NetworkUnreachable => Reason::Network,
        Failure::HostUnreachable => Reason::Host,
        Failure::NotAllowed => Reason::Prohibited,
        // A silent target leaves the SYN unanswered, and the program waits as without a capture.
        Failure::TimedOut => return drop(asked.forget()),
        Failure::Refused | Failure::General | Failure::NoDescriptors | Failure::ServerFull => {
            shared.count(|counters| counters.refused += 1);
            return asked.refuse();
        }
    };
    let mut quoted = Vec::new();
    let syn = asked.forget().filter(|syn| syn.emit(&mut quoted).is_ok());
    if let Some(message) = syn.and_then(|_| unreachable(&quoted, reason)) {
        shared.count(|counters| counters.unreachable += 1);
        gateway.send(&message);
    }
}
