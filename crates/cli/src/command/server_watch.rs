//! Reports of `proxy` about its server and uplinks: one line at the start, and one per change.

use crate::console::event;
use anabranch_attach::Attached;
use anabranch_mptcp::ConnectionConfig;
use anabranch_proxy::{Answer, Failure, Key, Target, ask};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Polling interval of uplinks.
const LOOK: Duration = Duration::from_secs(1);

/// Delay of the first retry after a failure on some uplink; it doubles each time.
const AGAIN: Duration = Duration::from_secs(5);

/// Maximum delay of retries.
const RARELY: Duration = Duration::from_secs(60);

/// Interval of checks if the server answers on all uplinks.
const CONTENT: Duration = Duration::from_secs(300);

/// The server to check, and how.
pub struct Question {
    /// The server as the user named it.
    named: Target,
    /// The server's address for the stack.
    server: Target,
    /// The key that the server must prove.
    key: Mutex<Key>,
    /// Configuration of the connections.
    config: ConnectionConfig,
    /// Whether the server has proved the key.
    proven: watch::Sender<bool>,
}

impl Question {
    /// A check of the server that the user calls `named`.
    pub fn new(named: &Target, server: &Target, key: &Key, config: ConnectionConfig) -> Self {
        let proven = watch::channel(false).0;
        Self { named: named.clone(), server: server.clone(), key: Mutex::new(key.clone()), config, proven }
    }

