//! Status of a connection and its paths, with the names of interfaces.

use super::state::State;
use anabranch_mptcp::FallbackCause;
use anabranch_mptcp::Protocol;
use anabranch_mptcp::stats::{ConnectionStats, SubflowReport};
use anabranch_policy::ids::ConnectionId;
use core::net::SocketAddr;

/// A path of a connection.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Name of the local address ([`super::Stack::name_address`]), or the local address.
    pub name: String,
    /// The subflow on it.
    pub subflow: SubflowReport,
}

/// State of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    pub id: ConnectionId,
    /// The peer's address of the initial subflow; that of its datagrams if it is a client inside UDP. So it is with its paths.
    pub remote: SocketAddr,
    /// MPTCP or plain TCP.
    pub protocol: Protocol,
    /// Why it fell back to plain TCP, if it did.
    pub fallback: Option<FallbackCause>,
    /// The application's priority, from 1 (highest) to 6.
    pub priority: u8,
    /// Counters.
    pub stats: ConnectionStats,
    /// Its paths, in order of subflow id.
    pub paths: Vec<PathReport>,
}

/// The cause of a fallback, as text.
pub fn explain(cause: FallbackCause) -> &'static str {
    match cause {
        FallbackCause::NotCapable => "the peer's handshake had no MP_CAPABLE",
        FallbackCause::SynLost => "only a SYN without MP_CAPABLE was answered",
        FallbackCause::OptionsStripped => "MPTCP options were stripped after the handshake",
        FallbackCause::NoMapping => "data came without a mapping",
        FallbackCause::Checksum => "a DSS checksum was wrong",
        FallbackCause::Peer => "the peer fell back",
    }
}

impl State {
    /// The address that packets from `remote` really come from: inside UDP clients have addresses of their own.
    pub(super) fn source_of(&self, remote: SocketAddr) -> SocketAddr {
        self.source(remote.ip()).unwrap_or(remote)
    }

    /// The paths of a connection.
    pub(super) fn path_reports(&self, id: ConnectionId) -> Vec<PathReport> {
        let reports = self.endpoint.subflow_reports(id).into_iter();
        reports.map(|subflow| PathReport { name: self.name_of(subflow.local.ip()), subflow }).collect()
    }

    /// A connection that an application holds.
    pub(super) fn connection_report(&self, id: ConnectionId) -> Option<ConnectionReport> {
        let mut paths = self.path_reports(id);
        paths.iter_mut().for_each(|path| path.subflow.remote = self.source_of(path.subflow.remote));
        let view = self.endpoint.connection_view(self.now(), id)?;
        Some(ConnectionReport {
            id,
            remote: self.source_of(self.endpoint.remote(id)?),
            protocol: self.endpoint.protocol(id)?,
            fallback: self.fallback_of(id),
            priority: view.priority,
            stats: self.endpoint.stats(id)?,
            paths,
        })
    }
}
