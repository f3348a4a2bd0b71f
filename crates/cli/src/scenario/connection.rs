//! The settings of a connection: one table, from which they are read, applied and documented.
//!
//! A setting is a row of [`SETTINGS`]. What a scenario, a baseline or a policy says is a set of values
//! ([`ConnectionSettings`]); sets are laid over each other, and what none of them says stays at the engine's default.

use super::quantity::{Packets, Quantity, Size};
use super::reader::{Item, Reader};
use super::receive_buffer::ReceiveBuffer;
use super::tree::{self, Node, Origin, Source};
use crate::diagnostic::{Diagnostic, did_you_mean};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EcnMode, RtoRule, TcpConfig};
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// A setting of a connection.
pub struct Setting {
    /// Its name, as in a scenario.
    pub name: &'static str,
    /// What its value may be.
    pub values: &'static str,
    /// Its value when nothing is said.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// What its value is, and how the engine is told of it.
    kind: Kind,
}

/// What a value is, and how it is applied.
enum Kind {
    Flag(fn(&mut ConnectionConfig, bool)),
    Time(fn(&mut ConnectionConfig, Duration)),
    Size(fn(&mut ConnectionConfig, u64)),
    Packets(fn(&mut ConnectionConfig, u64)),
    Count(RangeInclusive<u64>, fn(&mut ConnectionConfig, u64)),
    Mtu,
    ReceiveBuffer,
    Reinjection,
    Rto,
    Ecn,
}

/// The value of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Flag(bool),
    Time(Duration),
    Size(Size),
    Packets(Packets),
    Count(u64),
    Mtu(u16),
    ReceiveBuffer(ReceiveBuffer),
    Reinjection(Reinjection),
    Rto(RtoRule),
    Ecn(EcnMode),
}

const FLAG: &str = "true, false";

/// Words for when data goes on another subflow.
const REINJECTIONS: [(&str, Reinjection); 3] = [
    ("subflow_timeout", Reinjection::OnSubflowTimeout),
    ("connection_timeout", Reinjection::OnConnectionTimeout),
    ("never", Reinjection::Never),
];

/// Words for the rules of the retransmission timeout.
const RTO_RULES: [(&str, RtoRule); 2] = [("rfc6298", RtoRule::Rfc6298), ("paper", RtoRule::Paper)];

/// Words for explicit congestion notification.
const ECN_MODES: [(&str, EcnMode); 3] =
    [("off", EcnMode::Off), ("accept", EcnMode::Accept), ("request", EcnMode::Request)];

