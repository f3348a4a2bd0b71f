//! Reads what is carried.

use super::model::{Heading, Transfer};
use super::reader::Reader;
use crate::diagnostic::Diagnostic;
use anabranch_policy::time::Duration;

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
