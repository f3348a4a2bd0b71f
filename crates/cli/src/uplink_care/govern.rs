//! Monitors roles, quotas and captive portals of uplinks, and selects the uplinks accordingly.

use super::options::UplinkOptions;
use super::portal::{Verdict, look};
use super::quota::used;
use crate::console::event;
use crate::state_directory::state_directory;
use anabranch_host::{Netlink, Snapshot};
use anabranch_settings::diagnostic::did_you_mean;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Polling interval of quotas.
const LOOK: Duration = Duration::from_secs(1);
/// Interval of portal checks over an uplink in use,
const ASK: Duration = Duration::from_secs(30);
/// over a reserve uplink, whose traffic may cost,
const ASK_RESERVE: Duration = Duration::from_secs(300);
/// and over one behind a captive portal.
const ASK_PORTAL: Duration = Duration::from_secs(5);

/// Roles and states of uplinks. Clones share them.
#[derive(Clone)]
pub struct Roles(Arc<Mutex<State>>);

struct State {
    options: UplinkOptions,
    backups: Vec<String>,
    portals: BTreeSet<String>,
    used: BTreeMap<String, u64>,
}

/// State of an uplink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Governed {
    /// `primary`, `backup` or `metered`.
    pub role: &'static str,
    /// Whether it is used only while no other uplink works.
    pub reserve: bool,
    /// Whether it is behind a captive portal.
    pub portal: bool,
    /// Bytes used in this day or month, and the limit, if there is a quota.
    pub quota: Option<(u64, u64)>,
}

/// A sentence about each of these interfaces that is not there: a modem may be plugged in later, but with a wrong name a
/// metered uplink would be used without limits.
pub fn absent<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let Ok(snapshot) = Netlink::open().and_then(|mut netlink| Snapshot::take(&mut netlink)) else { return Vec::new() };
    let known: Vec<&str> = snapshot.interfaces.iter().map(|known| known.name.as_str()).collect();
    let absent: BTreeSet<&String> = names.into_iter().filter(|name| snapshot.interface(name).is_none()).collect();
    let sentence = |name: &String| {
        let hint = did_you_mean(name, known.iter().copied());
        format!("there is no interface {name} yet: known are {}{hint}", known.join(", "))
    };
    absent.into_iter().map(sentence).collect()
}

