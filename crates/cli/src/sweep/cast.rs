//! Participants of a sweep: the policies, and plain TCP, with which they are compared.

use crate::calibrate::kernel_model;
use crate::contender::{self, Contender, ON_NETWORKS, RECOMMENDED, Route};
use crate::diagnostic::Diagnostic;
use anabranch_policy::combination::{Choice, Combination, Family};

/// How the ends of a connection are set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ends {
    /// As ours are.
    Ours,
    /// As the kernel's are.
    Linux,
}

/// Who takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entrant {
    /// Policies and name.
    pub contender: Contender,
    /// Settings beside the policies.
    pub ends: Ends,
}

/// The kernel's model, see [`kernel_model`].
const LINUX: &str = "linux";

/// Behind the name of a scheduler: with this in place of LIA.
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

    /// What the hosts at both ends of most connections have.
    pub fn reference() -> Self {
        Self::tcp(&Choice::new("cubic"))
    }

    /// Linux as the calibration models it.
    fn linux() -> Self {
        let policies = kernel_model::policies("cubic");
        let contender = Contender { name: LINUX.to_owned(), label: LINUX.to_owned(), policies, ..Contender::plain() };
        Self { contender, ends: Ends::Linux }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.contender.name
    }

    /// What tells it from the others of a sweep.
    pub fn identity(&self) -> String {
        format!("{} {:?}", self.fingerprint(), self.ends)
    }

    /// All that its runs depend on beside the network.
    pub fn fingerprint(&self) -> String {
        let kind = if self.contender.multipath { "mptcp" } else { "tcp" };
        format!("{kind} {}", self.contender.policies)
    }
}

/// Those that `--policy` names, or all that there are; `quick`: without those that differ from another one in two families.
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

/// Those of the second design, if none are named: what networks get, what it replaced, and what others have.
pub const OF_COMPETITION: [&str; 6] = [ON_NETWORKS, RECOMMENDED, "plain", "olia", "cubic", "bbr"];

/// One by its name.
pub fn one(text: &str) -> Result<Entrant, String> {
    if text.trim() == LINUX {
        return Ok(Entrant::linux());
    }
    // So that the members of all families, which may share a name, can be named as in the table.
    if let Some(known) = all().into_iter().find(|known| known.name() == text.trim()) {
        return Ok(known);
    }
    contender::from_option(text).map(Entrant::ours)
}

/// The combinations that have a name of their own; each scheduler with LIA, each congestion control with lowest_rtt, each path
/// manager with both; each scheduler with CUBIC, since LIA holds back on lossy paths whatever the scheduler does; and Linux.
fn all() -> Vec<Entrant> {
    let ready = Contender::ready().into_iter().filter(|ready| ready.multipath && ready.route == Route::All);
    let mut made: Vec<Entrant> = ready.map(Entrant::ours).collect();
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
}
