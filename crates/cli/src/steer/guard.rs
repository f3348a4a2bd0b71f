//! One daemon in a network namespace, and what other programs do meanwhile to the settings that it needs.

use super::ground::Ground;
use anabranch_host::Setup;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_steer::Mptcp;
use std::cell::RefCell;
use std::convert::Infallible;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use tokio::time::sleep;

/// The abstract name (unix(7)) that a daemon holds: it belongs to the network namespace and ends with the process.
const NAME: &str = "anabranch-steer";

/// Interval of looks at the settings, of whose changes the kernel does not tell.
const EVERY: Duration = Duration::from_secs(1);

/// Looks without a further sentence about the same thing, so that a program that insists does not fill the log.
const QUIET: u32 = 60;

/// Held while a daemon steers: two would undo each other's decisions, and the first to end would restore the setting.
pub struct Only(#[expect(dead_code, reason = "it is held")] UnixDatagram);

impl Only {
    /// # Errors
    /// Another daemon steers this network namespace.
    pub fn take() -> Result<Self, Diagnostic> {
        let bound = SocketAddr::from_abstract_name(NAME).and_then(|address| UnixDatagram::bind_addr(&address));
        bound.map(Self).map_err(|error| {
            Diagnostic::plain(match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another `anabranch steer` is at work in this network namespace: end that first".to_owned()
                }
                _ => format!("cannot see whether another `anabranch steer` is at work: {error}"),
            })
        })
    }
}

/// Says a sentence once, and again when it has not been true meanwhile or after many looks.
#[derive(Default)]
struct Remark {
    silent: u32,
}

impl Remark {
    /// Whether to say it now.
    fn is_due(&mut self, holds: bool) -> bool {
        if !holds {
            self.silent = self.silent.saturating_sub(1);
            return false;
        }
        let due = self.silent == 0;
        self.silent = if due { QUIET } else { self.silent - 1 };
        due
    }
}

/// Chooses the path manager again that another program has changed, and says when MPTCP was switched off and on.
pub async fn keep(ground: &Ground, setup: &RefCell<Setup>, mut say: impl FnMut(String)) -> Infallible {
    let (mut changed, mut failed, mut off) = (Remark::default(), Remark::default(), false);
    loop {
        sleep(EVERY).await;
        let is_off = Mptcp::read() != Mptcp::Enabled;
        if is_off && !off {
            say("MPTCP was switched off in this network namespace (net.mptcp.enabled): new connections are TCP"
                .to_owned());
        } else if off && !is_off {
            say("MPTCP is switched on again in this network namespace".to_owned());
        }
        off = is_off;
        let found = ground.changed();
        let outcome = found.as_ref().map(|(_, step)| setup.borrow_mut().carry_out(step));
        if changed.is_due(found.is_some())
            && let Some((other, _)) = &found
        {
            say(format!(
                "another program gave new connections the path manager {other}: they have {} again",
                ground.future()
            ));
        }
        let error = outcome.and_then(Result::err);
        if failed.is_due(error.is_some())
            && let Some(error) = error
        {
            say(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_repeated_after_a_minute_and_not_at_each_look() {
        let mut remark = Remark::default();
        let said = |looks: u32, remark: &mut Remark| (0..looks).filter(|_| remark.is_due(true)).count();
        assert_eq!(said(61, &mut remark), 1);
        assert_eq!(said(61, &mut remark), 1);
        // What held once and again an hour later is said twice.
        assert!((0..3_600).all(|_| !remark.is_due(false)));
        assert!(remark.is_due(true));
    }
}
