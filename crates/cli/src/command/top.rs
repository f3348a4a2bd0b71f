//! `anabranch top`: what `status` prints, with rates, on the terminal.

use super::status::{FLOWS, StatusQuery, notes, state};
use crate::ending::block_on;
use crate::live::{Counted, Live, Sample, View, asked_or_quit};
use crate::status::{Flow, Status, Uplink};
use anabranch_settings::diagnostic::Diagnostic;

/// Shows the status on the terminal until the user quits.
///
/// # Errors
/// There is no terminal.
pub fn top(query: &StatusQuery) -> Result<(), Diagnostic> {
    let query = query.clone();
    let view = move || view(query.ask(|_| ()));
    block_on(async {
        let live = Live::of_others("anabranch top", view)?;
        asked_or_quit(Some(live)).await;
        Ok(())
    })
}

/// What `top` shows of all commands.
fn view(all: Vec<Status>) -> View {
    // With more than one command a name says whose the uplink or flow is.
    let several = all.len() > 1;
    let whose =
        |status: &Status| if several { format!("{} {} ", status.command, status.process) } else { String::new() };
    let uplinks =
        all.iter().flat_map(|status| status.uplinks.iter().map(|uplink| counted_uplink(uplink, &whose(status))));
    let shown = |status: &Status| {
        let flows = status.flows.iter().flat_map(|flows| flows.shown.iter().take(FLOWS));
        flows.map(|flow| counted_flow(flow, &whose(status))).collect::<Vec<_>>()
    };
    View {
        uplinks: uplinks.collect(),
        flows: all.iter().flat_map(shown).collect(),
        notes: all.iter().flat_map(notes).collect(),
        connections: Sample::of_all(all.into_iter().map(|status| status.connections).collect()),
    }
}

fn counted_uplink(uplink: &Uplink, whose: &str) -> Counted {
    Counted {
        name: format!("{whose}{}", uplink.name),
        state: state(uplink),
        rtt: uplink.rtt_ms,
        loss: uplink.loss_ratio,
        sent: uplink.sent_bytes,
        received: uplink.received_bytes,
    }
}

fn counted_flow(flow: &Flow, whose: &str) -> Counted {
    Counted {
        name: format!("{whose}{} {} to {}", flow.kind, flow.inside, flow.outside),
        state: "",
        rtt: None,
        loss: None,
        sent: flow.sent_bytes,
        received: flow.received_bytes,
    }
}
