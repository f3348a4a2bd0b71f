//! `anabranch status`: status of the commands running on this host.

use crate::console::{print, remark, stamp};
use crate::status::{Flow, NamedClient, Status, Uplink, instances, read};
use crate::table;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::path::PathBuf;

/// Maximum number of datagram flows printed.
pub(super) const FLOWS: usize = 20;
/// Maximum number of decisions printed, the newest first.
const DECISIONS: usize = 20;

/// Which programs are asked.
#[derive(Clone, Debug, Args)]
pub struct StatusQuery {
    /// Query those with this journal directory [default: /run/anabranch and $XDG_RUNTIME_DIR/anabranch]
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
}

impl StatusQuery {
    /// Statuses of the running commands; `told` receives errors of those that do not answer.
    pub(super) fn ask(&self, told: impl Fn(String)) -> Vec<Status> {
        let answer = |socket: PathBuf| {
            read(&socket).map_err(|error| told(format!("note: {} does not answer: {error}", socket.display()))).ok()
        };
        instances(self.journal.as_deref()).into_iter().filter_map(answer).collect()
    }
}

/// Prints the status once.
///
/// # Errors
/// No command runs that this user may query.
pub fn status(query: &StatusQuery, json: bool) -> Result<(), Diagnostic> {
    let all = query.ask(|text| remark(&text));
    if json {
        let text = serde_json::to_string_pretty(&all).map_err(|error| Diagnostic::plain(error.to_string()))?;
        print(&format!("{text}\n"));
        return Ok(());
    }
    if all.is_empty() {
        let message = "no `anabranch` proxy, serve, up, run or steer is here that this user may ask; those of root only root \
                       may, and one that was started with --journal DIR needs that here too";
        return Err(Diagnostic::plain(message));
    }
    print(&all.iter().map(describe).collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// One command with uplinks, and connections with paths.
fn describe(status: &Status) -> String {
    let Status { command, process, version, clients, connections, .. } = status;
    let minutes = status.now.saturating_sub(status.began) / 60;
    let whose = match &status.steered {
        Some(kernel) => format!("policy {}, path manager {}", kernel.policy, kernel.path_manager),
        None => format!("{} clients", clients.now),
    };
    let mut text = format!(
        "{command} (process {process}, version {version}), for {} h {} min: {whose}, {} connections\n\n",
        minutes / 60,
        minutes % 60,
        connections.count
    );
    let uplink = |uplink: &Uplink| {
        vec![
            uplink.name.clone(),
            state(uplink).to_owned(),
            role(uplink),
            uplink.subflows.to_string(),
            number(uplink.rtt_ms),
            number(uplink.loss_ratio.map(|loss| loss * 100.0)),
            bytes(uplink.sent_bytes),
            bytes(uplink.received_bytes),
        ]
    };
    let head = ["uplink", "state", "role", "subflows", "RTT ms", "loss %", "sent", "received"];
    text.push_str(&table::render(&head, &status.uplinks.iter().map(uplink).collect::<Vec<_>>()));
    text.push_str(&datagrams(status));
    text.push_str(&named(status));
    text.push_str(&connections_of(status));
    let notes = notes(status);
    if !notes.is_empty() {
        text.push_str(&format!("\n{}\n", notes.join("\n")));
    }
    text
}

/// The clients of a server by the names of their keys.
fn named(status: &Status) -> String {
    let row = |(name, client): (&String, &NamedClient)| {
        let (now, all) = (client.now.to_string(), client.accepted.to_string());
        vec![name.clone(), now, all, bytes(client.up_bytes), bytes(client.down_bytes)]
    };
    let rows: Vec<_> = status.clients.named.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table::render(&["key", "connections", "in all", "from it", "to it"], &rows))
}

/// Connections with their paths, of which the closed ones come last.
fn connections_of(status: &Status) -> String {
    let connections = &status.connections.connections;
    if connections.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for connection in connections {
        let protocol = connection.protocol.clone();
        rows.push(vec![connection.remote.to_string(), protocol, String::new(), String::new(), String::new()]);
        rows.extend(connection.paths.iter().map(|path| {
            let rtt = number(path.rtt);
            vec![format!("  {}", path.name), path.state.to_string(), rtt, bytes(path.sent), bytes(path.received)]
        }));
    }
    format!("\n{}", table::render(&["connection", "state", "RTT ms", "sent", "received"], &rows))
}

/// What makes connections plain TCP, and the last decisions with their reasons, a line each.
pub(super) fn notes(status: &Status) -> Vec<String> {
    let Some(kernel) = &status.steered else { return Vec::new() };
    let warnings = kernel.warnings.iter().map(|warning| format!("warning: {warning}"));
    let latest = kernel.decisions.iter().rev().take(DECISIONS).map(|decision| {
        let refusal = decision.refusal.as_ref().map(|refusal| format!(": refused, {refusal}")).unwrap_or_default();
        format!("{} {} ({}){refusal}", stamp(decision.at), decision.what, decision.why)
    });
    warnings.chain(latest).collect()
}

/// Datagrams: one line per uplink and per flow.
fn datagrams(status: &Status) -> String {
    let Some(flows) = &status.flows else { return String::new() };
    let mut text = String::new();
    let path = |uplink: &Uplink| {
        let path = uplink.datagrams.as_ref()?;
        Some(vec![
            uplink.name.clone(),
            if path.usable { "answered" } else { "silent" }.to_owned(),
            number(path.rtt_ms),
            format!("{:.1}", path.loss_ratio * 100.0),
            format!("{:.1}", path.jitter_ms),
            bytes(path.sent_bytes),
            bytes(path.received_bytes),
        ])
    };
    let paths: Vec<_> = status.uplinks.iter().filter_map(path).collect();
    let head = ["datagrams", "state", "RTT ms", "loss %", "jitter ms", "sent", "received"];
    if !paths.is_empty() {
        text.push_str(&format!("\n{}", table::render(&head, &paths)));
    }
    let flow = |flow: &Flow| {
        let ends = format!("{} {} -> {}", flow.kind, flow.inside, flow.outside);
        vec![ends, bytes(flow.sent_bytes), bytes(flow.received_bytes)]
    };
    let rows: Vec<_> = flows.shown.iter().take(FLOWS).map(flow).collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", table::render(&["flow", "sent", "received"], &rows)));
    }
    if flows.count > rows.len() {
        text.push_str(&format!("and {} more; --json has {}\n", flows.count - rows.len(), flows.shown.len()));
    }
    text
}

/// State of an uplink in a word.
pub(super) fn state(uplink: &Uplink) -> &'static str {
    match (uplink.portal, uplink.up) {
        (true, _) => "portal",
        (_, true) => "up",
        _ => "down",
    }
}

/// Role of an uplink and the rest of its quota.
fn role(uplink: &Uplink) -> String {
    let role = if uplink.role.is_empty() { "-" } else { &uplink.role };
    match (uplink.quota_used_bytes, uplink.quota_bytes) {
        (Some(used), Some(quota)) => format!("{role}, {} of {}", bytes(used), bytes(quota)),
        _ => role.to_owned(),
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// A number of bytes in about four digits.
fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        ..1e3 => format!("{count} B"),
        ..1e6 => format!("{:.1} kB", count / 1e3),
        ..1e9 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.2} GB", count / 1e9),
    }
}
