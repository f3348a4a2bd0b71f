//! Makes a status of what the daemon knows.

use super::words;
use crate::console::since_1970;
use crate::live::{ConnectionSample, MAX_CONNECTIONS, PathSample, Sample};
use crate::status::{Decision, Measured, Snapshot, Steered, SteeredHost, Uplink};
use crate::uplink_care::traffic;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_steer::{Classes, Notice, interface_name};
use anabranch_steering::command::Outcome;
use anabranch_steering::estimator::Blocked;
use anabranch_steering::event::Event;
use anabranch_steering::sample::{SubflowSample, TcpState};
use anabranch_steering::status::{ClosedSubflow, ConnectionStatus, SubflowStatus};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Interval of snapshots while nobody asks.
const EVERY: Duration = Duration::from_secs(1);
/// Decisions and warnings that are remembered.
const MOST_DECISIONS: usize = 200;
const MOST_WARNINGS: usize = 20;

/// Collects what the daemon tells.
pub struct Observer {
    host: SteeredHost,
    policy: String,
    path_manager: String,
    /// Names of the interfaces of our addresses.
    interfaces: BTreeMap<IpAddr, String>,
    decisions: VecDeque<Decision>,
    commands: BTreeMap<String, u64>,
    warnings: VecDeque<String>,
    lost: BTreeMap<String, u64>,
    next: Instant,
}

impl Observer {
    pub fn new(host: SteeredHost, path_manager: String) -> Self {
        Self {
            host,
            policy: String::new(),
            path_manager,
            interfaces: BTreeMap::new(),
            decisions: VecDeque::new(),
            commands: BTreeMap::new(),
            warnings: VecDeque::new(),
            lost: BTreeMap::new(),
            next: Instant::ZERO,
        }
    }

    /// A policy begins to decide.
    pub fn begin(&mut self, policy: &str) {
        policy.clone_into(&mut self.policy);
    }

    /// Something that is wrong with the host.
    pub fn warn(&mut self, text: String) {
        keep(&mut self.warnings, MOST_WARNINGS, text);
    }

    pub fn hear(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Event(Event::AddressUp { address, interface }) => {
                self.interfaces.insert(*address, interface_name(*interface));
            }
            Notice::Event(Event::AddressDown { address }) => {
                self.interfaces.remove(address);
            }
            Notice::Command { command, outcome, refusal, why } => {
                if *outcome == Outcome::Done {
                    *self.commands.entry(words::kind(command).to_owned()).or_default() += 1;
                }
                keep(
                    &mut self.decisions,
                    MOST_DECISIONS,
                    Decision {
                        at: since_1970().as_secs(),
                        what: words::command(command),
                        why: why.map(words::reason).unwrap_or_default(),
                        refusal: words::refusal(*outcome, *refusal),
                    },
                );
            }
            Notice::Loss(times, what) => {
                *self.lost.entry(what.cause.to_owned()).or_default() += times;
                let text = format!("{times} times: {}", what.text);
                keep(&mut self.warnings, MOST_WARNINGS, text);
            }
            Notice::FellBack(token) => {
                *self.lost.entry("fallback".to_owned()).or_default() += 1;
                keep(&mut self.warnings, MOST_WARNINGS, format!("{}: fell back to TCP", words::name(*token)));
            }
            Notice::Sampled { at, classes } if *at >= self.next || self.host.is_watched() => {
                self.next = *at + EVERY;
                self.host.set(self.snapshot(*at, classes));
            }
            _ => {}
        }
    }

    fn snapshot(&self, at: Instant, classes: &Classes) -> Snapshot {
        let shown: Vec<_> = classes.connections().take(MAX_CONNECTIONS).collect();
        let connections = shown.iter().map(|known| self.connection(at, known)).collect();
        let steered = Steered {
            policy: self.policy.clone(),
            path_manager: self.path_manager.clone(),
            warnings: self.warnings.iter().cloned().collect(),
            decisions: self.decisions.iter().cloned().collect(),
            commands: self.commands.clone(),
            events: events(classes),
            lost: self.lost.clone(),
        };
        let count = classes.connection_count();
        Snapshot { steered, connections: Sample { count, connections }, uplinks: self.uplinks(&shown) }
    }

    fn connection(&self, at: Instant, known: &ConnectionStatus<'_>) -> ConnectionSample {
        let closed = known.closed.iter().map(|closed| self.closed(at, closed));
        let live = known.subflows.iter().map(|subflow| self.subflow(subflow));
        ConnectionSample {
            id: u64::from(known.token.0),
            remote: known.initial.remote,
            protocol: protocol(known),
            paths: live.chain(closed).collect(),
        }
    }

    fn subflow(&self, subflow: &SubflowStatus<'_>) -> PathSample {
        let endpoints = subflow.endpoints;
        let empty = self.path(subflow.id.0, endpoints.local, endpoints.remote, "opening".into());
        let Some(sample) = subflow.sample else { return empty };
        let state = match sample.state {
            TcpState::Opening => "opening",
            TcpState::Closing => "closing",
            TcpState::Established if subflow.suspended => "demoted",
            TcpState::Established if sample.segments.unacked > 0 && sample.backoff > 0 => "stalled",
            TcpState::Established if sample.backup_local || sample.backup_remote => "backup",
            TcpState::Established => "up",
        };
        PathSample { state: state.into(), loss: subflow.loss_rate, ..measured(empty, sample) }
    }

    fn closed(&self, at: Instant, closed: &ClosedSubflow) -> PathSample {
        let how = match closed.reason {
            CloseReason::Normal => "closed",
            CloseReason::TimedOut => "timed out",
            CloseReason::Unreachable => "unreachable",
            CloseReason::AddressGone => "no address",
            CloseReason::Reset | CloseReason::ProtocolError => "reset",
        };
        let state = format!("{how}, {:.0} s ago", at.since(closed.at).as_secs_f64());
        let endpoints = closed.endpoints;
        let path = self.path(closed.id.0, endpoints.local, endpoints.remote, state.into());
        match &closed.last {
            Some(last) => measured(path, last),
            None => path,
        }
    }

    fn path(&self, subflow: u32, local: SocketAddr, remote: SocketAddr, state: Cow<'static, str>) -> PathSample {
        let name = self.interfaces.get(&local.ip()).cloned().unwrap_or_else(|| local.ip().to_string());
        PathSample { subflow, name, remote, state, rtt: None, cwnd: 0, sent: 0, received: 0, loss: 0.0 }
    }

    fn uplinks(&self, shown: &[ConnectionStatus<'_>]) -> Vec<Uplink> {
        let mut uplinks: Vec<Uplink> = Vec::new();
        for (address, name) in &self.interfaces {
            match uplinks.iter_mut().find(|uplink| uplink.name == *name) {
                Some(uplink) => uplink.addresses.push(*address),
                None => uplinks.push(of_an_interface(name, *address)),
            }
        }
        for uplink in &mut uplinks {
            uplink.measure(shown.iter().flat_map(|known| &known.subflows).filter_map(established));
        }
        uplinks
    }
}

