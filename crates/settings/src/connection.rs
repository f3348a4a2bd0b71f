//! Settings of a connection: one table, from which they are parsed, applied and documented.
//!
//! A setting is a row of [`SETTINGS`]. A scenario, baseline or policy has a set of values ([`ConnectionSettings`]).
//! Sets are merged; settings without a value keep the engine's default.

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::quantity::{Packets, Quantity, Size};
use crate::reader::{Item, Reader};
use crate::receive_buffer::ReceiveBuffer;
use crate::tree::{self, Node, Origin, Source};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EcnMode, InitialPath, Policies, RtoRule, TcpConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

pub struct Setting {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Type of its value, with the field of the engine's configuration.
    kind: Kind,
}

/// Access to a field of the engine's configuration, to read its default and to set it.
type Field<T> = fn(&mut ConnectionConfig) -> &mut T;

/// Type of a value, and its field.
enum Kind {
    Flag(Field<bool>),
    Time(Field<Duration>),
    Timeout(Field<Option<Duration>>),
    Size(Field<u64>),
    Packets(Field<u32>),
    Count(RangeInclusive<u64>, Field<u32>),
    Priority(RangeInclusive<u64>),
    MaxWindow,
    Mtu,
    ReceiveBuffer,
    Reinjection,
    Rto,
    Ecn,
    InitialPath,
}

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
    InitialPath(InitialPath),
}

/// Names of reinjection modes.
const REINJECTIONS: [(&str, Reinjection); 3] = [
    ("subflow_timeout", Reinjection::OnSubflowTimeout),
    ("connection_timeout", Reinjection::OnConnectionTimeout),
    ("never", Reinjection::Never),
];

/// Names of the rules for the retransmission timeout.
const RTO_RULES: [(&str, RtoRule); 2] = [("rfc6298", RtoRule::Rfc6298), ("paper", RtoRule::Paper)];

/// Names of ECN modes.
const ECN_MODES: [(&str, EcnMode); 3] =
    [("off", EcnMode::Off), ("accept", EcnMode::Accept), ("request", EcnMode::Request)];

/// Names of the choices of the initial path.
const INITIAL_PATHS: [(&str, InitialPath); 2] = [("race", InitialPath::Race), ("first", InitialPath::First)];

/// Every IPv4 host must accept 576 bytes (RFC 791); 40 bytes of options must fit next to data.
const MTU: RangeInclusive<u16> = 576..=65_535;

/// A buffer must hold a few segments; RFC 7323 limits the scaled window.
const RECEIVE_BUFFER: RangeInclusive<u64> = 3_072..=1 << 30;