/// All settings, in the order in which they are applied: what is counted in segments comes after what their size
/// depends on.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "priority",
        values: "1 (highest) to 6",
        default: "1",
        summary: "the application's; for policies that look at it, such as the scheduler `qoe`",
        kind: Kind::Count(1..=6, |config, priority| config.priority = priority as u8),
    },
    Setting {
        name: "receive_buffer",
        values: "a size from 3072 B to 1 GiB, or `{ initial, max }` for one that grows with the rate of reading",
        default: "required",
        summary: "shared by all subflows",
        kind: Kind::ReceiveBuffer,
    },
    Setting {
        name: "buffers_per_subflow",
        values: FLAG,
        default: "true",
        summary: "the send buffer, and the `max` of an automatic receive buffer, are per subflow",
        kind: Kind::Flag(|config, on| config.buffers_per_subflow = on),
    },
    Setting {
        name: "charge_out_of_order",
        values: FLAG,
        default: "false",
        summary: "bytes that wait out of order take from the window that is offered, as in Linux",
        kind: Kind::Flag(|config, on| config.charge_out_of_order = on),
    },
    Setting {
        name: "data_in_subflow_order",
        values: FLAG,
        default: "false",
        summary: "what lies behind a hole of its subflow waits there until the hole is filled, as in Linux, whatever came of it elsewhere",
        kind: Kind::Flag(|config, on| config.data_in_subflow_order = on),
    },
    Setting {
        name: "send_buffer",
        values: "a size",
        default: "4 MiB",
        summary: "most bytes written and not acknowledged",
        kind: Kind::Size(|config, bytes| config.send_buffer = bytes),
    },
    Setting {
        name: "data_reinjection",
        values: "\"subflow_timeout\", \"connection_timeout\", \"never\"",
        default: "as the scheduler asks",
        summary: "when data that one subflow has outstanding goes on another: at that subflow's retransmission timeout; only at the connection's own; or only when the subflow is closed, given up or suspended. With the last two nothing else goes out a second time either, such as opportunistic retransmissions",
        kind: Kind::Reinjection,
    },
    Setting {
        name: "rto",
        values: "\"rfc6298\", \"paper\"",
        default: "\"rfc6298\"",
        summary: "how the retransmission timeout follows from the round trip: `\"paper\"` is equations 7 and 8 of the MANET paper as printed, SRTT = 1/8 SRTT + 7/8 RTT and RTO = max(`min_rto`, 2 SRTT)",
        kind: Kind::Rto,
    },
    Setting {
        name: "min_rto",
        values: "a time",
        default: "200 ms",
        summary: "least retransmission timeout",
        kind: Kind::Time(|config, time| config.tcp.min_rto = time),
    },
    Setting {
        name: "initial_rto",
        values: "a time",
        default: "1 s",
        summary: "retransmission timeout before the first sample of the round trip",
        kind: Kind::Time(|config, time| config.tcp.initial_rto = time),
    },
    Setting {
        name: "max_timeouts",
        values: "1 to 100",
        default: "15",
        summary: "retransmissions by timeout until a subflow is given up, which is when the timer runs out once more",
        kind: Kind::Count(1..=100, |config, count| config.tcp.max_timeouts = count as u32),
    },
    Setting {
        name: "user_timeout",
        values: "a time",
        default: "none",
        summary: "how long what was written may stay without progress of its acknowledgement at data level, on whatever subflow, until the connection is aborted (RFC 5482)",
        kind: Kind::Time(|config, time| config.user_timeout = Some(time)),
    },
    Setting {
        name: "tail_loss_probe",
        values: FLAG,
        default: "true",
        summary: "a lost tail is probed for after two round trips, before the timeout (RFC 8985, section 7)",
        kind: Kind::Flag(|config, on| config.tcp.tail_loss_probe = on),
    },
    Setting {
        name: "delayed_ack",
        values: "a time",
        default: "40 ms",
        summary: "longest delay of an acknowledgement; with 0 s each segment is acknowledged",
        kind: Kind::Time(|config, time| config.tcp.delayed_ack = time),
    },
    Setting {
        name: "mtu",
        values: "a size from 576 B to 65535 B",
        default: "1500 B",
        summary: "largest IP packet",
        kind: Kind::Mtu,
    },
    Setting {
        name: "path_mtu_discovery",
        values: FLAG,
        default: "true",
        summary: "two timeouts in a row of a long segment shorten the segments of a subflow, and the longest that passes is searched for (RFC 4821, RFC 8899); in the lab only where a link has an `mtu`",
        kind: Kind::Flag(|config, on| config.tcp.path_mtu_discovery = on),
    },
    Setting {
        name: "sack",
        values: FLAG,
        default: "true",
        summary: "selective acknowledgements",
        kind: Kind::Flag(|config, on| config.tcp.sack = on),
    },
    Setting {
        name: "timestamps",
        values: FLAG,
        default: "true",
        summary: "timestamps on every segment",
        kind: Kind::Flag(|config, on| config.tcp.timestamps = on),
    },
    Setting {
        name: "ecn",
        values: "\"off\", \"accept\", \"request\"",
        default: "\"accept\"",
        summary: "explicit congestion notification (RFC 3168): never, on subflows whose opener asks, or asked for too. A queue with CoDel marks packets of such subflows and does not drop them",
        kind: Kind::Ecn,
    },
    Setting {
        name: "nagle",
        values: FLAG,
        default: "true",
        summary: "small segments wait while data is in flight",
        kind: Kind::Flag(|config, on| config.tcp.nagle = on),
    },
    Setting {
        name: "pacing",
        values: FLAG,
        default: "false",
        summary: "segments are spread over the round trip",
        kind: Kind::Flag(|config, on| config.tcp.pacing = on),
    },
    Setting {
        name: "checksum",
        values: FLAG,
        default: "false",
        summary: "the checksum of DSS",
        kind: Kind::Flag(|config, on| config.checksum = on),
    },
    Setting {
        name: "initial_window",
        values: "packets",
        default: "10 packets",
        summary: "congestion window of a new subflow",
        kind: Kind::Packets(|config, packets| config.tcp.initial_window = packets as u32),
    },
    Setting {
        name: "max_window",
        values: "packets",
        default: "none",
        summary: "most congestion window of a subflow",
        kind: Kind::Packets(|config, packets| {
            config.tcp.max_window = Some(packets * segment_size(config.multipath, &config.tcp));
        }),
    },
];

/// Bytes of IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// Bytes of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;
/// Bytes of the longest data sequence signal, padded (RFC 8684, section 3.3): 8-byte numbers, no checksum.
const SIGNAL: u64 = 28;

