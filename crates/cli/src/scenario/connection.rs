//! Reads what is carried and what both ends are set to.

use super::model::{Connection, Heading, ReceiveBuffer, Transfer};
use super::quantity::Size;
use super::reader::{Item, Reader};
use crate::diagnostic::Diagnostic;
use anabranch_policy::time::Duration;

const KEYS: &[&str] = &[
    "priority",
    "receive_buffer",
    "charge_out_of_order",
    "data_in_subflow_order",
    "buffers_per_subflow",
    "send_buffer",
    "max_window",
    "initial_window",
    "min_rto",
    "initial_rto",
    "max_timeouts",
    "delayed_ack",
    "mtu",
    "sack",
    "timestamps",
    "ecn",
    "nagle",
    "pacing",
    "checksum",
];

/// Reads `[transfer]`; without it the transfer is endless and the client sends it.
pub fn transfer(top: &Reader<'_>) -> Result<(Transfer, Heading), Diagnostic> {
    let Some(item) = top.get("transfer") else { return Ok((Transfer::Endless, Heading::Upload)) };
    let keys = &["kind", "direction", "size", "interval", "request", "response", "pause"];
    let table = item.table("a transfer", keys)?;
    let kinds = [("endless", 0), ("finite", 1), ("messages", 2), ("request_response", 3)];
    let (kind, name) = (table.required("kind")?.word(&kinds)?, table.required("kind")?.text()?);
    let allowed: &[&str] = match kind {
        0 => &["direction"],
        1 => &["direction", "size"],
        2 => &["direction", "size", "interval"],
        _ => &["request", "response", "pause"],
    };
    if let Some((key, item)) = table.items().find(|(key, _)| *key != "kind" && !allowed.contains(key)) {
        return Err(item.error(format!("'{key}' has no meaning for a transfer of kind \"{name}\"")));
    }
    let headings = [("upload", Heading::Upload), ("download", Heading::Download)];
    let heading = table.get("direction").map_or(Ok(Heading::Upload), |item| item.word(&headings))?;
    let transfer = match kind {
        0 => Transfer::Endless,
        1 => Transfer::Finite(table.required("size")?.quantity()?),
        2 => Transfer::Messages { size: table.required("size")?.quantity()?, interval: interval(&table)? },
        _ => Transfer::RequestResponse {
            request: table.required("request")?.quantity()?,
            response: table.required("response")?.quantity()?,
            pause: table.quantity("pause")?.unwrap_or(Duration::ZERO),
        },
    };
    Ok((transfer, heading))
}

fn interval(transfer: &Reader<'_>) -> Result<Duration, Diagnostic> {
    let item = transfer.required("interval")?;
    let interval: Duration = item.quantity()?;
    // Faster than that, a run would hold more messages than there is memory for.
    let least = Duration::from_micros(10);
    if interval < least { Err(item.error("messages come at least 10 us apart, on average")) } else { Ok(interval) }
}

/// Reads `[connection]`.
pub fn connection(top: &Reader<'_>) -> Result<Connection, Diagnostic> {
    let item = match top.get("connection") {
        Some(item) => item,
        // Moving nodes have no connections.
        None if top.get("moving").is_some() => return Ok(Connection::untouched()),
        None => top.required("connection")?,
    };
    let table = item.table("the connection", KEYS)?;
    let flag = |key: &str| table.get(key).map(|item| item.flag()).transpose();
    let mtu = table.get("mtu").map(|item| {
        let size: Size = item.quantity()?;
        // 576 is what every IPv4 host must take (RFC 791), and 40 bytes of options must fit with data behind them.
        let possible = u16::try_from(size.0).ok().filter(|mtu| *mtu >= 576);
        possible.ok_or_else(|| item.error(format!("an MTU of {} bytes is not possible: from 576 to 65535", size.0)))
    });
    Ok(Connection {
        priority: table.get("priority").map(|item| item.count(1..=6)).transpose()?.map(|n| n as u8),
        receive_buffer: receive_buffer(&table.required("receive_buffer")?)?,
        charge_out_of_order: flag("charge_out_of_order")?,
        data_in_subflow_order: flag("data_in_subflow_order")?,
        buffers_per_subflow: flag("buffers_per_subflow")?,
        send_buffer: table.quantity("send_buffer")?,
        max_window: table.quantity("max_window")?,
        initial_window: table.quantity("initial_window")?,
        min_rto: table.quantity("min_rto")?,
        initial_rto: table.quantity("initial_rto")?,
        max_timeouts: table.get("max_timeouts").map(|item| item.count(1..=100)).transpose()?.map(|n| n as u32),
        delayed_ack: table.quantity("delayed_ack")?,
        mtu: mtu.transpose()?,
        sack: flag("sack")?,
        timestamps: flag("timestamps")?,
        ecn: flag("ecn")?,
        nagle: flag("nagle")?,
        pacing: flag("pacing")?,
        checksum: flag("checksum")?,
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

/// A buffer must hold a few segments, and a window can be no larger than RFC 7323 lets it be scaled.
fn possible(item: &Item<'_>, size: Size) -> Result<Size, Diagnostic> {
    if (4_096..=1 << 30).contains(&size.0) {
        Ok(size)
    } else {
        Err(item.error(format!("a receive buffer of {} bytes is not possible: from 4096 bytes to 1 GiB", size.0)))
    }
}
