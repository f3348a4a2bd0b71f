//! Parses policies by family.

use crate::contender::{self, Choices};
use crate::diagnostic::Diagnostic;
use crate::reader::{Item, Reader};
use crate::setting_file;
use crate::tree::Value;
use anabranch_policy::combination::{Choice, Combination, Family};

/// The policies that a table specifies.
pub fn choices(table: &Reader<'_>) -> Result<Choices, Diagnostic> {
    let mut made = Choices::default();
    for family in Family::ALL {
        let Some(item) = table.get(family.name()) else { continue };
        // Checked alone, so that the error refers to the invalid choice.
        let mut alone = Combination::default();
        *alone.choice_mut(family) = choice(&item)?;
        contender::check(&alone).map_err(|message| item.error(message))?;
        made.choose(family, alone.choice(family).clone());
    }
    Ok(made)
}

/// `"lm3"` or `{ name = "lm3", rounding = "up" }`.
pub fn choice(item: &Item<'_>) -> Result<Choice, Diagnostic> {
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
    setting_file::read(&mut choice.settings, item.directory()).map_err(|message| item.error(message))?;
    Ok(choice)
}
