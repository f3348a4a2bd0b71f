//! A connection of a measurement, over our stack or the kernel's.

use super::kernel::KernelLink;
use super::reading::{PathReading, Reading};
use anabranch_mptcp::Protocol;
use anabranch_policy::view::SubflowState;
use anabranch_stack::{PathReport, Stream, explain};
use bytes::Bytes;
use core::net::SocketAddr;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// Most bytes read in one call.
const READ: usize = 256 * 1024;

pub(crate) enum Link {
    Ours(Stream),
    Kernel(KernelLink),
}

impl Link {
    pub(crate) fn peer(&self) -> SocketAddr {
        match self {
            Self::Ours(stream) => stream.peer_address(),
            Self::Kernel(link) => link.peer(),
        }
    }

    /// Reads and discards at most `max` bytes. Returns their number, 0 at the end of the stream.
    fn poll_swallow(&self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Ours(stream) => stream.poll_read_bytes(context, READ).map_ok(|bytes| bytes.len()),
            Self::Kernel(link) => link.poll_read(context, scratch),
        }
    }

    /// Reads and discards at least one byte. Returns the number, 0 at the end of the stream.
    pub(super) async fn swallow(&self, scratch: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_swallow(context, scratch)).await
    }

    /// A buffer for [`Self::swallow`]; our stack needs none.
    pub(super) fn scratch(&self) -> Vec<u8> {
        match self {
            Self::Ours(_) => Vec::new(),
            Self::Kernel(_) => vec![0; READ],
        }
    }

    /// Reads until the buffer is full.
    pub(super) async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let taken = poll_fn(|context| match self {
                Self::Ours(stream) => stream.poll_read_bytes(context, buffer.len()).map_ok(|bytes| {
                    buffer.iter_mut().zip(&bytes).for_each(|(place, byte)| *place = *byte);
                    bytes.len()
                }),
                Self::Kernel(link) => link.poll_read(context, buffer),
            })
            .await?;
            if taken == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = buffer.get_mut(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes at least one byte. Returns the number.
    pub(super) async fn write(&self, bytes: &Bytes) -> io::Result<usize> {
        poll_fn(|context| match self {
            Self::Ours(stream) => stream.poll_write_bytes(context, bytes.clone()),
            Self::Kernel(link) => link.poll_write(context, bytes),
        })
        .await
    }

    pub(crate) async fn write_all(&self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.write(&bytes).await?;
            drop(bytes.split_to(taken));
        }
        Ok(())
    }

    /// Closes our direction.
    pub(crate) fn shutdown(&self) {
        match self {
            Self::Ours(stream) => stream.close(),
            Self::Kernel(link) => link.shutdown(),
        }
    }

    /// Aborts the connection; one of the kernel closes when the last reference is dropped.
    pub(crate) fn abort(&self) {
        match self {
            Self::Ours(stream) => stream.abort(),
            Self::Kernel(link) => link.abort_when_dropped(),
        }
    }

    /// Disables Nagle's algorithm.
    pub(crate) fn set_nodelay(&self) {
        match self {
            // A closed connection shows up elsewhere.
            Self::Ours(stream) => drop(stream.set_nodelay(true)),
            Self::Kernel(link) => link.set_nodelay(),
        }
    }

    /// The protocol, and the reason for a fallback to plain TCP.
    pub(crate) fn protocol(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Ours(stream) => {
                let name = if stream.protocol() == Some(Protocol::Multipath) { "mptcp" } else { "tcp" };
                (name, stream.fallback().map(|cause| explain(cause).to_owned()))
            }
            Self::Kernel(link) => link.spoken(),
        }
    }

    /// Its counters.
    pub(crate) fn reading(&self) -> Reading {
        match self {
            Self::Ours(stream) => Reading {
                acknowledged: stream.stats().map(|stats| stats.bytes_acked),
                paths: stream.paths().iter().map(of_ours).collect(),
            },
            Self::Kernel(link) => link.reading(),
        }
    }
}

fn of_ours(path: &PathReport) -> PathReading {
    let (report, view) = (&path.subflow, &path.subflow.view);
    let state = match view.state {
        SubflowState::Opening => "opening",
        SubflowState::Established if view.suspended => "suspended",
        SubflowState::Established if view.backup => "backup",
        SubflowState::Established => "established",
        SubflowState::Closing => "closing",
    };
    let milliseconds = |duration: anabranch_policy::time::Duration| {
        let milliseconds = duration.as_secs_f64() * 1e3;
        (milliseconds > 0.0 && milliseconds < 1e9).then_some(milliseconds)
    };
    PathReading {
        subflow: view.id.0,
        name: path.name.clone(),
        local: report.local,
        remote: report.remote,
        acknowledged: view.counters.bytes_acked,
        received: report.bytes_received,
        retransmitted: report.bytes_retransmitted,
        rtt_ms: milliseconds(view.smoothed_rtt),
        min_rtt_ms: milliseconds(view.min_rtt),
        cwnd: view.cwnd,
        state,
    }
}
