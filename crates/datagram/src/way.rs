//! Where datagrams of programs go: to a server of ours, or straight to their targets.

use crate::client::Client;
use crate::config::PathReport;
use crate::datagram::{Datagram, LARGEST_PAYLOAD, Unreachable};
use crate::direct::Direct;
use core::net::SocketAddr;

/// Where datagrams of programs go; copies are the same.
#[derive(Clone)]
pub enum Way {
    /// To a server, over all uplinks.
    Server(Client),
    /// Straight to their targets, each flow over one uplink.
    Direct(Direct),
}

impl Way {
    /// Sends a datagram, or drops it. Never waits. To be called within a runtime.
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

    /// The next word on a datagram that did not reach its target.
    pub async fn unreachable(&self) -> Unreachable {
        match self {
            Self::Server(client) => client.unreachable().await,
            Self::Direct(direct) => direct.unreachable().await,
        }
    }

    /// The largest payload between these addresses that is carried in one datagram, as far as is known. Straight to their targets the
    /// kernel cuts them.
    pub fn largest_whole(&self, inside: SocketAddr, outside: SocketAddr) -> usize {
        match self {
            Self::Server(client) => client.largest_whole(inside, outside),
            Self::Direct(_) => LARGEST_PAYLOAD,
        }
    }

    /// Whether there is any way to the target's family, as far as is known here: what a server reaches is not.
    pub fn reaches(&self, target: SocketAddr) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Direct(direct) => direct.reaches(target),
        }
    }

    /// Uplinks that are used only while no other works, and uplinks that are not used.
    pub fn set_uses(&self, reserve: &[String], barred: &[String]) {
        match self {
            Self::Server(client) => client.set_uses(reserve, barred),
            Self::Direct(direct) => direct.set_uses(reserve, barred),
        }
    }

    /// The uplinks now.
    pub fn report(&self) -> Vec<PathReport> {
        match self {
            Self::Server(client) => client.report(),
            Self::Direct(direct) => direct.report(),
        }
    }

    /// Tells the server, if there is one, that this ends.
    pub fn close(&self) {
        if let Self::Server(client) = self {
            client.close();
        }
    }
}
