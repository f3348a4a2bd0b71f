//! How far a connection is: what its application does with it, and how it ends.

use crate::event::{CloseCause, FallbackCause};
use anabranch_policy::path_manager::Role;

/// What the application does with the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// It has not been told: the handshake of a connection that came in is not over.
    Unaware,
    /// It has the connection.
    Attached,
    /// It will neither write nor read.
    Gone,
}

/// Our direction of the stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Writing {
    /// The application may write.
    Open,
    /// It will write no more.
    Closed,
    /// The end is acknowledged: DATA_FIN, or FIN in plain TCP.
    Acknowledged,
}

/// The life of a connection.
#[derive(Debug)]
pub(super) struct Life {
    application: Application,
    writing: Writing,
    /// The application was told that the peer's stream is complete.
    pub end_announced: bool,
    /// The application was told that there is something to read, and has not read all since.
    pub readable_announced: bool,
    /// The application's last write was cut short.
    pub write_was_short: bool,
    /// Why the connection fell back to TCP before the application knew of it; reported as soon as it does.
    pub untold_fallback: Option<FallbackCause>,
    /// How it will have ended, once the application has read all.
    pub verdict: Option<CloseCause>,
    /// Why it ended, if it did.
    pub closed: Option<CloseCause>,
}

impl Life {
    /// A client's application knows of its connection from the start.
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

    /// The application hears of the connection.
    pub fn introduce(&mut self) {
        if self.application == Application::Unaware {
            self.application = Application::Attached;
        }
    }

    /// Whether the application knows of it: it opened it, or was told that it was accepted.
    pub fn introduced(&self) -> bool {
        self.application != Application::Unaware
    }

    /// The application will neither write nor read.
    pub fn discard(&mut self) {
        self.application = Application::Gone;
    }

    /// Whether the application left it.
    pub fn discarded(&self) -> bool {
        self.application == Application::Gone
    }

    /// The application will write no more. Returns whether that is new.
    pub fn close_writing(&mut self) -> bool {
        let is_new = self.writing == Writing::Open;
        self.writing = self.writing.max(Writing::Closed);
        is_new
    }

    /// Whether the application will write no more.
    pub fn write_closed(&self) -> bool {
        self.writing >= Writing::Closed
    }

    /// The peer has acknowledged the end of our stream.
    pub fn acknowledge_end(&mut self) {
        self.writing = Writing::Acknowledged;
    }

    /// Whether it has.
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