    /// Completes when the server has proved the key.
    pub fn proven(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut proven = self.proven.subscribe();
        async move {
            // The check has ended, so this never completes.
            if proven.wait_for(|proven| *proven).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Replaces the key.
    pub fn set_key(&self, key: &Key) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key.clone();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell {
    All,
    /// Total failure, and recovery from it.
    Trouble,
}

/// An uplink and the server's answer over it.
type Asked = (String, Answer);

/// Checks the server over each uplink, repeatedly.
pub async fn watch(attached: &Attached, question: &Question, tell: Tell) -> Infallible {
    let (mut told, mut uplinks, mut pause) = (String::new(), uplinks_of(attached), AGAIN);
    let mut in_trouble = false;
    loop {
        let answers = ask_all(attached, &uplinks, question).await;
        let line = sentence(&question.named, &answers);
        let trouble = !answers.iter().any(|(_, answer)| *answer == Answer::Proven);
        if line != told && (tell == Tell::All || trouble || in_trouble) {
            event(&line);
        }
        question.proven.send_replace(!trouble);
        (told, in_trouble) = (line, trouble);
        let everywhere = answers.iter().all(|(_, answer)| *answer == Answer::Proven) && !answers.is_empty();
        let until = Instant::now() + if everywhere { CONTENT } else { pause };
        pause = if everywhere { AGAIN } else { (pause * 2).min(RARELY) };
        while Instant::now() < until {
            sleep(LOOK).await;
            let now = uplinks_of(attached);
            if now != uplinks {
                if tell == Tell::All {
                    tell_changes(&uplinks, &now);
                }
                (uplinks, pause) = (now, AGAIN);
                break;
            }
        }
    }
}

/// Names and addresses of usable uplinks.
fn uplinks_of(attached: &Attached) -> Vec<(String, Vec<IpAddr>)> {
    let addresses = |path: anabranch_attach::AttachedPath| {
        (path.name, path.addresses.into_iter().map(|(_, address)| address).collect::<Vec<_>>())
    };
    attached.paths().into_iter().map(addresses).filter(|(_, addresses)| !addresses.is_empty()).collect()
}

fn tell_changes(before: &[(String, Vec<IpAddr>)], now: &[(String, Vec<IpAddr>)]) {
    let has = |list: &[(String, Vec<IpAddr>)], name: &str| list.iter().any(|(known, _)| known == name);
    for (name, _) in before.iter().filter(|(name, _)| !has(now, name)) {
        event(&format!("uplink {name} cannot be used any more"));
    }
    for (name, _) in now.iter().filter(|(name, _)| !has(before, name)) {
        event(&format!("uplink {name} can be used"));
    }
}

async fn ask_all(attached: &Attached, uplinks: &[(String, Vec<IpAddr>)], question: &Question) -> Vec<Asked> {
    let mut questions = JoinSet::new();
    let key = question.key.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (place, (_, addresses)) in uplinks.iter().enumerate() {
        for local in addresses.clone() {
            let Question { server, config, .. } = question;
            let (stack, server, key, config) = (attached.stack().clone(), server.clone(), key.clone(), config.clone());
            questions.spawn(async move { (place, ask(&stack, local, &server, &key, &config).await) });
        }
    }
    let mut best: Vec<Option<Answer>> = vec![None; uplinks.len()];
    while let Some(answered) = questions.join_next().await {
        if let Ok((place, answer)) = answered
            && best[place].is_none_or(|known| weight(answer) > weight(known))
        {
            best[place] = Some(answer);
        }
    }
    let names = uplinks.iter().map(|(name, _)| name.clone());
    names.zip(best).filter_map(|(name, answer)| Some((name, answer?))).collect()
}

/// Order of answers over an uplink's addresses; the most informative one counts.
fn weight(answer: Answer) -> (u8, Failure) {
    match answer {
        Answer::Proven => (2, Failure::General),
        Answer::Unproven => (1, Failure::General),
        Answer::Unreached(failure) => (0, failure),
    }
}

/// The report in one line.
fn sentence(server: &Target, answers: &[Asked]) -> String {
    let over = |which: &dyn Fn(Answer) -> bool| {
        let names = answers.iter().filter(|(_, answer)| which(*answer)).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let (good, bad) = (over(&|answer| answer == Answer::Proven), over(&|answer| answer != Answer::Proven));
    let most = answers.iter().map(|(_, answer)| *answer).max_by_key(|answer| weight(*answer));
    match most {
        None => format!("there is no uplink to ask the server {server} over"),
        Some(Answer::Proven) if bad.is_empty() => format!("the server {server} answers over {good}"),
        Some(Answer::Proven) => format!("the server {server} answers over {good}, not over {bad}"),
        Some(Answer::Unproven) => format!(
            "the server {server} does not prove the key: it has another one, or is not `anabranch serve`; compare the key files"
        ),
        Some(Answer::Unreached(Failure::HostUnreachable)) => {
            format!("the name of the server {server} is not known now; it is asked for again")
        }
        Some(Answer::Unreached(Failure::NetworkUnreachable)) => {
            format!("no uplink has an address of the kind that the server {server} has")
        }
        Some(Answer::Unreached(Failure::Refused)) => {
            format!(
                "the server {server} refuses connections: it does not run, or listens on another port; it is asked again"
            )
        }
        Some(Answer::Unreached(_)) => format!("the server {server} does not answer over {bad}; it is asked again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answers: &[(&str, Answer)]) -> String {
        let answers: Vec<Asked> = answers.iter().map(|(name, answer)| ((*name).to_owned(), *answer)).collect();
        sentence(&"vps.example:4433".parse().expect("a target"), &answers)
    }

    #[test]
    fn a_server_is_told_of_in_one_line_that_names_the_uplinks() {
        let (good, dead) = (Answer::Proven, Answer::Unreached(Failure::TimedOut));
        assert_eq!(said(&[("wlan0", good), ("wwan0", good)]), "the server vps.example:4433 answers over wlan0, wwan0");
        assert_eq!(
            said(&[("wlan0", dead), ("wwan0", good)]),
            "the server vps.example:4433 answers over wwan0, not over wlan0"
        );
        assert!(said(&[("wlan0", dead), ("wwan0", dead)]).contains("does not answer over wlan0, wwan0"));
        assert!(
            said(&[("wlan0", Answer::Unreached(Failure::Refused)), ("wwan0", dead)]).contains("refuses connections")
        );
        assert!(said(&[("wlan0", Answer::Unproven), ("wwan0", dead)]).contains("does not prove the key"));
        assert!(said(&[("wlan0", Answer::Unreached(Failure::HostUnreachable))]).contains("the name of the server"));
        assert!(said(&[]).contains("no uplink"));
    }
}
