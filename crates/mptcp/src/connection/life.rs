//! The life of a connection: what the application does with it, and how it ends.

use crate::event::{CloseCause, FallbackCause};
use anabranch_policy::path_manager::Role;

/// State of the application's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// The application was not notified: the handshake of an incoming connection is not complete.
    Unaware,
    /// It uses the connection.
    Attached,
    /// It closed both directions.
    Gone,
}

/// State of our direction of the stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Writing {
    Open,
    /// The application closed it.
    Closed,
    /// Its end is acknowledged: DATA_FIN, or FIN in plain TCP.
    Acknowledged,
}

/// The life of a connection.
#[derive(Debug)]
pub(super) struct Life {
    application: Application,
    writing: Writing,
    /// The application was notified that the peer's stream is complete.
    pub end_announced: bool,
    /// The application was notified that data is readable, and has not read all of it since.
    pub readable_announced: bool,
    /// The application's last write was short.
    pub write_was_short: bool,
    /// Why the connection fell back to TCP before the application was notified of it; reported with that.
    pub untold_fallback: Option<FallbackCause>,
    /// The cause of the end, which is reported once the application has read everything.
    pub verdict: Option<CloseCause>,
    /// The cause of the end.
    pub closed: Option<CloseCause>,
}

impl Life {
    /// The application of a client knows its connection from the start.
    pub fn new(role: Role) -> Self {
        let application = if role == Role::Client { Application::Attached } else { Application::Unaware };
        Self {
            application,
            writing: Writing::Open,
            end_announced: false,
            readable_announced: false,
            write_was_short: false,
            untold_fallback: None,
            verdict: None,
            closed: None,
        }
    }

    /// The application is notified of the connection.
    pub fn introduce(&mut self) {
        if self.application == Application::Unaware {
            self.application = Application::Attached;
        }
    }

    /// Whether the application knows of the connection: it opened it, or was notified that it was accepted.
    pub fn introduced(&self) -> bool {
        self.application != Application::Unaware
    }

    /// The application closes both directions.
    pub fn discard(&mut self) {
        self.application = Application::Gone;
    }

    pub fn discarded(&self) -> bool {
        self.application == Application::Gone
    }

    /// The application closes the sending direction. Returns whether that is new.
    pub fn close_writing(&mut self) -> bool {
        let is_new = self.writing == Writing::Open;
        self.writing = self.writing.max(Writing::Closed);
        is_new
    }

    pub fn write_closed(&self) -> bool {
        self.writing >= Writing::Closed
    }

    /// The peer has acknowledged the end of our stream.
    pub fn acknowledge_end(&mut self) {
        self.writing = Writing::Acknowledged;
    }

    pub fn end_acknowledged(&self) -> bool {
        self.writing == Writing::Acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_left_is_not_introduced_again() {
        let mut life = Life::new(Role::Server);
        assert!(!life.introduced());
        life.introduce();
        assert!(life.introduced() && !life.discarded());
        life.discard();
        life.introduce();
        assert!(life.introduced() && life.discarded());
    }

    #[test]
    fn writing_ends_once_and_stays_acknowledged() {
        let mut life = Life::new(Role::Client);
        assert!(life.close_writing());
        assert!(!life.close_writing() && life.write_closed() && !life.end_acknowledged());
        life.acknowledge_end();
        assert!(!life.close_writing() && life.end_acknowledged());
    }
}