/// All settings in order of application: those in segments follow those that determine the segment size.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "priority",
        summary: "the application's, 1 is the highest; for policies that look at it, such as the scheduler `qoe`",
        kind: Kind::Priority(1..=6),
    },
    Setting {
        name: "initial_path",
        summary: "on which path a connection begins: the one that answers first, the next being asked when one has not answered for 250 ms or two round trips if they are known (RFC 8305), or the first in any case. Plain TCP stays on the first",
        kind: Kind::InitialPath,
    },
    Setting { name: "receive_buffer", summary: "shared by all subflows", kind: Kind::ReceiveBuffer },
    Setting {
        name: "buffers_per_subflow",
        summary: "the send buffer, and the `max` of an automatic receive buffer, are per subflow",
        kind: Kind::Flag(|config| &mut config.buffers_per_subflow),
    },
    Setting {
        name: "charge_out_of_order",
        summary: "out-of-order bytes reduce the advertised window, as in Linux",
        kind: Kind::Flag(|config| &mut config.receiver.charge_out_of_order),
    },
    Setting {
        name: "data_in_subflow_order",
        summary: "data behind a hole in its subflow waits until the hole is filled, as in Linux, even if another subflow delivered it",
        kind: Kind::Flag(|config| &mut config.receiver.data_in_subflow_order),
    },
    Setting {
        name: "send_buffer",
        summary: "most bytes written and not acknowledged",
        kind: Kind::Size(|config| &mut config.send_buffer),
    },
    Setting {
        name: "data_reinjection",
        summary: "when outstanding data of a subflow is reinjected on another: at that subflow's retransmission timeout; only at the connection's own; or only when the subflow is closed, abandoned or suspended. The last two also prevent other duplicates, such as opportunistic retransmissions",
        kind: Kind::Reinjection,
    },
    Setting {
        name: "rto",
        summary: "how the retransmission timeout follows from the round trip: `\"paper\"` is equations 7 and 8 of the MANET paper as printed, SRTT = 1/8 SRTT + 7/8 RTT and RTO = max(`min_rto`, 2 SRTT)",
        kind: Kind::Rto,
    },
    Setting {
        name: "min_rto",
        summary: "least retransmission timeout",
        kind: Kind::Time(|config| &mut config.tcp.min_rto),
    },
    Setting {
        name: "initial_rto",
        summary: "retransmission timeout before the first sample of the round trip",
        kind: Kind::Time(|config| &mut config.tcp.initial_rto),
    },
    Setting {
        name: "max_timeouts",
        summary: "timeouts in a row that a subflow survives; at the next it is abandoned",
        kind: Kind::Count(1..=100, |config| &mut config.tcp.max_timeouts),
    },
    Setting {
        name: "user_timeout",
        summary: "how long written data may wait without progress of DATA_ACK until the connection is aborted (RFC 5482)",
        kind: Kind::Timeout(|config| &mut config.user_timeout),
    },
    Setting {
        name: "peer_timeout",
        summary: "how long retransmissions may stay without any answer on all subflows until the connection is aborted",
        kind: Kind::Timeout(|config| &mut config.peer_timeout),
    },
    Setting {
        name: "tail_loss_probe",
        summary: "tail loss probe after two round trips, before the timeout (RFC 8985, section 7)",
        kind: Kind::Flag(|config| &mut config.tcp.tail_loss_probe),
    },
    Setting {
        name: "delayed_ack",
        summary: "longest delay of an acknowledgement; with 0 s each segment is acknowledged",
        kind: Kind::Time(|config| &mut config.tcp.delayed_ack),
    },
    Setting { name: "mtu", summary: "largest IP packet", kind: Kind::Mtu },
    Setting {
        name: "path_mtu_discovery",
        summary: "two timeouts in a row of a long segment shorten the segments of a subflow, and the longest that passes is searched for (RFC 4821, RFC 8899); in the lab only where a link has an `mtu`",
        kind: Kind::Flag(|config| &mut config.tcp.path_mtu_discovery),
    },
    Setting {
        name: "sack",
        summary: "selective acknowledgements",
        kind: Kind::Flag(|config| &mut config.tcp.options.sack),
    },
    Setting {
        name: "timestamps",
        summary: "timestamps on every segment",
        kind: Kind::Flag(|config| &mut config.tcp.options.timestamps),
    },
    Setting {
        name: "ecn",
        summary: "explicit congestion notification (RFC 3168): never, on subflows whose opener asks, or asked for too. A queue with CoDel marks packets of such subflows and does not drop them",
        kind: Kind::Ecn,
    },
    Setting {
        name: "nagle",
        summary: "Nagle's algorithm: small segments wait while data is in flight. The network commands set TCP_NODELAY too",
        kind: Kind::Flag(|config| &mut config.tcp.nagle),
    },
    Setting {
        name: "pacing",
        summary: "segments are spread over the round trip",
        kind: Kind::Flag(|config| &mut config.tcp.pacing),
    },
    Setting { name: "checksum", summary: "the checksum of DSS", kind: Kind::Flag(|config| &mut config.checksum) },
    Setting {
        name: "initial_window",
        summary: "congestion window of a new subflow",
        kind: Kind::Packets(|config| &mut config.tcp.initial_window),
    },
    Setting { name: "max_window", summary: "most congestion window of a subflow", kind: Kind::MaxWindow },
];

/// Bytes of IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// Bytes of the timestamps option with padding (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;
/// Bytes of the longest padded DSS option (RFC 8684, section 3.3): 8-byte sequence numbers, no checksum.
const SIGNAL: u64 = 28;

/// Payload of a full segment: the unit of windows in scenarios and tables.
pub fn segment_size(multipath: bool, tcp: &TcpConfig) -> u64 {
    // A multipath segment leaves space for the longest DSS option beside timestamps.
    let options = if tcp.options.timestamps { TIMESTAMPS } else { 0 } + if multipath { SIGNAL } else { 0 };
    u64::from(tcp.mtu) - HEADERS - options
}