/// Payload of a full segment: the unit in which windows are given and shown.
pub fn segment_size(multipath: bool, tcp: &TcpConfig) -> u64 {
    // A multipath segment leaves room for the longest signal beside the timestamps.
    let options = if tcp.timestamps { TIMESTAMPS } else { 0 } + if multipath { SIGNAL } else { 0 };
    u64::from(tcp.mtu) - HEADERS - options
}

impl Setting {
    fn read(&self, item: &Item<'_>) -> Result<Value, Diagnostic> {
        match &self.kind {
            Kind::Flag(_) => item.flag().map(Value::Flag),
            Kind::Time(_) => item.quantity().map(Value::Time),
            Kind::Size(_) => item.quantity().map(Value::Size),
            Kind::Packets(_) => item.quantity().map(Value::Packets),
            Kind::Count(range, _) => item.count(range.clone()).map(Value::Count),
            Kind::Mtu => mtu(item).map(Value::Mtu),
            Kind::ReceiveBuffer => receive_buffer(item).map(Value::ReceiveBuffer),
            Kind::Reinjection => item.word(&REINJECTIONS).map(Value::Reinjection),
            Kind::Rto => item.word(&RTO_RULES).map(Value::Rto),
            Kind::Ecn => item.word(&ECN_MODES).map(Value::Ecn),
        }
    }

    fn apply(&self, value: Value, config: &mut ConnectionConfig) {
        match (&self.kind, value) {
            (Kind::Flag(set), Value::Flag(on)) => set(config, on),
            (Kind::Time(set), Value::Time(time)) => set(config, time),
            (Kind::Size(set), Value::Size(size)) => set(config, size.0),
            (Kind::Packets(set), Value::Packets(packets)) => set(config, packets.0),
            (Kind::Count(_, set), Value::Count(count)) => set(config, count),
            (Kind::Mtu, Value::Mtu(mtu)) => config.tcp.mtu = mtu,
            (Kind::ReceiveBuffer, Value::ReceiveBuffer(buffer)) => {
                config.receive_buffer = match buffer {
                    ReceiveBuffer::Fixed(size) => BufferSize::Fixed(size.0),
                    ReceiveBuffer::Auto { initial, max } => BufferSize::Auto { initial: initial.0, max: max.0 },
                };
            }
            (Kind::Reinjection, Value::Reinjection(when)) => config.data_reinjection = Some(when),
            (Kind::Rto, Value::Rto(rule)) => config.tcp.rto = rule,
            (Kind::Ecn, Value::Ecn(mode)) => config.tcp.ecn = mode,
            _ => unreachable!("a row's value was read as its kind"),
        }
    }
}

fn mtu(item: &Item<'_>) -> Result<u16, Diagnostic> {
    let size: Size = item.quantity()?;
    // 576 is what every IPv4 host must take (RFC 791), and 40 bytes of options must fit with data behind them.
    let possible = u16::try_from(size.0).ok().filter(|mtu| *mtu >= 576);
    possible.ok_or_else(|| item.error(format!("an MTU of {} bytes is not possible: from 576 to 65535", size.0)))
}

fn receive_buffer(item: &Item<'_>) -> Result<ReceiveBuffer, Diagnostic> {
    if !item.is_table() {
        let size: Size = item.quantity()?;
        return possible(item, size).map(ReceiveBuffer::Fixed);
    }
    let table = item.table("a receive buffer", &["initial", "max"])?;
    let (initial, max): (Size, Size) = (table.required("initial")?.quantity()?, table.required("max")?.quantity()?);
    if initial > max {
        return Err(table.error("the receive buffer begins larger than its maximum"));
    }
    Ok(ReceiveBuffer::Auto { initial: possible(item, initial)?, max: possible(item, max)? })
}

/// A buffer must hold a few segments, and a window can be no larger than RFC 7323 lets it be scaled.
fn possible(item: &Item<'_>, size: Size) -> Result<Size, Diagnostic> {
    if (3_072..=1 << 30).contains(&size.0) {
        Ok(size)
    } else {
        Err(item.error(format!("a receive buffer of {} bytes is not possible: from 3072 bytes to 1 GiB", size.0)))
    }
}

/// What is said of a connection; the rest is at the engine's defaults, or at those of what this is laid over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectionSettings {
    /// By row of the table.
    values: BTreeMap<usize, Value>,
}

