//! The log: a line for each decision, for people or as JSON.

use super::options::SteerOptions;
use super::words::{self, name};
use crate::console::{event, lost, print, since_1970, stamp};
use anabranch_policy::time::Duration;
use anabranch_steer::{Notice, interface_name};
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Event;
use anabranch_steering::status::Why;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Most addresses of which it is told what their path manager cannot do.
const MOST_UNABLE: usize = 64;

/// Writes notices.
#[derive(Clone, Debug)]
pub struct Log {
    json: bool,
    verbose: bool,
    /// What was told that a path manager cannot do, with the local address.
    unable: RefCell<BTreeSet<(&'static str, IpAddr)>>,
    /// Whether it was told that lines are lost.
    told_of_loss: Cell<bool>,
}

impl Log {
    pub fn new(options: &SteerOptions) -> Self {
        Self { json: options.json, verbose: options.verbose, unable: RefCell::default(), told_of_loss: Cell::default() }
    }

    /// A sentence that is no decision.
    pub fn say(&self, text: &str) {
        event(text);
    }

    pub fn tell(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Sampled { .. } => return,
            Notice::Event(event) if !self.verbose && is_of_a_connection(event) => return,
            _ => {}
        }
        if self.json {
            let now = since_1970();
            let mut line = to_json(notice);
            if let Some(fields) = line.as_object_mut() {
                fields.insert("at".to_owned(), json!(stamp(now.as_secs())));
                fields.insert("at_ms".to_owned(), json!(now.as_millis() as u64));
            }
            print(&format!("{line}\n"));
            // The end, where it is told too, may be far.
            if let Some(error) = lost().filter(|_| !self.told_of_loss.replace(true)) {
                event(&format!("decisions are lost, since standard output cannot be written: {error}"));
            }
        } else if self.is_news(notice) {
            event(&in_words(notice));
        }
    }

    /// Whether it is not yet known that a path manager cannot do this: it could not for any connection, as often as it is tried.
    fn is_news(&self, notice: &Notice<'_>) -> bool {
        let Notice::Command { command, outcome: Outcome::Unsupported, refusal: None, .. } = notice else { return true };
        let address = match **command {
            Command::Announce { address, .. } => address,
            Command::CreateSubflow { local, .. } => local,
            Command::DestroySubflow { endpoints, .. } | Command::SetBackup { endpoints, .. } => endpoints.local.ip(),
            Command::Remove { .. } => IpAddr::from([0; 4]),
        };
        let mut unable = self.unable.borrow_mut();
        unable.len() < MOST_UNABLE && unable.insert((words::kind(command), address))
    }
}

fn is_of_a_connection(event: &Event) -> bool {
    !matches!(
        event,
        Event::AddressUp { .. } | Event::AddressDeprecated { .. } | Event::AddressDown { .. } | Event::Overrun
    )
}

fn in_words(notice: &Notice<'_>) -> String {
    match notice {
        Notice::Event(Event::AddressUp { address, interface }) => {
            format!("{address} of {} can be used", interface_name(*interface))
        }
        Notice::Event(Event::AddressDeprecated { address }) => {
            format!("{address} is deprecated: no new path begins there")
        }
        Notice::Event(Event::AddressDown { address }) => format!("{address} cannot be used any more"),
        Notice::Event(Event::Overrun) => "events were lost: the next sample is compared".to_owned(),
        Notice::Event(event) => format!("{event:?}"),
        Notice::Adopted(token) => format!("{}: adopted", name(*token)),
        Notice::FellBack(token) => format!("{}: fell back to TCP", name(*token)),
        Notice::Loss(times, what) => format!("{times} times: {}", what.text),
        Notice::Restored(address) => {
            format!("{address}: its endpoint is no backup any more, as no connection needs that now")
        }
        Notice::Blind(error) => format!("no sample: {error}"),
        Notice::Sampled { at, .. } => format!("a sample at {at:?}"),
        Notice::Command { command, outcome, refusal, why } => {
            let why = why.map(|why| format!(" ({})", words::reason(why))).unwrap_or_default();
            let outcome = match (outcome, refusal) {
                (Outcome::Done, _) => String::new(),
                (_, Some(refusal)) => format!(": {refusal}"),
                (Outcome::Refused(errno), None) => format!(": {}", words::refused(*errno)),
                (Outcome::Unsupported, None) => {
                    format!(": {}, which is told once for each address", words::CANNOT)
                }
            };
            format!("{}{why}{outcome}", words::command(command))
        }
    }
}