/// Defaults of scenarios: the engine's, but with TCP_NODELAY, which latency-sensitive applications set. `proxy`, `perf`
/// and `stream` set it too.
pub fn defaults(policies: Policies) -> ConnectionConfig {
    let mut config = ConnectionConfig::new(policies);
    config.tcp.nagle = false;
    config
}

impl Setting {
    /// Allowed values, as shown in documentation.
    pub fn values(&self) -> String {
        match &self.kind {
            Kind::Flag(_) => "true, false".to_owned(),
            Kind::Time(_) | Kind::Timeout(_) => Duration::WHAT.to_owned(),
            Kind::Size(_) => Size::WHAT.to_owned(),
            Kind::Packets(_) | Kind::MaxWindow => "packets".to_owned(),
            Kind::Count(range, _) | Kind::Priority(range) => format!("{} to {}", range.start(), range.end()),
            Kind::Mtu => format!("{} from {} B to {} B", Size::WHAT, MTU.start(), MTU.end()),
            Kind::ReceiveBuffer => {
                let (least, most) = (Size(*RECEIVE_BUFFER.start()), Size(*RECEIVE_BUFFER.end()));
                let (least, most) = (Value::Size(least), Value::Size(most));
                format!(
                    "a size from {least} to {most}, or `{{ initial, max }}` for one that grows with the rate of reading"
                )
            }
            Kind::Reinjection => quoted(&REINJECTIONS),
            Kind::Rto => quoted(&RTO_RULES),
            Kind::Ecn => quoted(&ECN_MODES),
            Kind::InitialPath => quoted(&INITIAL_PATHS),
        }
    }

    /// Default value, as written in scenarios.
    pub fn default(&self) -> String {
        let config = &mut defaults(Policies::of(&Combination::default()).expect("the defaults exist"));
        let value = match &self.kind {
            Kind::Flag(field) => Value::Flag(*field(config)),
            Kind::Time(field) => Value::Time(*field(config)),
            Kind::Timeout(field) => match *field(config) {
                Some(time) => Value::Time(time),
                None => return "none".to_owned(),
            },
            Kind::Size(field) => Value::Size(Size(*field(config))),
            Kind::Packets(field) => Value::Packets(Packets(u64::from(*field(config)))),
            Kind::Count(_, field) => Value::Count(u64::from(*field(config))),
            Kind::Priority(_) => Value::Count(u64::from(config.priority)),
            Kind::MaxWindow => return "none".to_owned(),
            Kind::Mtu => Value::Mtu(config.tcp.mtu),
            Kind::ReceiveBuffer => return "required".to_owned(),
            Kind::Reinjection => return "as the scheduler asks".to_owned(),
            Kind::Rto => return format!("\"{}\"", Value::Rto(config.tcp.rto)),
            Kind::Ecn => return format!("\"{}\"", Value::Ecn(config.tcp.ecn)),
            Kind::InitialPath => return format!("\"{}\"", Value::InitialPath(config.initial_path)),
        };
        value.to_string()
    }

    fn read(&self, item: &Item<'_>) -> Result<Value, Diagnostic> {
        match &self.kind {
            Kind::Flag(_) => item.flag().map(Value::Flag),
            Kind::Time(_) | Kind::Timeout(_) => item.quantity().map(Value::Time),
            Kind::Size(_) => item.quantity().map(Value::Size),
            Kind::Packets(_) | Kind::MaxWindow => item.quantity().map(Value::Packets),
            Kind::Count(range, _) | Kind::Priority(range) => item.count(range.clone()).map(Value::Count),
            Kind::Mtu => mtu(item).map(Value::Mtu),
            Kind::ReceiveBuffer => receive_buffer(item).map(Value::ReceiveBuffer),
            Kind::Reinjection => item.word(&REINJECTIONS).map(Value::Reinjection),
            Kind::Rto => item.word(&RTO_RULES).map(Value::Rto),
            Kind::Ecn => item.word(&ECN_MODES).map(Value::Ecn),
            Kind::InitialPath => item.word(&INITIAL_PATHS).map(Value::InitialPath),
        }
    }

