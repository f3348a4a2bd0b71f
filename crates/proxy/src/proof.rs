//! Connections to our server: opened over one path after another until the server proves the key.

use super::failure::Failure;
use super::far::{Far, initiate};
use super::noise::{Initiator, Message};
use anabranch_stack::{Stack, Stream};
use core::net::IpAddr;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;

/// Least time for a proof before a second connection is opened: between the least and the recommended delay of attempts
/// to connect (RFC 8305, section 8).
const LEAST_PATIENCE: Duration = Duration::from_millis(200);

/// The same before a third and further ones: whoever answers in the server's place may do so over several paths.
const LATER_PATIENCE: Duration = Duration::from_millis(50);

/// Opens another connection, which prefers addresses that are not distrusted.
pub(super) type Open<'a> = &'a (dyn Fn() -> Work<'a, Result<Opened, Failure>> + Sync);

/// A future that may contain others of its kind.
pub(super) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection to the server, which has not proved the key yet.
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) initiator: Initiator,
    pub(super) message: Message,
    /// How much of the message has been written.
    pub(super) sent: usize,
}

/// Why there is no proof.
pub(super) struct Unproved {
    pub(super) error: io::Error,
    /// Whether there is another address to try from.
    pub(super) others: bool,
}

impl From<io::Error> for Unproved {
    fn from(error: io::Error) -> Self {
        Self { error, others: false }
    }
}

/// Whether a path was lost, in contrast to a wrong answer of the server.
pub(super) fn is_of_the_path(error: &io::Error) -> bool {
    !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied)
}

impl Opened {
    fn local(&self) -> Option<IpAddr> {
        self.stream.local_address().map(|local| local.ip())
    }

    /// The time for a proof: two round trips, of which the proof needs one, but no less than `least`.
    fn patience(&self, least: Duration) -> Duration {
        let round_trip = self.stream.subflows().first().map_or(0, |view| view.smoothed_rtt.as_nanos());
        least.max(Duration::from_nanos(round_trip) * 2)
    }

    async fn initiate(self) -> io::Result<Far> {
        initiate(self.stream, self.initiator, &self.message, self.sent).await
    }
}

/// Lets the server prove the key. If `opened` waits for that longer than round trips explain, its path may lead to a
/// captive portal, which accepts connections in the server's place: then another is opened beside it, and so on, and
/// the first proof counts. At most `further` are opened.
pub(super) fn prove<'a>(
    stack: &'a Stack,
    opened: Opened,
    open: Open<'a>,
    further: u32,
) -> Work<'a, Result<Far, Unproved>> {
    prove_within(LEAST_PATIENCE, stack, opened, open, further)
}

fn prove_within<'a>(
    least: Duration,
    stack: &'a Stack,
    opened: Opened,
    open: Open<'a>,
    further: u32,
) -> Work<'a, Result<Far, Unproved>> {
    Box::pin(async move {
        let (local, patience) = (opened.local(), opened.patience(least));
        let mut first = pin!(opened.initiate());
        if let Ok(proof) = timeout(patience, &mut first).await {
            return judged(stack, local, proof);
        }
        if further == 0 || !local.is_some_and(|local| stack.distrust(local)) {
            return judged(stack, local, first.await);
        }
        let mut second = pin!(async {
            let opened = open().await.map_err(|_failure| io::Error::from(ErrorKind::HostUnreachable))?;
            prove_within(LATER_PATIENCE, stack, opened, open, further - 1).await
        });
        tokio::select! {
            proof = &mut first => match judged(stack, local, proof) {
                Ok(far) => Ok(far),
                Err(_) => second.await,
            },
            proof = &mut second => match proof {
                Ok(far) => Ok(far),
                Err(_) => judged(stack, local, first.await),
            },
        }
    })
}

/// Lets the stack know what the answer says of the local address.
fn judged(stack: &Stack, local: Option<IpAddr>, proof: io::Result<Far>) -> Result<Far, Unproved> {
    match (proof, local) {
        (Ok(far), local) => {
            local.into_iter().for_each(|local| stack.trust(local));
            Ok(far)
        }
        (Err(error), Some(local)) if !is_of_the_path(&error) => Err(Unproved { error, others: stack.distrust(local) }),
        (Err(error), _) => Err(error.into()),
    }
}
