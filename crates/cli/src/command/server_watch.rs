//! Reports about server and uplinks: one line at the start, and one per change.

use crate::console::event;
use anabranch_attach::Attached;
use anabranch_datagram::Client;
use anabranch_mptcp::ConnectionConfig;
use anabranch_proxy::{Answer, Failure, Key, Target, ask};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Polling interval of uplinks.
const LOOK: Duration = Duration::from_secs(1);

/// Delay of the first retry after a failure on some uplink; it doubles each time.
const AGAIN: Duration = Duration::from_secs(5);

/// Maximum delay of retries.
const RARELY: Duration = Duration::from_secs(60);

/// Interval of checks if the server answers on all uplinks.
const CONTENT: Duration = Duration::from_secs(300);

/// What shows between two checks that the answers may have changed.
pub enum Hint {
    /// Which paths carry datagrams to the same server.
    Datagrams(Client),
    /// The number of connections that failed.
    Failures(Box<dyn Fn() -> u64 + Send + Sync>),
}

/// What a hint shows at a moment.
#[derive(PartialEq, Eq)]
enum Shown {
    /// The paths whose datagrams are answered.
    Answered(Vec<String>),
    Failures(u64),
}

impl Hint {
    fn look(&self) -> Shown {
        match self {
            Self::Datagrams(client) => {
                let answered = client.report().into_iter().filter(|path| path.usable);
                Shown::Answered(answered.map(|path| path.name).collect())
            }
            Self::Failures(count) => Shown::Failures(count()),
        }
    }

    /// Whether the server answers over no path but proves the key for datagrams, for which it may need a moment.
    async fn is_half_there(&self, answers: &[Asked]) -> bool {
        match self {
            Self::Datagrams(client) if !answers.is_empty() && !answers.iter().any(is_proven) => {
                timeout(LOOK, client.connected()).await.is_ok()
            }
            _ => false,
        }
    }
}

impl Shown {
    /// The delay of another check, if this differs from the answers.
    fn differs(&self, answers: &[Asked]) -> Option<Duration> {
        match self {
            Self::Answered(paths) => {
                answers.iter().any(|asked| is_proven(asked) != paths.contains(&asked.0)).then_some(AGAIN)
            }
            // A target may have failed, not the server.
            Self::Failures(_) => Some(RARELY),
        }
    }
}

/// The server to check, and how.
pub struct Question {
    /// The server as the user named it.
    named: Target,
    /// The server's address for the stack, and that of the other family.
    server: (Target, Option<SocketAddr>),
    /// The key that the server must prove.
    key: Mutex<Key>,
    /// Configuration of the connections.
    config: ConnectionConfig,
    hint: Hint,
    /// Whether the server has proved the key.
    proven: watch::Sender<bool>,
}