fn to_json(notice: &Notice<'_>) -> Value {
    match notice {
        Notice::Event(event) => json!({ "kind": "event", "event": event_to_json(event) }),
        Notice::Adopted(token) => json!({ "kind": "adopted", "token": name(*token) }),
        Notice::FellBack(token) => json!({ "kind": "fallback", "token": name(*token) }),
        Notice::Loss(times, what) => {
            json!({ "kind": "loss_of_mptcp", "times": times, "cause": what.cause, "what": what.text })
        }
        Notice::Restored(address) => json!({ "kind": "endpoint_restored", "address": address }),
        Notice::Blind(error) => json!({ "kind": "no_sample", "error": error.to_string() }),
        Notice::Sampled { .. } => json!({ "kind": "sample" }),
        Notice::Command { command, outcome, refusal, why } => {
            let mut line = command_to_json(command);
            if let Some(fields) = line.as_object_mut() {
                fields.insert("done".to_owned(), json!(*outcome == Outcome::Done));
                fields.insert("refusal".to_owned(), json!(words::refusal(*outcome, *refusal)));
                fields.extend(why.map(|why| ("why".to_owned(), why_to_json(why))));
            }
            line
        }
    }
}

fn event_to_json(event: &Event) -> Value {
    match *event {
        Event::AddressUp { address, interface } => json!({
            "kind": "address_up", "address": address, "interface": interface_name(interface), "index": interface.0,
        }),
        Event::AddressDeprecated { address } => json!({ "kind": "address_deprecated", "address": address }),
        Event::AddressDown { address } => json!({ "kind": "address_down", "address": address }),
        Event::Created { token, endpoints, server } => json!({
            "kind": "created", "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
            "server": server,
        }),
        Event::Established { token, endpoints, server, remote_denies_joins } => json!({
            "kind": "established", "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
            "server": server, "remote_denies_joins": remote_denies_joins,
        }),
        Event::Closed { token } => json!({ "kind": "closed", "token": name(token) }),
        Event::Announced { token, remote_id, remote } => {
            json!({ "kind": "announced", "token": name(token), "remote_id": remote_id, "remote": remote })
        }
        Event::Removed { token, remote_id } => {
            json!({ "kind": "removed", "token": name(token), "remote_id": remote_id })
        }
        Event::SubflowEstablished { token, endpoints, local_id, remote_id, backup } => json!({
            "kind": "subflow_established", "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
            "local_id": local_id, "remote_id": remote_id, "backup": backup,
        }),
        Event::SubflowClosed { token, endpoints, error } => json!({
            "kind": "subflow_closed", "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
            "errno": error,
        }),
        Event::SubflowPriority { token, endpoints, backup } => json!({
            "kind": "subflow_priority", "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
            "backup": backup,
        }),
        Event::Overrun => json!({ "kind": "overrun" }),
    }
}

fn why_to_json(why: &Why) -> Value {
    json!({
        "occasion": format!("{:?}", why.occasion),
        "blocked": format!("{:?}", why.blocked),
        "busy_share": why.busy_share,
        "goodput_bytes_per_second": why.goodput,
        "nothing_acknowledged_for_s": why.silence.map(Duration::as_secs_f64),
    })
}

