//! Reads `[transfer]`.

use super::model::{Heading, Transfer};
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::Reader;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Endless,
    Finite,
    Messages,
    RequestResponse,
}

impl Kind {
    const WORDS: [(&'static str, Self); 4] = [
        ("endless", Self::Endless),
        ("finite", Self::Finite),
        ("messages", Self::Messages),
        ("request_response", Self::RequestResponse),
    ];

    /// Allowed keys.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Endless => &["direction", "connections"],
            Self::Finite => &["direction", "size"],
            Self::Messages => &["direction", "size", "interval"],
            Self::RequestResponse => &["request", "response", "pause"],
        }
    }

    fn read(self, table: &Reader<'_>) -> Result<Transfer, Diagnostic> {
        Ok(match self {
            Self::Endless => Transfer::Endless,
            Self::Finite => Transfer::Finite(table.required("size")?.quantity()?),
            Self::Messages => {
                Transfer::Messages { size: table.required("size")?.quantity()?, interval: interval(table)? }
            }
            Self::RequestResponse => Transfer::RequestResponse {
                request: table.required("request")?.quantity()?,
                response: table.required("response")?.quantity()?,
                pause: table.quantity("pause")?.unwrap_or(Duration::ZERO),
            },
        })
    }
}

/// Names of directions.
pub const HEADINGS: [(&str, Heading); 2] = [("upload", Heading::Upload), ("download", Heading::Download)];

/// Parses `[transfer]` and the number of its connections; default: an endless upload.
pub fn transfer(top: &Reader<'_>) -> Result<(Transfer, Heading, u32), Diagnostic> {
    let Some(item) = top.get("transfer") else { return Ok((Transfer::Endless, Heading::Upload, 1)) };
    let keys = &["kind", "direction", "connections", "size", "interval", "request", "response", "pause"];
    let table = item.table("a transfer", keys)?;
    let (kind, name) = match table.get("kind") {
        Some(kind) => (kind.word(&Kind::WORDS)?, kind.text()?),
        None => (Kind::Endless, "endless"),
    };
    if let Some((key, item)) = table.items().find(|(key, _)| *key != "kind" && !kind.keys().contains(key)) {
        return Err(item.error(format!("'{key}' has no meaning for a transfer of kind \"{name}\"")));
    }
    let heading = table.get("direction").map_or(Ok(Heading::Upload), |item| item.word(&HEADINGS))?;
    let connections = connections(top, &table)?;
    Ok((kind.read(&table)?, heading, connections))
}

/// Number of connections, with one transfer each.
fn connections(top: &Reader<'_>, transfer: &Reader<'_>) -> Result<u32, Diagnostic> {
    let Some(item) = transfer.get("connections") else { return Ok(1) };
    let count = item.count(1..=1000)?;
    if count > 1 && top.get("mesh").or_else(|| top.get("moving")).is_some() {
        return Err(item.error("an ad-hoc network carries one connection"));
    }
    Ok(count as u32)
}

/// Mean interval of messages.
pub fn interval(transfer: &Reader<'_>) -> Result<Duration, Diagnostic> {
    let item = transfer.required("interval")?;
    let interval: Duration = item.quantity()?;
    // Shorter intervals would need too much memory.
    let least = Duration::from_micros(10);
    if interval < least { Err(item.error("messages come at least 10 us apart, on average")) } else { Ok(interval) }
}
