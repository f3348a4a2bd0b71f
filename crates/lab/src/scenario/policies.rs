//! Parses the policies and baselines of a scenario.

use anabranch_policy::combination::{Choice, Family};
use anabranch_settings::baseline::{self, Baseline};
use anabranch_settings::choices::{choice, choices};
use anabranch_settings::connection::ConnectionSettings;
use anabranch_settings::contender::{
    Choices, DATAGRAM, Route, STEER, STEERED_END, Scheme, Steered, SteeredEnd, build_datagram,
};
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use anabranch_settings::reader::{Item, Reader};
use std::path::Path;

/// Parses `baselines`: names of embedded ones, or files relative to the scenario.
pub fn baselines(top: &Reader<'_>, directory: &Path) -> Result<Vec<Baseline>, Diagnostic> {
    let mut made: Vec<Baseline> = Vec::new();
    for item in &top.list("baselines")? {
        let found = baseline::find(item.text()?, directory).map_err(|error| item.error(error.message()))?;
        if made.iter().any(|known| known.name == found.name) {
            return Err(item.error(format!("the baseline '{}' is named twice", found.name)));
        }
        made.push(found);
    }
    Ok(made)
}

/// Parses `[defaults]`: policies of families that a scheme does not specify.
pub fn defaults(top: &Reader<'_>) -> Result<Choices, Diagnostic> {
    let names = Family::ALL.map(Family::name);
    top.get("defaults").map_or(Ok(Choices::default()), |item| choices(&item.table("the defaults", &names)?))
}

/// Parses `[[policies]]`; default: plain MPTCP alone.
pub fn schemes(top: &Reader<'_>, baselines: &[Baseline]) -> Result<Vec<Scheme>, Diagnostic> {
    let items = top.list("policies")?;
    let mut made: Vec<Scheme> = Vec::new();
    for item in &items {
        let scheme = scheme(item, baselines)?;
        if made.iter().any(|known| known.name == scheme.name) {
            return Err(item.error(format!("there are two policies with the name '{}'", scheme.name)));
        }
        made.push(scheme);
    }
    if made.is_empty() {
        let alone = Scheme { label: "plain MPTCP".to_owned(), ..Scheme::mptcp().called("plain") };
        made.push(if baselines.is_empty() { alone } else { Scheme::mptcp() });
    }
    Ok(made)
}

fn scheme(item: &Item<'_>, baselines: &[Baseline]) -> Result<Scheme, Diagnostic> {
    let own = [
        DATAGRAM,
        "name",
        "label",
        "multipath",
        "paths",
        "mesh",
        "oracle",
        STEER,
        STEERED_END,
        "connection",
        "baselines",
    ];
    let keys: Vec<&str> = own.into_iter().chain(Family::ALL.iter().map(|family| family.name())).collect();
    let table = item.table("a policy", &keys)?;
    let name_item = table.required("name")?;
    let name = name_item.text()?.to_owned();
    if name.contains('@') {
        return Err(
            name_item.error("a policy's name has no @: what stands behind one is the baseline that it is run under")
        );
    }
    let connection = table.get("connection").map(|item| ConnectionSettings::read(&item)).transpose()?;
    Ok(Scheme {
        label: table.text_or("label", &name)?,
        name,
        multipath: table.flag("multipath", true)?,
        route: table.get("paths").map_or(Ok(Route::All), |paths| route(&paths))?,
        mesh: super::mesh::routes(&table)?,
        oracle: table.flag("oracle", false)?,
        steered: steered(&table)?,
        choices: choices(&table)?,
        datagram: table.get(DATAGRAM).map(|item| datagram(&item)).transpose()?,
        connection: connection.unwrap_or_default(),
        baselines: table.get("baselines").map(|item| restriction(&item, baselines)).transpose()?,
    })
}

/// Parses the daemon that steers.
fn steered(table: &Reader<'_>) -> Result<Option<Steered>, Diagnostic> {
    let end = table.get(STEERED_END);
    let Some(item) = table.get(STEER) else {
        return end.map_or(Ok(None), |item| Err(item.error(format!("nothing steers: {STEERED_END} needs {STEER}"))));
    };
    let mut made = Steered::by(choice(&item)?).map_err(|message| item.error(message))?;
    if let Some(item) = end {
        let end = SteeredEnd::parse(item.text()?);
        made = end.and_then(|end| made.at(end)).map_err(|message| item.error(message))?;
    }
    Ok(Some(made))
}

/// Parses a datagram policy.
fn datagram(item: &Item<'_>) -> Result<Choice, Diagnostic> {
    let choice = choice(item)?;
    build_datagram(&choice).map_err(|message| item.error(message))?;
    Ok(choice)
}

/// The scenario's baselines under which a policy runs.
fn restriction(list: &Item<'_>, baselines: &[Baseline]) -> Result<Vec<String>, Diagnostic> {
    let known: Vec<&str> = baselines.iter().map(|baseline| baseline.name.as_str()).collect();
    let one = |item: &Item<'_>| {
        let name = item.text()?;
        if known.contains(&name) {
            return Ok(name.to_owned());
        }
        let hint = did_you_mean(name, known.iter().copied());
        Err(item.error(format!("'{name}' is not among the scenario's baselines ({}){hint}", known.join(", "))))
    };
    list.list()?.iter().map(one).collect()
}

fn route(item: &Item<'_>) -> Result<Route, Diagnostic> {
    if let Ok(word) = item.text() {
        return match word {
            "best" => Ok(Route::Best),
            "all" => Ok(Route::All),
            _ => Err(item.error("paths is \"all\", \"best\" or a list of names")),
        };
    }
    let names = item.texts()?;
    if names.is_empty() { Err(item.error("a policy needs at least one path")) } else { Ok(Route::Only(names)) }
}
