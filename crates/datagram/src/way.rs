//! Where programs' datagrams go: to a server of ours, or directly to their targets.

use crate::client::Client;
use crate::config::PathReport;
use crate::datagram::{Datagram, LARGEST_PAYLOAD, Unreachable};
use crate::direct::Direct;
use core::net::SocketAddr;

/// Where programs' datagrams go; clones share the state.
#[derive(Clone)]
pub enum Way {
    /// To a server over all uplinks.
    Server(Client),
    /// Directly to their targets, one uplink for each flow.
    Direct(Direct),
}

impl Way {
    /// Sends a datagram, or drops it. Never waits. Call this within a runtime.
    pub fn send(&self, datagram: Datagram) -> bool {
        match self {
            Self::Server(client) => client.send(datagram),
            Self::Direct(direct) => direct.send(datagram),
        }
    }

    /// The next datagram for a program.
    pub async fn receive(&self) -> Datagram {
        match self {
            Self::Server(client) => client.receive().await,
            Self::Direct(direct) => direct.receive().await,
        }
    }

    /// The next report that a datagram did not reach its target.
    pub async fn unreachable(&self) -> Unreachable {
        match self {
            Self::Server(client) => client.unreachable().await,
            Self::Direct(direct) => direct.unreachable().await,
        }
    }

    /// The largest payload between these addresses that is known to be carried in one datagram. The kernel fragments
    /// larger direct datagrams.
    pub fn largest_whole(&self, inside: SocketAddr, outside: SocketAddr) -> usize {
        match self {
            Self::Server(client) => client.largest_whole(inside, outside),
            Self::Direct(_) => LARGEST_PAYLOAD,
        }
    }

    /// Whether some route leads to the target's family. What a server reaches is unknown here.
    pub fn reaches(&self, target: SocketAddr) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Direct(direct) => direct.reaches(target),
        }
    }

    /// Sets the uplinks used only while no other works, and the uplinks not used.
    pub fn set_uses(&self, reserve: &[String], barred: &[String]) {
        match self {
            Self::Server(client) => client.set_uses(reserve, barred),
            Self::Direct(direct) => direct.set_uses(reserve, barred),
        }
    }

    /// The uplinks.
    pub fn report(&self) -> Vec<PathReport> {
        match self {
            Self::Server(client) => client.report(),
            Self::Direct(direct) => direct.report(),
        }
    }

    /// Tells the server, if there is one, that the client ends.
    pub fn close(&self) {
        if let Self::Server(client) = self {
            client.close();
        }
    }
}