    fn apply(&self, value: Value, config: &mut ConnectionConfig) {
        match (&self.kind, value) {
            (Kind::Flag(field), Value::Flag(on)) => *field(config) = on,
            (Kind::Time(field), Value::Time(time)) => *field(config) = time,
            (Kind::Timeout(field), Value::Time(time)) => *field(config) = Some(time),
            (Kind::Size(field), Value::Size(size)) => *field(config) = size.0,
            (Kind::Packets(field), Value::Packets(packets)) => *field(config) = packets.0 as u32,
            (Kind::Count(_, field), Value::Count(count)) => *field(config) = count as u32,
            (Kind::Priority(_), Value::Count(priority)) => config.priority = priority as u8,
            (Kind::MaxWindow, Value::Packets(packets)) => {
                config.tcp.max_window = Some(packets.0 * segment_size(config.multipath, &config.tcp));
            }
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
            (Kind::InitialPath, Value::InitialPath(path)) => config.initial_path = path,
            _ => unreachable!("a row's value was read as its kind"),
        }
    }
}

fn quoted<T>(words: &[(&str, T)]) -> String {
    let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    words.join(", ")
}

fn mtu(item: &Item<'_>) -> Result<u16, Diagnostic> {
    let size: Size = item.quantity()?;
    let possible = u16::try_from(size.0).ok().filter(|mtu| MTU.contains(mtu));
    possible.ok_or_else(|| {
        item.error(format!("an MTU of {} bytes is not possible: from {} to {}", size.0, MTU.start(), MTU.end()))
    })
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

fn possible(item: &Item<'_>, size: Size) -> Result<Size, Diagnostic> {
    if RECEIVE_BUFFER.contains(&size.0) {
        Ok(size)
    } else {
        Err(item.error(format!("a receive buffer of {} bytes is not possible: from 3072 bytes to 1 GiB", size.0)))
    }
}

/// Values of some settings of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectionSettings {
    /// By index in [`SETTINGS`].
    values: BTreeMap<usize, Value>,
}

impl ConnectionSettings {
    /// Parses a table of settings.
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

    /// Sets a value from the command line, where quantities need no quotes.
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

    /// Merges two sets; values of `self` win.
    pub fn over(&self, below: &Self) -> Self {
        let mut values = below.values.clone();
        values.extend(&self.values);
        Self { values }
    }

    /// These settings without those that `others` has too.
    pub fn without(&self, others: &Self) -> Self {
        let left = self.values.iter().filter(|(row, _)| !others.values.contains_key(row));
        Self { values: left.map(|(row, value)| (*row, *value)).collect() }
    }

    /// Applies the values to the engine's configuration.
    pub fn apply(&self, config: &mut ConnectionConfig) {
        for (row, value) in &self.values {
            SETTINGS[*row].apply(*value, config);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Names and values in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.values.iter().map(|(row, value)| (SETTINGS[*row].name, value.to_string()))
    }

    /// The receive buffer, if set.
    pub fn receive_buffer(&self) -> Option<ReceiveBuffer> {
        self.values.values().find_map(|value| match value {
            Value::ReceiveBuffer(buffer) => Some(*buffer),
            _ => None,
        })
    }

    /// The MTU, if set.
    pub fn mtu(&self) -> Option<u16> {
        self.values.values().find_map(|value| match value {
            Value::Mtu(mtu) => Some(*mtu),
            _ => None,
        })
    }
}

/// Formats in the largest unit with a whole number, else in the base unit.
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
            Self::InitialPath(path) => f.write_str(word_for(&INITIAL_PATHS, path)),
            Self::ReceiveBuffer(ReceiveBuffer::Auto { initial, max }) => {
                written(f, *initial)?;
                f.write_str(" to ")?;
                written(f, *max)
            }
        }
    }
}

/// Parses `[connection]`, which scenarios with connections need.
pub fn connection(top: &Reader<'_>, needed: bool) -> Result<ConnectionSettings, Diagnostic> {
    let item = match top.get("connection") {
        Some(item) => item,
        // Scenarios with mobile nodes have no connections.
        None if !needed || top.get("moving").is_some() => return Ok(ConnectionSettings::default()),
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