fn command_to_json(command: &Command) -> Value {
    match *command {
        Command::Announce { token, address, local_id } => {
            json!({ "kind": "announce", "token": name(token), "address": address, "id": local_id })
        }
        Command::Remove { token, local_id } => json!({ "kind": "remove", "token": name(token), "id": local_id }),
        Command::CreateSubflow { token, local, local_id, remote, backup } => json!({
            "kind": "open", "token": name(token), "local": local, "id": local_id, "remote": remote, "backup": backup,
        }),
        Command::DestroySubflow { token, endpoints } => {
            json!({ "kind": "close", "token": name(token), "local": endpoints.local, "remote": endpoints.remote })
        }
        Command::SetBackup { token, endpoints, backup } => json!({
            "kind": if backup { "demote" } else { "promote" },
            "token": name(token), "local": endpoints.local, "remote": endpoints.remote,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_steering::sample::{Endpoints, Token};
    use std::net::SocketAddr;

    #[test]
    fn what_a_path_manager_cannot_do_is_told_once_for_each_address() {
        let log = Log { json: false, verbose: false, unable: RefCell::default(), told_of_loss: Cell::default() };
        let open = |token: u32, last: u8| Command::CreateSubflow {
            token: Token(token),
            local: IpAddr::from([10, 0, 0, last]),
            local_id: 1,
            remote: SocketAddr::from(([10, 0, 0, 9], 80)),
            backup: false,
        };
        let is_news = |command: Command, outcome: Outcome| {
            log.is_news(&Notice::Command { command: &command, outcome, refusal: None, why: None })
        };
        let cannot = Outcome::Unsupported;
        assert!(is_news(open(1, 1), cannot));
        assert!(!is_news(open(2, 1), cannot));
        assert!(is_news(open(2, 2), cannot));
        assert!(is_news(open(2, 2), Outcome::Done) && is_news(open(2, 2), Outcome::Refused(1)));
        let others = (1..=u8::MAX).filter(|last| is_news(open(3, *last), cannot));
        assert_eq!(others.count(), MOST_UNABLE - 2);
    }

    #[test]
    fn an_event_is_an_object_with_a_kind_and_names() {
        let told = |event: &Event| to_json(&Notice::Event(event))["event"].clone();
        let (address, interface) = (IpAddr::from([10, 9, 1, 2]), anabranch_steering::event::Interface(1));
        assert_eq!(
            told(&Event::AddressUp { address, interface }),
            json!({
                "kind": "address_up", "address": "10.9.1.2", "interface": "lo", "index": 1,
            })
        );
        assert_eq!(told(&Event::AddressDown { address }), json!({ "kind": "address_down", "address": "10.9.1.2" }));
        let endpoints =
            Endpoints { local: SocketAddr::from((address, 1_000)), remote: SocketAddr::from(([10, 9, 9, 9], 80)) };
        let closed = Event::SubflowClosed { token: Token(0xab), endpoints, error: 110 };
        assert_eq!(
            told(&closed),
            json!({
                "kind": "subflow_closed", "token": "000000ab", "local": "10.9.1.2:1000", "remote": "10.9.9.9:80",
                "errno": 110,
            })
        );
    }

    #[test]
    fn a_decision_is_told_with_its_reason() {
        let (local, remote) = ("10.0.2.1:1000".parse(), "10.0.0.2:80".parse());
        let endpoints = Endpoints { local: local.expect("an address"), remote: remote.expect("an address") };
        let command = Command::SetBackup { token: Token(0xab), endpoints, backup: true };
        let silence = Some(Duration::from_millis(1_500));
        let why = Why { busy_share: 0.6, goodput: 1e6, silence, ..Why::default() };
        let notice = Notice::Command { command: &command, outcome: Outcome::Done, refusal: None, why: Some(&why) };
        let words = in_words(&notice);
        assert!(words.starts_with("000000ab: demote 10.0.2.1:1000 to 10.0.0.2:80 ("), "{words}");
        assert!(words.contains("busy 60 %; 8.00 Mbit/s; dead: nothing acknowledged for 1.5 s)"), "{words}");
        let line = to_json(&notice);
        assert_eq!(
            (&line["kind"], &line["done"], &line["token"]),
            (&json!("demote"), &json!(true), &json!("000000ab"))
        );
        assert_eq!(line["why"]["goodput_bytes_per_second"], json!(1e6));
        assert_eq!(line["why"]["nothing_acknowledged_for_s"], json!(1.5));
    }
}
