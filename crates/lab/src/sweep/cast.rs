//! Entrants of a sweep: the policies, and plain TCP as reference.

use crate::kernel_model;
use anabranch_policy::combination::{Choice, Combination, Family};
use anabranch_settings::contender::{self, Contender, LAB_DEFAULT, ON_NETWORKS, Route};
use anabranch_settings::diagnostic::Diagnostic;

/// Settings of the ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ends {
    /// The engine's.
    Ours,
    /// The kernel's.
    Linux,
}

/// A participant of a sweep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entrant {
    /// Policies and name.
    pub contender: Contender,
    /// Settings beside the policies.
    pub ends: Ends,
}

/// The model of the kernel, see [`kernel_model`].
const LINUX: &str = "linux";

/// Suffix of a scheduler's name: with CUBIC instead of LIA.
const WITH_CUBIC: &str = "+cubic";

impl Entrant {
    fn ours(contender: Contender) -> Self {
        Self { contender, ends: Ends::Ours }
    }

    /// Plain TCP with this congestion control.
    pub fn tcp(congestion: &Choice) -> Self {
        let name = format!("tcp_{}", congestion.name);
        let policies = Combination { congestion: congestion.clone(), ..Combination::default() };
        Self::ours(Contender { label: name.clone(), name, multipath: false, policies, ..Contender::plain() })
    }

    /// Plain TCP as most hosts use it.
    pub fn reference() -> Self {
        Self::tcp(&Choice::new("cubic"))
    }

    /// Linux as the calibration models it.
    fn linux() -> Self {
        let policies = kernel_model::policies("cubic");
        let contender = Contender { name: LINUX.to_owned(), label: LINUX.to_owned(), policies, ..Contender::plain() };
        Self { contender, ends: Ends::Linux }
    }

    pub fn name(&self) -> &str {
        &self.contender.name
    }

    /// Unique identity within a sweep.
    pub fn identity(&self) -> String {
        format!("{} {:?}", self.fingerprint(), self.ends)
    }

    /// Everything that its runs depend on except the network.
    pub fn fingerprint(&self) -> String {
        let Contender { multipath, policies, defaults, connection, steered, oracle, .. } = &self.contender;
        let kind = if *multipath { "mptcp" } else { "tcp" };
        format!("{kind} {policies} {defaults:?} {connection:?} {steered:?} {oracle}")
    }
}

/// Entrants named by `--policy`, or all; `quick`: without those that differ from another one in two families.
pub fn choose(names: &[String], quick: bool) -> Result<Vec<Entrant>, Diagnostic> {
    if names.is_empty() {
        let two = |entrant: &Entrant| entrant.name().ends_with(WITH_CUBIC);
        return Ok(all().into_iter().filter(|entrant| !(quick && two(entrant))).collect());
    }
    let mut chosen: Vec<Entrant> = Vec::new();
    for text in names {
        let wrong = |message: String| Diagnostic::option(&format!("--policy {text}"), message);
        let entrant = one(text).map_err(wrong)?;
        if !entrant.contender.multipath || entrant.contender.route != Route::All {
            return Err(wrong("a sweep compares multipath policies, on all paths".to_owned()));
        }
        if chosen.iter().any(|known| known.name() == entrant.name()) {
            return Err(wrong(format!("'{}' is named twice", entrant.name())));
        }
        chosen.push(entrant);
    }
    Ok(chosen)
}

/// Default of the second design: the default on networks, its predecessor, plain MPTCP, and published congestion controls.
pub const OF_COMPETITION: [&str; 6] = [ON_NETWORKS, LAB_DEFAULT, "plain", "olia", "cubic", "bbr"];

/// An entrant by name.
pub fn one(text: &str) -> Result<Entrant, String> {
    if text.trim() == Entrant::reference().name() {
        return Ok(Entrant::reference());
    }
    if text.trim() == LINUX {
        return Ok(Entrant::linux());
    }
    // Members of different families may share a name; the table's names are unique.
    if let Some(known) = all().into_iter().find(|known| known.name() == text.trim()) {
        return Ok(known);
    }
    contender::from_option(text).map(Entrant::ours)
}

/// Named combinations and the default on networks; each scheduler with LIA, each congestion control with lowest_rtt, each
/// path manager with both; each scheduler with CUBIC, since LIA is slow on lossy paths with any scheduler; and Linux.
fn all() -> Vec<Entrant> {
    let ready = Contender::ready().into_iter().filter(|ready| ready.multipath && ready.route == Route::All);
    let on_networks = contender::from_option(ON_NETWORKS).expect("a default that can be read");
    let mut made: Vec<Entrant> = ready.chain([on_networks]).map(Entrant::ours).collect();
    for family in [Family::Scheduler, Family::Congestion, Family::PathManager] {
        for member in family.members() {
            let mut policies = Combination::default();
            if policies.choice(family).name == member {
                continue;
            }
            *policies.choice_mut(family) = Choice::new(member);
            let taken = made.iter().any(|known: &Entrant| known.name() == member);
            let name = if taken || member == LINUX { format!("{family}={member}") } else { member.to_owned() };
            made.push(Entrant::ours(Contender { label: name.clone(), name, policies, ..Contender::plain() }));
        }
    }
    for scheduler in Family::Scheduler.members() {
        let congestion = Choice::new("cubic");
        let policies = Combination { scheduler: Choice::new(scheduler), congestion, ..Combination::default() };
        if made.iter().any(|known| known.contender.policies == policies) {
            continue;
        }
        let name = format!("{scheduler}{WITH_CUBIC}");
        made.push(Entrant::ours(Contender { label: name.clone(), name, policies, ..Contender::plain() }));
    }
    made.push(Entrant::linux());
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_entrants_can_be_made_and_their_names_differ() {
        let all = all();
        for entrant in &all {
            contender::check(&entrant.contender.policies).unwrap();
            assert_eq!(one(entrant.name()).as_ref(), Ok(entrant));
        }
        let mut names: Vec<&str> = all.iter().map(Entrant::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert_eq!(Entrant::reference().name(), "tcp_cubic");
    }
    /// Runs of what differs only in that would be taken for each other.
    #[test]
    fn settings_of_the_connection_are_part_of_the_fingerprint() {
        let names = ["anabranch", "anabranch,connection.delayed_ack=0s", "anabranch,connection.delayed_ack=40ms"];
        let mut prints = names.map(|name| one(name).expect("a policy").fingerprint());
        prints.sort_unstable();
        assert!(prints.windows(2).all(|two| two[0] != two[1]), "{prints:?}");
    }
}