fn keep<T>(list: &mut VecDeque<T>, most: usize, item: T) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

fn of_an_interface(name: &str, address: IpAddr) -> Uplink {
    let traffic = traffic(name).unwrap_or_default();
    Uplink {
        name: name.to_owned(),
        up: true,
        addresses: vec![address],
        sent_bytes: traffic.sent,
        received_bytes: traffic.received,
        sent_packets: traffic.sent_packets,
        received_packets: traffic.received_packets,
        ..Uplink::default()
    }
}

/// The local address of a subflow that is established, and what it measured.
fn established(subflow: &SubflowStatus<'_>) -> Option<(IpAddr, Measured)> {
    let sample = subflow.sample.filter(|sample| sample.state == TcpState::Established)?;
    Some((subflow.endpoints.local.ip(), Measured { rtt: sample.rtt, loss_ratio: subflow.loss_rate }))
}

fn measured(path: PathSample, sample: &SubflowSample) -> PathSample {
    let milliseconds = sample.rtt.as_secs_f64() * 1e3;
    PathSample {
        rtt: (milliseconds > 0.0).then_some(milliseconds),
        cwnd: u64::from(sample.snd_cwnd) * u64::from(sample.snd_mss),
        sent: sample.bytes.acked,
        received: sample.bytes.received,
        ..path
    }
}

fn protocol(known: &ConnectionStatus<'_>) -> String {
    if known.fallback {
        return "kernel's tcp: fell back".to_owned();
    }
    let adopted = if known.adopted { ", adopted" } else { "" };
    let blocked = match known.blocked {
        Blocked::No => "",
        Blocked::ReceiveWindow => ", blocked by the receive window",
        Blocked::SendBuffer => ", blocked by the send buffer",
    };
    format!("kernel's mptcp {}{adopted}{blocked}", words::name(known.token))
}

fn events(classes: &Classes) -> BTreeMap<String, u64> {
    let counters = classes.counters();
    let all = [
        ("connections_adopted", counters.adopted),
        ("connections_left_alone", classes.left_alone()),
        ("connections_ignored", counters.ignored_connections),
        ("subflows_ignored", counters.ignored_subflows),
        ("events_unmatched", counters.unmatched_events),
        ("event_overruns", counters.overruns),
        ("identifiers_reused", counters.reused),
        ("actions_impossible", counters.impossible_actions),
        ("commands_refused", counters.refused),
        ("commands_dropped", counters.dropped_commands),
    ];
    all.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_steering::command::Command;
    use anabranch_steering::sample::Token;

    #[test]
    fn a_command_that_was_not_carried_out_is_shown_with_the_reason_and_not_counted() {
        let mut observer = Observer::new(SteeredHost::new(), "userspace".to_owned());
        let command = Command::Remove { token: Token(1), local_id: 2 };
        let outcomes = [Outcome::Unsupported, Outcome::Refused(22), Outcome::Refused(22), Outcome::Done];
        for (outcome, refusal) in outcomes.into_iter().zip([None, None, Some("the kernel refuses"), None]) {
            observer.hear(&Notice::Command { command: &command, outcome, refusal, why: None });
        }
        let shown: Vec<_> = observer.decisions.iter().map(|decision| decision.refusal.as_deref()).collect();
        let words = [Some("its path manager cannot"), Some("refused, errno 22"), Some("the kernel refuses"), None];
        assert_eq!(shown, words);
        assert_eq!(observer.commands, BTreeMap::from([("withdraw".to_owned(), 1)]));
    }
}
