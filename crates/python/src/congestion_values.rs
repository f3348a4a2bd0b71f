//! What a congestion control is told, as numbers by name: times in seconds, sizes in bytes, rates in bytes per second,
//! truths as 1 and 0; what is unknown is NaN.

use crate::failure::plain;
use anabranch_policy::congestion::{Ack, Congestion, CongestionEvent, Lost, Sent, Start};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// A name and its number.
pub type Named = (&'static str, f64);

/// Numbers by name, as Python gives them.
#[derive(Debug, Default)]
pub struct Values(BTreeMap<String, f64>);

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// A rate in bytes per second.
pub fn rate(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 8.0
}

/// The rate of so many bytes per second.
pub fn rate_of(bytes: f64) -> Rate {
    Rate::from_bits_per_second((bytes * 8.0) as u64)
}

pub fn of_start(start: &Start) -> [Named; 4] {
    [
        ("now", start.now.as_secs_f64()),
        ("mss", f64::from(start.mss)),
        ("initial_window", start.initial_window as f64),
        ("smoothed_rtt", seconds(start.smoothed_rtt)),
    ]
}

pub fn of_sent(sent: &Sent) -> [Named; 5] {
    [
        ("now", sent.now.as_secs_f64()),
        ("bytes", sent.bytes as f64),
        ("in_flight", sent.in_flight as f64),
        ("total_delivered", sent.total_delivered as f64),
        ("app_limited", truth(sent.app_limited)),
    ]
}

pub fn of_lost(lost: &Lost) -> [Named; 7] {
    [
        ("now", lost.now.as_secs_f64()),
        ("bytes", lost.bytes as f64),
        ("total_lost", lost.total_lost as f64),
        ("total_delivered", lost.total_delivered as f64),
        ("prior_lost", lost.prior_lost as f64),
        ("tx_in_flight", lost.tx_in_flight as f64),
        ("app_limited", truth(lost.app_limited)),
    ]
}

pub fn of_ack(ack: &Ack) -> [Named; 20] {
    [
        ("now", ack.now.as_secs_f64()),
        ("acked", ack.acked as f64),
        ("delivered", ack.delivered as f64),
        ("total_acked", ack.total_acked as f64),
        ("total_sent", ack.total_sent as f64),
        ("prior_in_flight", ack.prior_in_flight as f64),
        ("in_flight", ack.in_flight as f64),
        ("rtt", ack.rtt.map_or(f64::NAN, seconds)),
        ("smoothed_rtt", seconds(ack.smoothed_rtt)),
        ("min_rtt", seconds(ack.min_rtt)),
        ("delivery_rate", ack.delivery_rate.map_or(f64::NAN, rate)),
        ("app_limited", truth(ack.app_limited)),
        ("total_delivered", ack.total_delivered as f64),
        ("prior_delivered", ack.prior_delivered.map_or(f64::NAN, |bytes| bytes as f64)),
        ("lost", ack.lost as f64),
        ("total_lost", ack.total_lost as f64),
        ("prior_lost", ack.prior_lost as f64),
        ("tx_in_flight", ack.tx_in_flight as f64),
        ("cwnd_limited", truth(ack.cwnd_limited)),
        ("in_recovery", truth(ack.in_recovery)),
    ]
}

pub fn of_congestion(event: &CongestionEvent) -> [Named; 8] {
    let cause = |of: Congestion| truth(event.cause == of);
    [
        ("now", event.now.as_secs_f64()),
        ("in_flight", event.in_flight as f64),
        ("lost", event.lost as f64),
        ("timeout", cause(Congestion::Timeout)),
        ("mark", cause(Congestion::Mark)),
        ("penalty", cause(Congestion::Penalty)),
        ("repeated", truth(event.repeated)),
        ("uncounted", truth(event.uncounted)),
    ]
}

impl Values {
    /// # Errors
    /// A name is none of `known`.
    pub fn new(values: BTreeMap<String, f64>, known: &[Named]) -> PyResult<Self> {
        let stranger = values.keys().find(|name| !known.iter().any(|(known, _)| known == name));
        let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        match stranger {
            None => Ok(Self(values)),
            Some(name) => Err(plain(format!("an event has no '{name}': it has {}", names()))),
        }
    }

    /// A number; 0 if it is not given.
    fn number(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    pub fn bytes(&self, name: &str) -> u64 {
        self.number(name) as u64
    }

    fn truth(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }

    fn span(&self, name: &str) -> Duration {
        Duration::from_secs_f64(self.number(name).max(0.0))
    }

    pub fn now(&self) -> Instant {
        Instant::ZERO + self.span("now")
    }

    /// None if it is not given, or NaN.
    fn known(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied().filter(|value| !value.is_nan())
    }

    pub fn start(&self) -> Start {
        let mss = self.bytes("mss").try_into().unwrap_or(u32::MAX);
        let initial_window = self.bytes("initial_window");
        Start { now: self.now(), mss, initial_window, smoothed_rtt: self.span("smoothed_rtt") }
    }

    pub fn sent(&self) -> Sent {
        Sent {
            now: self.now(),
            bytes: self.bytes("bytes"),
            in_flight: self.bytes("in_flight"),
            total_delivered: self.bytes("total_delivered"),
            app_limited: self.truth("app_limited"),
        }
    }

    pub fn lost(&self) -> Lost {
        Lost {
            now: self.now(),
            bytes: self.bytes("bytes"),
            total_lost: self.bytes("total_lost"),
            total_delivered: self.bytes("total_delivered"),
            prior_lost: self.bytes("prior_lost"),
            tx_in_flight: self.bytes("tx_in_flight"),
            app_limited: self.truth("app_limited"),
        }
    }

    pub fn ack(&self) -> Ack {
        Ack {
            now: self.now(),
            acked: self.bytes("acked"),
            delivered: self.bytes("delivered"),
            total_acked: self.bytes("total_acked"),
            total_sent: self.bytes("total_sent"),
            prior_in_flight: self.bytes("prior_in_flight"),
            in_flight: self.bytes("in_flight"),
            rtt: self.known("rtt").map(|rtt| Duration::from_secs_f64(rtt.max(0.0))),
            smoothed_rtt: self.span("smoothed_rtt"),
            min_rtt: self.span("min_rtt"),
            delivery_rate: self.known("delivery_rate").map(rate_of),
            app_limited: self.truth("app_limited"),
            total_delivered: self.bytes("total_delivered"),
            prior_delivered: self.known("prior_delivered").map(|bytes| bytes as u64),
            lost: self.bytes("lost"),
            total_lost: self.bytes("total_lost"),
            prior_lost: self.bytes("prior_lost"),
            tx_in_flight: self.bytes("tx_in_flight"),
            cwnd_limited: self.truth("cwnd_limited"),
            in_recovery: self.truth("in_recovery"),
        }
    }

    pub fn congestion(&self) -> CongestionEvent {
        let causes = [("timeout", Congestion::Timeout), ("mark", Congestion::Mark), ("penalty", Congestion::Penalty)];
        let cause = causes.iter().find(|(name, _)| self.truth(name)).map_or(Congestion::Loss, |(_, cause)| *cause);
        CongestionEvent {
            now: self.now(),
            cause,
            in_flight: self.bytes("in_flight"),
            lost: self.bytes("lost"),
            repeated: self.truth("repeated"),
            uncounted: self.truth("uncounted"),
        }
    }
}
