//! Parses a baseline: a file with policies, `[connection]`, and `[[reasons]]`.

use crate::baseline::{Baseline, Reason};
use crate::choices::choices;
use crate::connection::ConnectionSettings;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::reader::{Item, Reader, is_name};
use crate::tree::{self, Source};
use anabranch_policy::combination::Family;

/// Parses a baseline. Each value must have a reason, and each reason a value.
pub fn read(source: &Source) -> Result<Baseline, Diagnostic> {
    let root = tree::read(source)?;
    let own = ["name", "label", "summary", "connection", "reasons", "not_modelled"];
    let keys: Vec<&str> = own.into_iter().chain(Family::ALL.iter().map(|family| family.name())).collect();
    let top = Reader::new(source, &root, "the baseline", &keys)?;
    let name_item = top.required("name")?;
    let name = name_item.text()?.to_owned();
    if !is_name(&name) {
        return Err(name_item.error("a name is made of letters, digits, _ and -"));
    }
    let connection = top.get("connection").map(|item| ConnectionSettings::read(&item)).transpose()?;
    let made = Baseline {
        label: top.text_or("label", &name)?,
        name,
        summary: top.text_or("summary", "")?,
        choices: choices(&top)?,
        connection: connection.unwrap_or_default(),
        reasons: top.list("reasons")?.iter().map(reason).collect::<Result<_, _>>()?,
        not_modelled: top.get("not_modelled").map_or(Ok(Vec::new()), |item| item.texts())?,
    };
    check_reasons(&top, &made)?;
    Ok(made)
}

fn reason(item: &Item<'_>) -> Result<Reason, Diagnostic> {
    let table = item.table("a reason", &["of", "text", "source"])?;
    Ok(Reason {
        of: table.required("of")?.texts()?,
        text: table.required("text")?.text()?.to_owned(),
        source: table.required("source")?.text()?.to_owned(),
    })
}

fn check_reasons(top: &Reader<'_>, made: &Baseline) -> Result<(), Diagnostic> {
    let values: Vec<String> = made.values().into_iter().map(|(name, _)| name).collect();
    let reasoned: Vec<&String> = made.reasons.iter().flat_map(|reason| &reason.of).collect();
    if let Some(bare) = values.iter().find(|value| !reasoned.contains(value)) {
        return Err(top.error(format!("'{bare}' has no reason: add it to 'of' in one of [[reasons]]")));
    }
    if let Some(stray) = reasoned.into_iter().find(|name| !values.contains(name)) {
        let hint = did_you_mean(stray, values.iter().map(String::as_str));
        return Err(top.error(format!("there is a reason for '{stray}', which the baseline does not say{hint}")));
    }
    Ok(())
}