impl ConnectionSettings {
    /// Reads a table of settings.
    pub fn read(item: &Item<'_>) -> Result<Self, Diagnostic> {
        let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let table = item.table("the connection", &names)?;
        let mut made = Self::default();
        for (row, setting) in SETTINGS.iter().enumerate() {
            if let Some(item) = table.get(setting.name) {
                made.values.insert(row, setting.read(&item)?);
            }
        }
        Ok(made)
    }

    /// Sets one, as the command line writes it: a quantity needs no quotes.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(row) = SETTINGS.iter().position(|setting| setting.name == name) else {
            let names = SETTINGS.iter().map(|setting| setting.name);
            let hint = did_you_mean(name, names.clone());
            let known = names.collect::<Vec<_>>().join(", ");
            return Err(format!("a connection has no setting '{name}': known are {known}{hint}"));
        };
        let origin = Origin::Option(0);
        let node = Node { value: tree::option_value(&origin, text.trim()), origin };
        let read = SETTINGS[row].read(&Item::new(&Source::default(), &node));
        self.values.insert(row, read.map_err(|error| format!("connection.{name}: {}", error.message()))?);
        Ok(())
    }

    /// These, and where they say nothing, what is said below.
    pub fn over(&self, below: &Self) -> Self {
        let mut values = below.values.clone();
        values.extend(&self.values);
        Self { values }
    }

    /// These but those that others say too.
    pub fn without(&self, others: &Self) -> Self {
        let left = self.values.iter().filter(|(row, _)| !others.values.contains_key(row));
        Self { values: left.map(|(row, value)| (*row, *value)).collect() }
    }

    /// Tells the engine.
    pub fn apply(&self, config: &mut ConnectionConfig) {
        for (row, value) in &self.values {
            SETTINGS[*row].apply(*value, config);
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What is said, in the table's order: name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.values.iter().map(|(row, value)| (SETTINGS[*row].name, value.to_string()))
    }

    /// The receive buffer, if it is said.
    pub fn receive_buffer(&self) -> Option<ReceiveBuffer> {
        self.values.values().find_map(|value| match value {
            Value::ReceiveBuffer(buffer) => Some(*buffer),
            _ => None,
        })
    }

    /// The largest IP packet, if it is said.
    pub fn mtu(&self) -> Option<u16> {
        self.values.values().find_map(|value| match value {
            Value::Mtu(mtu) => Some(*mtu),
            _ => None,
        })
    }
}

/// The largest unit in which a quantity is a whole number, else the base unit.
fn written<Q: Quantity>(f: &mut fmt::Formatter<'_>, quantity: Q) -> fmt::Result {
    let base = quantity.to_base();
    let whole = |(_, unit): &&(&str, f64)| base >= *unit && ((base / unit).round() * unit - base).abs() < 1e-9 * base;
    let units = Q::UNITS.iter().filter(whole);
    let (name, unit) = units.max_by(|a, b| a.1.total_cmp(&b.1)).copied().unwrap_or(("s", 1.0));
    write!(f, "{} {name}", base / unit)
}

fn word_for<T: PartialEq>(words: &[(&'static str, T)], meaning: &T) -> &'static str {
    words.iter().find(|(_, known)| known == meaning).map_or("", |(word, _)| word)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(on) => write!(f, "{on}"),
            Self::Time(time) => written(f, *time),
            Self::Size(size) | Self::ReceiveBuffer(ReceiveBuffer::Fixed(size)) => written(f, *size),
            Self::Packets(packets) => write!(f, "{} packets", packets.0),
            Self::Count(count) => write!(f, "{count}"),
            Self::Mtu(mtu) => write!(f, "{mtu} B"),
            Self::Reinjection(when) => f.write_str(word_for(&REINJECTIONS, when)),
            Self::Rto(rule) => f.write_str(word_for(&RTO_RULES, rule)),
            Self::Ecn(mode) => f.write_str(word_for(&ECN_MODES, mode)),
            Self::ReceiveBuffer(ReceiveBuffer::Auto { initial, max }) => {
                written(f, *initial)?;
                f.write_str(" to ")?;
                written(f, *max)
            }
        }
    }
}

/// Reads `[connection]`.
pub fn connection(top: &Reader<'_>) -> Result<ConnectionSettings, Diagnostic> {
    let item = match top.get("connection") {
        Some(item) => item,
        // Moving nodes have no connections.
        None if top.get("moving").is_some() => return Ok(ConnectionSettings::default()),
        None => top.required("connection")?,
    };
    let settings = ConnectionSettings::read(&item)?;
    if settings.receive_buffer().is_none() {
        return Err(item.error("the connection has no 'receive_buffer', which it needs"));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
