//! Parses `--policy`: a name, or a list of changes, optionally starting with a name.

use super::check::{check, explain};
use super::choices::Choices;
use super::datagram::{build_datagram, change, datagram_default, datagram_members, is_datagram_policy};
use super::model::{Contender, Route};
use super::scheme::{Scheme, contenders};
use super::steered;
use crate::baseline::{self, BASELINES, Baseline};
use crate::diagnostic::did_you_mean;
use crate::setting_file;
use anabranch_policy::combination::{Choice, Combination, Family, is_setting};
use std::collections::BTreeSet;
use std::path::Path;

/// Definitions that names may refer to, besides the built-in ones.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The scenario's policies.
    pub schemes: &'a [Scheme],
    /// The scenario's defaults.
    pub defaults: &'a Choices,
    /// Baselines to run under.
    pub baselines: &'a [Baseline],
}

/// The meaning of a name.
struct Meant {
    scheme: Scheme,
    /// Its own baseline, instead of the given ones.
    own: Option<Baseline>,
    /// The name is that of the baseline alone.
    bare: bool,
}

impl Meant {
    fn scheme(scheme: Scheme) -> Self {
        Self { scheme, own: None, bare: false }
    }

    fn contenders(&self, around: &Surroundings<'_>) -> Vec<Contender> {
        let Some(baseline) = &self.own else {
            return contenders(std::slice::from_ref(&self.scheme), around.baselines, around.defaults);
        };
        let mut made = self.scheme.under(Some(baseline), around.defaults);
        if self.bare {
            made.name = self.scheme.name.clone();
            made.label = self.scheme.label.clone();
            made.scheme = Scheme::mptcp().name;
        }
        vec![made]
    }
}

/// Parses one `--policy`: the name of a policy of the scenario, of a baseline, of a built-in one (`anabranch`,
/// `plain_tcp`, `recpr`) or of a member of any family, optionally with a baseline (`lm3@linux`); or a list such as
/// `congestion=olia,path_manager=lm3,path_manager.rounding=up,connection.min_rto=1s`, which may start with such a name.
/// It runs under each given baseline unless it names one.
pub fn all_from_option(text: &str, around: &Surroundings<'_>) -> Result<Vec<Contender>, String> {
    let text = text.trim();
    let mut made =
        if text.contains('=') { from_list(text, around)? } else { from_name(text, around)?.contenders(around) };
    if made.is_empty() {
        return Err(format!("'{text}' is not run under any of the baselines asked for"));
    }
    for contender in &mut made {
        for family in Family::ALL {
            setting_file::read(&mut contender.policies.choice_mut(family).settings, Path::new(""))?;
        }
        check(&contender.policies)?;
        build_datagram(&contender.datagram)?;
    }
    Ok(made)
}

/// The same without a scenario.
pub fn from_option(text: &str) -> Result<Contender, String> {
    let around = Surroundings { schemes: &[], defaults: &Choices::default(), baselines: &[] };
    let made = all_from_option(text, &around)?.remove(0);
    if made.datagram != datagram_default() {
        return Err("no datagrams are carried here: what has a datagram policy are scenarios with [[datagrams]], and `serve` by --datagram-policy".to_owned());
    }
    Ok(made)
}

/// Schemes with a name of their own: our own combination and plain TCP, which are independent of baselines; plain
/// MPTCP; those of the recPR paper and its competitors; and our interpretations of published schemes.
fn ready() -> Vec<Scheme> {
    let alone = |made: &Contender, families: &[Family]| Scheme {
        name: made.name.clone(),
        label: made.label.clone(),
        multipath: made.multipath,
        route: made.route.clone(),
        choices: Choices::of(&made.policies, families),
        baselines: Some(Vec::new()),
        ..Scheme::mptcp()
    };
    let mut made = vec![
        alone(&Contender::anabranch(), &Family::ALL),
        alone(&Contender::plain_tcp(), &[Family::Congestion]),
        Scheme::mptcp(),
    ];
    for (name, words) in Combination::NAMED.iter().chain(Combination::READINGS) {
        let Some(combination) = Combination::named(name) else { continue };
        let said = |family: &Family| words.split(',').any(|word| word.starts_with(family.name()));
        let families: Vec<Family> = Family::ALL.into_iter().filter(said).collect();
        let choices = Choices::of(&combination, &families);
        made.push(Scheme { choices, ..Scheme::mptcp().called(name) });
    }
    made
}