impl Question {
    /// A check of the server that the user calls `named`.
    pub fn new(
        named: &Target,
        (server, other): (&Target, Option<SocketAddr>),
        key: &Key,
        config: ConnectionConfig,
        hint: Hint,
    ) -> Self {
        let proven = watch::channel(false).0;
        Self {
            named: named.clone(),
            server: (server.clone(), other),
            key: Mutex::new(key.clone()),
            config,
            hint,
            proven,
        }
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

fn is_proven((_, answer): &Asked) -> bool {
    *answer == Answer::Proven
}

/// Checks the server over each uplink, repeatedly.
pub async fn watch(attached: &Attached, question: &Question, tell: Tell) -> Infallible {
    let (mut told, mut uplinks, mut pause) = (String::new(), uplinks_of(attached), AGAIN);
    let mut in_trouble = false;
    loop {
        let answers = ask_all(attached, &uplinks, question).await;
        let half = question.hint.is_half_there(&answers).await;
        let line = sentence(&question.named, &answers, half);
        let trouble = !answers.iter().any(is_proven);
        if line != told && (tell == Tell::All || trouble || in_trouble) {
            event(&line);
        }
        question.proven.send_replace(!trouble);
        (told, in_trouble) = (line, trouble);
        let everywhere = answers.iter().all(is_proven) && !answers.is_empty();
        let (asked, shown) = (Instant::now(), question.hint.look());
        let until = asked + if everywhere { CONTENT } else { pause };
        pause = if everywhere { AGAIN } else { (pause * 2).min(RARELY) };
        while Instant::now() < until {
            sleep(LOOK).await;
            let now = question.hint.look();
            if now != shown && now.differs(&answers).is_some_and(|delay| asked.elapsed() >= delay) {
                break;
            }
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
            questions.spawn(async move {
                let (server, other) = server;
                (place, ask(&stack, local, (&server, other), &key, &config).await)
            });
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
        Answer::Proven => (3, Failure::General),
        Answer::Full => (2, Failure::General),
        Answer::Unproven => (1, Failure::General),
        Answer::Unreached(failure) => (0, failure),
        Answer::Unroutable => (0, Failure::HostUnreachable),
    }
}

/// The report in one line; `half` if the server proves the key for datagrams only.
fn sentence(server: &Target, answers: &[Asked], half: bool) -> String {
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
        Some(Answer::Full) => format!(
            "the server {server} has as many connections as it may have (its --max-connections); it is asked again"
        ),
        Some(Answer::Unproven) => format!(
            "the server {server} does not prove the key: it has another one, or is not `anabranch serve`; compare the key files"
        ),
        Some(Answer::Unreached(_) | Answer::Unroutable) if half => format!(
            "the server {server} answers for datagrams, not for streams: only one end has --udp, or a firewall drops them; it is asked again"
        ),
        Some(Answer::Unroutable) => {
            format!("the server {server} is not reached over {bad}: a router says so; it is asked again")
        }
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
        sentence(&"vps.example:4433".parse().expect("a target"), &answers, false)
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
        assert!(said(&[("wlan0", Answer::Full), ("wwan0", dead)]).contains("as many connections as it may have"));
        assert!(said(&[("wlan0", Answer::Full), ("wwan0", good)]).contains("answers over wwan0, not over wlan0"));
        assert!(said(&[("wlan0", Answer::Unreached(Failure::HostUnreachable))]).contains("the name of the server"));
        let (cut, refused) = (Answer::Unroutable, Answer::Unreached(Failure::Refused));
        assert!(said(&[("wlan0", cut), ("wwan0", cut)]).contains("not reached over wlan0, wwan0: a router says so"));
        assert!(said(&[("wlan0", cut), ("wwan0", refused)]).contains("refuses connections"));
        assert!(said(&[]).contains("no uplink"));
    }
    #[test]
    fn a_server_that_answers_for_datagrams_only_is_not_called_silent() {
        let answers = |answer| [("wlan0".to_owned(), answer)];
        let said = |answer| sentence(&"vps.example:4433".parse().expect("a target"), &answers(answer), true);
        for failure in [Failure::TimedOut, Failure::Refused] {
            assert!(said(Answer::Unreached(failure)).contains("only one end has --udp"));
        }
        assert!(said(Answer::Unproven).contains("does not prove the key"));
    }

    #[test]
    fn only_datagrams_that_differ_from_the_answers_are_a_reason_to_ask_again() {
        let answers = [("wlan0", Answer::Proven), ("wwan0", Answer::Unreached(Failure::TimedOut))];
        let answers = answers.map(|(name, answer)| (name.to_owned(), answer));
        let shown = |paths: &[&str]| Shown::Answered(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(shown(&["wlan0"]).differs(&answers), None);
        assert_eq!(shown(&["wlan0", "wwan0"]).differs(&answers), Some(AGAIN));
        assert_eq!(shown(&[]).differs(&answers), Some(AGAIN));
        // A target that cannot be reached does not have the server asked each time.
        assert_eq!(Shown::Failures(1).differs(&answers), Some(RARELY));
    }
}
