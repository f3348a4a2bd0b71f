//! What can be seen of the daemon's knowledge and decisions.

use crate::command::{Command, Outcome};
use crate::estimator::Blocked;
use crate::sample::{Endpoints, SubflowSample, Token};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::{CloseReason, Role};
use anabranch_policy::time::{Duration, Instant};

/// What led to a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Occasion {
    /// Addresses, connections or subflows came or went.
    #[default]
    Change,
    /// The counters of a sample.
    Measured,
    /// The receive window is blocked, by the estimator.
    ReceiveWindowBlocked,
    /// A retransmission timeout.
    Timeout,
    /// A time that the path manager asked for.
    Wake,
    /// The role of the subflow's uplink.
    Role,
    /// A demoted path is used for a moment, to be measured, or that moment is over.
    Probe,
    /// An attempt to join whose next SYN is far away gives way to a new one.
    Unanswered,
    /// The connection is left alone from now on.
    LeftAlone,
}

/// Why a command was given.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Why {
    pub occasion: Occasion,
    /// What the estimator thought of the connection.
    pub blocked: Blocked,
    /// Busy share of the least busy active subflow, 0 to 1.
    pub busy_share: f64,
    /// Goodput of the connection in bytes per second, both directions.
    pub goodput: f64,
    /// How long nothing was acknowledged on the subflow that the command is about, if its data waits for longer than it
    /// should: the path is dead, or as good as that.
    pub silence: Option<Duration>,
}

/// A command, why it was given, and what became of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    pub at: Instant,
    pub command: Command,
    pub why: Why,
    /// None while the kernel has not answered.
    pub outcome: Option<Outcome>,
}

/// A subflow that is no more.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosedSubflow {
    pub id: SubflowId,
    pub at: Instant,
    pub endpoints: Endpoints,
    pub reason: CloseReason,
    /// Its last sample, if there was one.
    pub last: Option<SubflowSample>,
}

/// A connection as it is known.
#[derive(Clone, Debug)]
pub struct ConnectionStatus<'a> {
    pub token: Token,
    pub role: Role,
    /// Addresses of the initial subflow.
    pub initial: Endpoints,
    /// It fell back to TCP, and is not steered.
    pub fallback: bool,
    /// It was found in a sample: it began before the daemon, or its event was lost.
    pub adopted: bool,
    pub blocked: Blocked,
    /// Busy share of the least busy active subflow, 0 to 1.
    pub busy_share: f64,
    /// Bytes per second at data level since the last but one sample, both directions.
    pub goodput: f64,
    /// In order of their beginning.
    pub subflows: Vec<SubflowStatus<'a>>,
    /// The last ones closed, the newest last.
    pub closed: Vec<&'a ClosedSubflow>,
}

/// A subflow as it is known.
#[derive(Clone, Debug)]
pub struct SubflowStatus<'a> {
    pub id: SubflowId,
    pub endpoints: Endpoints,
    /// We demoted it.
    pub suspended: bool,
    /// Bytes per second acknowledged and received since the last but one sample.
    pub rate: f64,
    /// Share of segments retransmitted, over about the last hundred, 0 to 1.
    pub loss_rate: f64,
    /// None before the first sample.
    pub sample: Option<&'a SubflowSample>,
}

/// What happened that should not happen often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections found in samples.
    pub adopted: u64,
    /// Connections beyond [`crate::settings::Settings::most_connections`], at each sample and event.
    pub ignored_connections: u64,
    /// Subflows beyond [`crate::connection::MOST_SUBFLOWS`] of a connection, or on the host's 256th address.
    pub ignored_subflows: u64,
    /// Events of connections or subflows that are not known, such as repeated closes.
    pub unmatched_events: u64,
    /// Times that events were lost.
    pub overruns: u64,
    /// Tokens or endpoints that belong to something else than before, without an event in between.
    pub reused: u64,
    /// Actions of the path manager that could not become commands.
    pub impossible_actions: u64,
    /// Commands that the kernel refused or does not have.
    pub refused: u64,
    /// Commands that were dropped, since nobody took them.
    pub dropped_commands: u64,
}

impl Counters {
    /// The sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            adopted: self.adopted + other.adopted,
            ignored_connections: self.ignored_connections + other.ignored_connections,
            ignored_subflows: self.ignored_subflows + other.ignored_subflows,
            unmatched_events: self.unmatched_events + other.unmatched_events,
            overruns: self.overruns + other.overruns,
            reused: self.reused + other.reused,
            impossible_actions: self.impossible_actions + other.impossible_actions,
            refused: self.refused + other.refused,
            dropped_commands: self.dropped_commands + other.dropped_commands,
        }
    }
}