impl Roles {
    pub fn new(options: &UplinkOptions, backups: &[String]) -> Self {
        let (portals, used) = (BTreeSet::new(), BTreeMap::new());
        let state = State { options: options.clone(), backups: backups.to_vec(), portals, used };
        Self(Arc::new(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserve uplinks at startup.
    pub fn reserve(&self) -> Vec<String> {
        self.tell_of_absent();
        self.count(&mut true);
        self.uses().0
    }

    /// Warns about absent uplinks.
    fn tell_of_absent(&self) {
        let state = self.lock();
        absent(state.backups.iter().chain(&state.options.metered)).iter().for_each(|line| event(line));
    }

    /// Applies new options.
    pub fn set(&self, options: &UplinkOptions, backups: &[String]) {
        let mut state = self.lock();
        if options.probe.is_none() {
            state.portals.clear();
        }
        (state.options, state.backups) = (options.clone(), backups.to_vec());
        drop(state);
        self.tell_of_absent();
    }

    /// State of an uplink.
    pub fn of(&self, name: &str) -> Governed {
        let state = self.lock();
        let metered = state.options.metered.iter().any(|metered| metered == name);
        let backup = state.backups.iter().any(|backup| backup == name);
        let used = state.used.get(name).copied().unwrap_or(0);
        Governed {
            role: if metered {
                "metered"
            } else if backup {
                "backup"
            } else {
                "primary"
            },
            reserve: state.is_reserve(name),
            portal: state.portals.contains(name),
            quota: state.options.quota(name).map(|quota| (used, quota.octets)),
        }
    }

    /// Reserve uplinks, and disabled uplinks.
    fn uses(&self) -> (Vec<String>, Vec<String>) {
        let state = self.lock();
        let names: BTreeSet<&String> = state.backups.iter().chain(&state.options.metered).collect();
        let reserve = names.into_iter().filter(|name| state.is_reserve(name)).cloned().collect();
        (reserve, state.portals.iter().cloned().collect())
    }

    /// Polls the quotas. Logs used-up quotas, and once a failure to save the counters.
    fn count(&self, silent: &mut bool) {
        let options = self.lock().options.clone();
        let directory = state_directory(options.state.as_deref());
        for quota in &options.quotas {
            match used(&directory, quota) {
                Ok(now) => {
                    let before = self.lock().used.insert(quota.interface.clone(), now).unwrap_or(0);
                    let (name, size) = (&quota.interface, quota.octets);
                    if before < size && now >= size {
                        event(&format!("uplink {name} has used its quota of {size} octets: it is a backup now"));
                    } else if before >= size && now < size {
                        event(&format!("uplink {name} has a new quota of {size} octets"));
                    }
                }
                Err(error) if !*silent => {
                    *silent = true;
                    let place = directory.display();
                    event(&format!(
                        "quotas are not counted: nothing can be written into {place} ({error}); see --state"
                    ));
                }
                Err(_) => {}
            }
        }
    }

    /// Handles the result of a portal check.
    fn found(&self, name: &str, verdict: Verdict) {
        let mut state = self.lock();
        match verdict {
            Verdict::Portal if state.portals.insert(name.to_owned()) => {
                event(&format!("uplink {name} leads to a portal: it is not used until that is gone"));
            }
            Verdict::Open if state.portals.remove(name) => {
                event(&format!("the portal of uplink {name} is gone: it is used again"));
            }
            _ => {}
        }
    }
}

impl State {
    /// A metered uplink without a quota is always in reserve, one with a quota once that is used up.
    fn is_reserve(&self, name: &str) -> bool {
        let metered = self.options.metered.iter().any(|metered| metered == name);
        let left =
            self.options.quota(name).is_some_and(|quota| self.used.get(name).is_none_or(|used| *used < quota.octets));
        self.backups.iter().any(|backup| backup == name) || (metered && !left)
    }
}

/// Passes reserve and disabled uplinks to `apply` whenever roles, quotas or portals change them.
pub async fn govern(
    roles: &Roles,
    there: impl Fn() -> Vec<String>,
    apply: impl Fn(&[String], &[String]),
) -> Infallible {
    let (mut applied, mut silent) = (None, false);
    let mut known: BTreeMap<String, Instant> = BTreeMap::new();
    let mut questions = JoinSet::new();
    loop {
        roles.count(&mut silent);
        let uses = roles.uses();
        if applied.as_ref() != Some(&uses) {
            apply(&uses.0, &uses.1);
            applied = Some(uses);
        }
        let now = Instant::now();
        // Uplinks disabled by a portal are not in the stack's report.
        for name in there() {
            known.entry(name).or_insert(now);
        }
        let (page, expected) = {
            let state = roles.lock();
            (state.options.probe.clone(), state.options.probe_answer.clone())
        };
        for (name, due) in known.iter_mut().filter(|(_, due)| **due <= now) {
            let Some(page) = page.clone() else { break };
            let governed = roles.of(name);
            let pause = if governed.portal {
                ASK_PORTAL
            } else if governed.reserve {
                ASK_RESERVE
            } else {
                ASK
            };
            *due = now + pause;
            let (name, expected) = (name.clone(), expected.clone());
            questions.spawn(async move {
                let verdict = look(&page, expected.as_deref(), &name).await;
                (name, verdict)
            });
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            Some(Ok((name, verdict))) = questions.join_next() => {
                roles.found(&name, verdict);
                if verdict == Verdict::Portal {
                    known.insert(name, Instant::now() + ASK_PORTAL);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(metered: &[&str], quotas: &[&str]) -> UplinkOptions {
        UplinkOptions {
            metered: metered.iter().map(|name| (*name).to_owned()).collect(),
            quotas: quotas.iter().map(|text| text.parse().expect("a quota")).collect(),
            ..UplinkOptions::default()
        }
    }

    #[test]
    fn a_metered_uplink_is_a_backup_but_for_its_quota() {
        let roles = Roles::new(&options(&["wwan0", "usb0"], &["wwan0=1kB/day"]), &["old0".to_owned()]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(roles.uses().0, names(&["old0", "usb0"]));
        roles.lock().used.insert("wwan0".to_owned(), 999);
        assert_eq!(roles.uses().0, names(&["old0", "usb0"]));
        assert_eq!(roles.of("wwan0").quota, Some((999, 1_000)));
        roles.lock().used.insert("wwan0".to_owned(), 1_000);
        assert_eq!(roles.uses().0, names(&["old0", "usb0", "wwan0"]));
        assert_eq!(["wlan0", "old0", "usb0"].map(|name| roles.of(name).role), ["primary", "backup", "metered"]);
    }

    #[test]
    fn one_behind_a_portal_is_not_used_until_that_is_gone_and_silence_says_nothing() {
        let roles = Roles::new(&options(&[], &[]), &[]);
        for (verdict, barred) in [(Verdict::Silent, 0), (Verdict::Portal, 1), (Verdict::Silent, 1), (Verdict::Open, 0)]
        {
            roles.found("wlan0", verdict);
            assert_eq!(roles.uses().1.len(), barred, "{verdict:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_helps() {
        let said = |options: &UplinkOptions, uplinks: &[&str], backups: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            options.check(&own(uplinks), &own(backups)).expect_err("it is wrong").whole()
        };
        assert!(said(&options(&["wwan0"], &[]), &["wlan0"], &[]).contains("add --uplink wwan0"));
        assert!(said(&options(&["wwan0"], &[]), &[], &["wwan0"]).contains("is a backup"));
        assert!(said(&options(&[], &["wwan0=1GB/day"]), &[], &[]).contains("add --metered wwan0"));
        assert!(options(&["wwan0"], &["wwan0=1GB/day"]).check(&[], &[]).is_ok());
    }
}
