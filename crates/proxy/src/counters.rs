//! Counters of proxy and server.

use core::fmt;

/// How a connection of a client ended, and before that, whether it was connected at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Both directions came to their end.
    Finished,
    /// The client's side reset the connection.
    ResetByClient,
    /// The target's side reset the connection, or it was lost.
    ResetByTarget,
    /// A record was changed on the way, or the stream was cut off.
    Tampered,
    /// Nothing moved for too long.
    Idle,
    /// The proxy or server was stopped.
    Stopped,
    /// The client proved its key, and wanted to know only whether the server answers.
    Asked,
    /// The client left before it was connected.
    LeftEarly,
    /// The client's request was malformed.
    Malformed,
    /// The client did not send the right name and password.
    Unauthorized,
    /// The client's request is not supported.
    Unsupported,
    /// The client named a target that is not allowed.
    NotAllowed,
    /// The target could not be connected to.
    Failed,
    /// This process may open no more files.
    NoDescriptors,
    /// Our server has as many connections as it may have.
    ServerFull,
    /// This process has as many connections as it may have.
    OverLimit,
    /// The peer did not prove the key.
    Unproven,
    /// The client's request took too long.
    TooSlow,
}

/// Totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProxyCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// [`Outcome::OverLimit`].
    pub over_limit: u64,
    /// Failures to accept a connection, e.g. for lack of file descriptors.
    pub accept_errors: u64,
    /// Most connections at a time.
    pub most: u64,
    /// [`Outcome::Finished`].
    pub finished: u64,
    /// [`Outcome::ResetByClient`] and [`Outcome::ResetByTarget`].
    pub reset: u64,
    /// [`Outcome::Tampered`].
    pub tampered: u64,
    /// [`Outcome::Idle`].
    pub idle: u64,
    /// [`Outcome::Stopped`].
    pub stopped: u64,
    /// [`Outcome::Asked`].
    pub asked: u64,
    /// [`Outcome::LeftEarly`].
    pub left_early: u64,
    /// [`Outcome::Malformed`] and [`Outcome::Unsupported`].
    pub malformed: u64,
    /// [`Outcome::Unauthorized`].
    pub unauthorized: u64,
    /// [`Outcome::NotAllowed`].
    pub not_allowed: u64,
    /// [`Outcome::Failed`], [`Outcome::NoDescriptors`] and [`Outcome::ServerFull`].
    pub failed: u64,
    /// [`Outcome::Unproven`].
    pub unproven: u64,
    /// [`Outcome::TooSlow`].
    pub too_slow: u64,
    /// Bytes from clients of connections that have ended.
    pub bytes_up: u64,
    /// Bytes to clients of connections that have ended.
    pub bytes_down: u64,
}

impl ProxyCounters {
    pub(super) fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Finished => &mut self.finished,
            Outcome::ResetByClient | Outcome::ResetByTarget => &mut self.reset,
            Outcome::Tampered => &mut self.tampered,
            Outcome::Idle => &mut self.idle,
            Outcome::Stopped => &mut self.stopped,
            Outcome::Asked => &mut self.asked,
            Outcome::LeftEarly => &mut self.left_early,
            Outcome::Malformed | Outcome::Unsupported => &mut self.malformed,
            Outcome::Unauthorized => &mut self.unauthorized,
            Outcome::NotAllowed => &mut self.not_allowed,
            Outcome::Failed | Outcome::NoDescriptors | Outcome::ServerFull => &mut self.failed,
            Outcome::OverLimit => &mut self.over_limit,
            Outcome::Unproven => &mut self.unproven,
            Outcome::TooSlow => &mut self.too_slow,
        };
        *counter += 1;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "finished",
            Self::ResetByClient => "reset by the client",
            Self::ResetByTarget => "reset by the target, or lost",
            Self::Tampered => "cut off or changed on the way",
            Self::Idle => "idle for too long",
            Self::Stopped => "stopped",
            Self::Asked => "asked whether the server answers",
            Self::LeftEarly => "the client left",
            Self::Malformed => "neither SOCKS5 nor HTTP CONNECT, or malformed",
            Self::Unauthorized => "wrong name or password",
            Self::Unsupported => "not a request to connect",
            Self::NotAllowed => "the target is not allowed",
            Self::Failed => "the target could not be connected to",
            Self::NoDescriptors => {
                "this process may open no more files: raise their limit (ulimit -n), or lower --max-connections"
            }
            Self::ServerFull => "the server has as many connections as it may have (its --max-connections)",
            Self::OverLimit => "there are as many connections as there may be (--max-connections)",
            Self::Unproven => "the peer does not prove the key",
            Self::TooSlow => "too slow to say what it wants",
        })
    }
}

impl fmt::Display for ProxyCounters {
    /// One line: totals, and whatever is not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, finished, most, bytes_up, bytes_down, .. } = self;
        write!(f, "{accepted} connections, at most {most} at a time, {finished} finished; ")?;
        write!(f, "{bytes_up} bytes from clients, {bytes_down} to them")?;
        for (count, what) in [
            (self.over_limit, "over the limit"),
            (self.accept_errors, "not accepted by the system"),
            (self.reset, "reset"),
            (self.tampered, "cut off or changed on the way"),
            (self.idle, "idle for too long"),
            (self.stopped, "stopped"),
            (self.asked, "asked only whether the server answers"),
            (self.left_early, "left early"),
            (self.malformed, "malformed or unsupported"),
            (self.unauthorized, "with a wrong name or password"),
            (self.not_allowed, "to targets not allowed"),
            (self.failed, "to targets that could not be connected to"),
            (self.unproven, "without proof of the key"),
            (self.too_slow, "too slow"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        Ok(())
    }
}