fn from_name(name: &str, around: &Surroundings<'_>) -> Result<Meant, String> {
    if let Some((scheme, baseline)) = name.split_once('@') {
        let meant = from_name(scheme, around)?;
        if meant.own.is_some() {
            return Err(format!("'{scheme}' is a baseline itself, and cannot be run under '{baseline}'"));
        }
        return Ok(Meant { own: Some(find_baseline(baseline, around)?), ..meant });
    }
    if let Some(found) = around.schemes.iter().find(|known| known.name == name) {
        return Ok(Meant::scheme(found.clone()));
    }
    let known = around.baselines.iter().find(|known| known.name == name).cloned();
    if let Some(own) = known.or_else(|| baseline::embedded(name)) {
        let scheme = Scheme { label: format!("{} MPTCP", own.label), ..Scheme::mptcp().called(name) };
        return Ok(Meant { scheme, own: Some(own), bare: true });
    }
    if let Some(found) = ready().into_iter().find(|known| known.name == name) {
        return Ok(Meant::scheme(found));
    }
    for family in Family::ALL {
        if family.members().contains(&name) {
            let mut scheme = Scheme::mptcp().called(name);
            scheme.choices.choose(family, Choice::new(name));
            return Ok(Meant::scheme(scheme));
        }
    }
    if is_datagram_policy(name) {
        return Ok(Meant::scheme(Scheme { datagram: Some(Choice::new(name)), ..Scheme::mptcp().called(name) }));
    }
    let hint = unknown(name, around);
    Err(format!("unknown policy '{name}'{hint}"))
}

fn find_baseline(name: &str, around: &Surroundings<'_>) -> Result<Baseline, String> {
    let known = around.baselines.iter().find(|known| known.name == name).cloned();
    known.map_or_else(|| baseline::find(name, Path::new("")).map_err(|error| error.message().to_owned()), Ok)
}

/// Error for an unknown name, with suggestions.
fn unknown(name: &str, around: &Surroundings<'_>) -> String {
    let mut known: Vec<String> = Vec::new();
    let schemes = around.schemes.iter().map(|known| known.name.clone());
    let baselines = around.baselines.iter().map(|known| known.name.clone());
    let embedded = BASELINES.iter().map(|(name, _)| (*name).to_owned());
    let members = Family::ALL.into_iter().flat_map(Family::members);
    let members =
        members.chain(datagram_members().iter().map(|member| member.name)).map(str::to_owned).collect::<Vec<_>>();
    let ready = ready().into_iter().map(|known| known.name);
    for name in schemes.chain(baselines).chain(embedded).chain(ready).chain(members) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    if hint.is_empty() { format!("; known are {}", known.join(", ")) } else { hint }
}

/// Applies a part of a list that changes what is beside the combination. Returns whether it is one.
fn change_beside(scheme: &mut Scheme, part: &str) -> Result<bool, String> {
    let Some((key, value)) = part.split_once('=') else { return Ok(false) };
    if change(&mut scheme.datagram, key, value).is_some() {
        return Ok(true);
    }
    steered::change(&mut scheme.steered, key, value).map_or(Ok(false), |changed| changed.map(|()| true))
}

/// # Errors
/// A key is given twice.
fn check_keys(text: &str) -> Result<(), String> {
    let mut given = BTreeSet::new();
    let mut keys = text.split(',').filter_map(|part| Some(part.split_once('=')?.0.trim()));
    keys.find(|key| !given.insert(*key)).map_or(Ok(()), |key| Err(format!("'{key}' is given twice in '{text}'")))
}

/// The parts in the order in which they are applied: a member has its own defaults, so settings written before it would be
/// lost; which end is steered is checked with the settings of the daemon.
fn members_first<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut parts: Vec<&str> = parts.collect();
    parts.sort_by_key(|part| {
        let key = part.split('=').next().unwrap_or_default().trim();
        (key == steered::STEERED_END, is_setting(part))
    });
    parts
}

fn from_list(text: &str, around: &Surroundings<'_>) -> Result<Vec<Contender>, String> {
    check_keys(text)?;
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).peekable();
    // The base may be named first.
    let from = parts.next_if(|part| !part.contains('='));
    let mut meant = from.map_or_else(|| Ok(Meant::scheme(Scheme::mptcp())), |base| from_name(base, around))?;
    let (mut name, mut label) = (text.replace(',', "+"), text.replace(',', ", "));
    let (own, scheme) = (meant.own.is_some(), &mut meant.scheme);
    let mut words = Vec::new();
    for part in members_first(parts) {
        match part.split_once('=') {
            Some(("name", value)) => (name, label) = (value.to_owned(), value.to_owned()),
            Some(("multipath", value)) => {
                scheme.multipath = value.parse().map_err(|_| "multipath is true or false".to_owned())?;
            }
            Some(("paths", "best")) => scheme.route = Route::Best,
            Some(("paths", "all")) => scheme.route = Route::All,
            Some(("paths", value)) => scheme.route = Route::Only(value.split('+').map(str::to_owned).collect()),
            Some((key, value)) if key.starts_with("connection.") => {
                scheme.connection.set(key.trim_start_matches("connection."), value)?;
            }
            _ if change_beside(scheme, part)? => {}
            _ => words.push(part),
        }
    }
    (scheme.name, scheme.label) = (name.clone(), label.clone());
    let mut made = meant.contenders(around);
    for contender in &mut made {
        // A policy that names its baseline is labelled as written.
        if own {
            (contender.name, contender.label, contender.scheme) = (name.clone(), label.clone(), name.clone());
        }
        for word in &words {
            contender.policies.apply(word).map_err(|error| explain(&contender.policies, &error))?;
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests;
