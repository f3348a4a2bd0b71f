//! Reads the contenders that a scenario compares.

use super::reader::{Item, Reader};
use super::tree::Value;
use crate::contender::{self, Contender, Route};
use crate::diagnostic::Diagnostic;
use anabranch_policy::combination::{Choice, Combination, Family};

/// Reads `[[policies]]`; without any it is plain multipath TCP alone.
pub fn policies(top: &Reader<'_>) -> Result<Vec<Contender>, Diagnostic> {
    let items = top.list("policies")?;
    let mut made: Vec<Contender> = Vec::new();
    for item in &items {
        let policy = policy(item)?;
        if made.iter().any(|known| known.name == policy.name) {
            return Err(item.error(format!("there are two policies with the name '{}'", policy.name)));
        }
        made.push(policy);
    }
    if made.is_empty() {
        made.push(Contender::plain());
    }
    Ok(made)
}

fn policy(item: &Item<'_>) -> Result<Contender, Diagnostic> {
    let own = ["name", "label", "multipath", "paths", "mesh", "oracle"];
    let keys: Vec<&str> = own.into_iter().chain(Family::ALL.iter().map(|family| family.name())).collect();
    let table = item.table("a policy", &keys)?;
    let name = table.required("name")?.text()?.to_owned();
    let mut made = Contender {
        label: table.text_or("label", &name)?,
        name,
        multipath: table.flag("multipath", true)?,
        mesh: super::mesh::routes(&table)?,
        oracle: table.flag("oracle", false)?,
        ..Contender::plain()
    };
    if let Some(paths) = table.get("paths") {
        made.route = route(&paths)?;
    }
    for family in Family::ALL {
        let Some(item) = table.get(family.name()) else { continue };
        // Checked alone, so that the message stands at the choice that is wrong.
        let mut alone = Combination::default();
        *alone.choice_mut(family) = choice(&item)?;
        contender::check(&alone).map_err(|message| item.error(message))?;
        *made.policies.choice_mut(family) = alone.choice(family).clone();
    }
    contender::check(&made.policies).map_err(|message| item.error(message))?;
    Ok(made)
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

/// `"lm3"` or `{ name = "lm3", rounding = "up" }`.
fn choice(item: &Item<'_>) -> Result<Choice, Diagnostic> {
    if !item.is_table() {
        return item.text().map(Choice::new);
    }
    let table = item.open("a choice")?;
    let mut choice = Choice::new(table.required("name")?.text()?);
    for (key, value) in table.items().filter(|(key, _)| *key != "name") {
        match &value.node.value {
            Value::Text(text) => choice.settings.set(key, text),
            Value::Integer(number) => choice.settings.set(key, number),
            Value::Real(number) => choice.settings.set(key, number),
            Value::Flag(flag) => choice.settings.set(key, flag),
            other => return Err(value.error(format!("a setting is a word or a number, not {}", other.kind()))),
        }
    }
    Ok(choice)
}
