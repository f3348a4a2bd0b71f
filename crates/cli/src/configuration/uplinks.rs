//! The tables `[[uplink]]`, shared by all commands: each table stands for several options for one interface.

use super::file::File;
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use anabranch_settings::tree::{Entry, Node, Origin, Value};
use std::ffi::OsString;

/// Name of the tables.
pub const TABLES: &str = "uplink";

/// Keys of a table.
const KEYS: [&str; 3] = ["interface", "role", "quota"];

/// Roles of an uplink.
const ROLES: [&str; 3] = ["primary", "backup", "metered"];

/// Values of one option from all tables.
pub struct Said {
    /// Name of the option.
    pub option: &'static str,
    /// Arguments with their positions.
    pub words: Vec<(OsString, Origin)>,
}

/// Values by option; empty without tables.
///
/// # Errors
/// The first error.
pub fn read(file: &File) -> Result<Vec<Said>, Diagnostic> {
    let Some(entry) = file.tables.iter().find(|table| table.key == TABLES) else { return Ok(Vec::new()) };
    let Value::List(tables) = &entry.node.value else {
        return Err(file.error(&entry.origin, "each uplink has a table of its own: [[uplink]]"));
    };
    let mut said = ["uplink", "backup", "metered", "quota"].map(|option| Said { option, words: Vec::new() });
    let mut names: Vec<String> = Vec::new();
    for table in tables {
        let uplink = Uplink::read(file, table)?;
        if names.contains(&uplink.interface) {
            return Err(file.error(&table.origin, format!("there are two tables for {}", uplink.interface)));
        }
        names.push(uplink.interface.clone());
        for said in &mut said {
            let word = uplink.word(said.option).map(|word| (OsString::from(word), table.origin.clone()));
            said.words.extend(word);
        }
    }
    Ok(said.into_iter().filter(|said| !said.words.is_empty()).collect())
}

struct Uplink {
    interface: String,
    role: String,
    quota: Option<String>,
}

impl Uplink {
    fn read(file: &File, table: &Node) -> Result<Self, Diagnostic> {
        let Value::Table(entries) = &table.value else {
            return Err(file.error(&table.origin, "each uplink has a table of its own: [[uplink]]"));
        };
        if let Some(unknown) = entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
            let hint = did_you_mean(&unknown.key, KEYS);
            let message = format!("unknown key '{}' in [[uplink]]; known are {}{hint}", unknown.key, KEYS.join(", "));
            return Err(file.error(&unknown.origin, message));
        }
        let text =
            |key: &str| match entries.iter().find(|entry| entry.key == key) {
                Some(Entry { node: Node { value: Value::Text(text), .. }, .. }) => Ok(Some(text.clone())),
                Some(entry) => Err(file
                    .error(&entry.node.origin, format!("a string is expected here, not {}", entry.node.value.kind()))),
                None => Ok(None),
            };
        let at = |key: &str| {
            let entry = entries.iter().find(|entry| entry.key == key);
            entry.map_or_else(|| table.origin.clone(), |entry| entry.node.origin.clone())
        };
        let Some(interface) = text("interface")? else {
            return Err(file.error(&table.origin, "[[uplink]] needs 'interface', the interface's name"));
        };
        let role = text("role")?.unwrap_or_else(|| ROLES[0].to_owned());
        if !ROLES.contains(&role.as_str()) {
            let hint = did_you_mean(&role, ROLES);
            let message = format!("'{role}' is no role; there are {}{hint}", ROLES.join(", "));
            return Err(file.error(&at("role"), message));
        }
        let quota = text("quota")?;
        if quota.is_some() && role != "metered" {
            return Err(file.error(&at("quota"), "only an uplink with role = \"metered\" has a quota"));
        }
        Ok(Self { interface, role, quota })
    }

    /// Argument of an option for this uplink.
    fn word(&self, option: &str) -> Option<String> {
        let name = &self.interface;
        match option {
            "quota" => self.quota.as_ref().map(|quota| format!("--quota={name}={quota}")),
            "uplink" => Some(format!("--uplink={name}")),
            role => (self.role == role).then(|| format!("--{role}={name}")),
        }
    }
}
