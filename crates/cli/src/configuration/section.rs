//! A command's table in the configuration file, converted to command line arguments.

use super::file::File;
use super::option::{OPTION, exclude};
use super::uplinks::{self, Said};
use anabranch_settings::diagnostic::{Diagnostic, did_you_mean};
use anabranch_settings::tree::{Entry, Node, Origin, Value};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, ValueHint};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

/// Options that make sense only for a single run.
const ONLY_ON_THE_COMMAND_LINE: [&str; 7] = [OPTION, "check", "down", "dry-run", "help", "live", "show"];

/// Lists of what is allowed, without which all is: an empty one says the opposite of what it does.
const NEVER_EMPTY: [&str; 1] = ["allow"];

/// Whether an option is allowed in the file.
pub(super) fn may_stand_in_a_file(option: &str) -> bool {
    !ONLY_ON_THE_COMMAND_LINE.contains(&option)
}

/// A key with the arguments it stands for.
struct Setting {
    argument: Arg,
    origin: Origin,
    words: Vec<OsString>,
}

/// A command's table.
pub struct Section {
    /// Position of its start.
    origin: Origin,
    settings: Vec<Setting>,
}

impl Section {
    /// The table of a command, if any. Each key and value is validated on its own.
    ///
    /// # Errors
    /// The first invalid key or value, with its position.
    pub fn of(file: &File, command: &Command) -> Result<Option<Self>, Diagnostic> {
        let Some(table) = file.tables.iter().find(|table| table.key == command.get_name()) else { return Ok(None) };
        let Value::Table(entries) = &table.node.value else {
            return Err(file.error(&table.origin, format!("[{}] must be a table", table.key)));
        };
        let mut settings: Vec<Setting> =
            entries.iter().map(|entry| setting(file, command, entry)).collect::<Result<_, _>>()?;
        add_uplinks(file, command, &mut settings)?;
        Ok(Some(Self { origin: table.origin.clone(), settings }))
    }

    /// Arguments of the options for which `wanted` is true.
    pub fn words_where(&self, wanted: impl Fn(&Arg) -> bool) -> impl Iterator<Item = OsString> {
        let settings = self.settings.iter().filter(move |setting| wanted(&setting.argument));
        settings.flat_map(|setting| setting.words.clone())
    }

    /// Arguments of each key.
    pub fn by_key(&self) -> BTreeMap<String, Vec<OsString>> {
        let settings = self.settings.iter();
        settings.map(|setting| (key(&setting.argument).to_owned(), setting.words.clone())).collect()
    }

    #[cfg(test)]
    pub fn has(&self, option: &str) -> bool {
        self.settings.iter().any(|setting| key(&setting.argument) == option)
    }

    /// # Errors
    /// Rejects the first key that conflicts with an earlier one.
    pub fn check_contradictions(&self, file: &File, command: &Command) -> Result<(), Diagnostic> {
        let said: Vec<&Setting> = self.settings.iter().filter(|setting| !setting.words.is_empty()).collect();
        for (at, setting) in said.iter().enumerate() {
            let others = said.iter().take(at);
            if let Some(other) = others.into_iter().find(|other| exclude(command, &setting.argument, &other.argument)) {
                let (key, other) = (key(&setting.argument), key(&other.argument));
                return Err(file.error(&setting.origin, format!("'{key}' cannot be used with '{other}'")));
            }
        }
        Ok(())
    }

    /// # Errors
    /// The table lacks a required option.
    pub fn check_completeness(&self, file: &File, command: &Command) -> Result<clap::ArgMatches, Diagnostic> {
        self.check_contradictions(file, command)?;
        let words = self.words_where(|_| true);
        let matches = command.clone().no_binary_name(true).try_get_matches_from(words);
        matches.map_err(|error| file.error(&self.origin, message_of(&error, command.get_name())))
    }
}

/// One line for what a command's table lacks, or what else is wrong with it as a whole.
pub(super) fn message_of(error: &clap::Error, command: &str) -> String {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().map(|option| bare(option)).collect(),
        _ => Vec::new(),
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument if !missing.is_empty() => {
            format!("[{command}] also needs {}", missing.join(", "))
        }
        _ => first_line(error),
    }
}

/// Name of an option as a key.
fn key(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(argument.get_id().as_str())
}

/// `key` of `--key <VALUE>`.
fn bare(option: &str) -> String {
    let options = option.trim_matches(['<', '>']).split('|');
    let names = options.map(|option| option.trim_start_matches('-').split(' ').next().unwrap_or_default());
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" or ")
}

/// Adds settings from the tables `[[uplink]]`.
fn add_uplinks(file: &File, command: &Command, settings: &mut Vec<Setting>) -> Result<(), Diagnostic> {
    for Said { option, words } in uplinks::read(file)? {
        // `serve` has no quotas.
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(option));
        let Some((argument, (_, origin))) = argument.zip(words.first()) else { continue };
        if let Some(other) = settings.iter().find(|setting| key(&setting.argument) == option) {
            let message = format!("'{option}' in [{}] cannot be used with tables [[uplink]]", command.get_name());
            return Err(file.error(&other.origin, message));
        }
        for (word, origin) in &words {
            let read = command.clone().no_binary_name(true).try_get_matches_from([word]);
            if let Some(message) = read.err().and_then(|error| fault(&error, argument)) {
                return Err(file.error(origin, message));
            }
        }
        let (argument, origin) = (argument.clone(), origin.clone());
        settings.push(Setting { argument, origin, words: words.into_iter().map(|(word, _)| word).collect() });
    }
    Ok(())
}

fn setting(file: &File, command: &Command, entry: &Entry) -> Result<Setting, Diagnostic> {
    let known = || command.get_arguments().filter_map(Arg::get_long);
    let wrong = |message: String| Err(file.error(&entry.origin, message));
    if !may_stand_in_a_file(&entry.key) {
        return wrong(format!("'{}' belongs on the command line, not into a file", entry.key));
    }
    let Some(argument) = command.get_arguments().find(|argument| argument.get_long() == Some(&entry.key)) else {
        let possible = known().filter(|known| may_stand_in_a_file(known));
        let hint = did_you_mean(&entry.key, possible);
        let hint = if hint.is_empty() { format!("; see anabranch {} --help", command.get_name()) } else { hint };
        return wrong(format!("unknown key '{}' in [{}]{hint}", entry.key, command.get_name()));
    };
    let mut words = Vec::new();
    for node in values(file, argument, &entry.node)? {
        let Some(word) = word(file, argument, node)? else { continue };
        let read = command.clone().no_binary_name(true).try_get_matches_from([&word]);
        if let Some(message) = read.err().and_then(|error| fault(&error, argument)) {
            return Err(file.error(&node.origin, message));
        }
        words.push(word);
    }
    Ok(Setting { argument: argument.clone(), origin: entry.origin.clone(), words })
}

/// Values of a key: a list if the option can be repeated, else one.
fn values<'a>(file: &File, argument: &Arg, node: &'a Node) -> Result<Vec<&'a Node>, Diagnostic> {
    match (&node.value, argument.get_action()) {
        (Value::List(items), _) if items.is_empty() && NEVER_EMPTY.contains(&key(argument)) => {
            let message = format!(
                "'{0}' is an empty list, and without '{0}' everything is allowed: leave it out, or name something",
                key(argument)
            );
            Err(file.error(&node.origin, message))
        }
        (Value::List(items), ArgAction::Append) => Ok(items.iter().collect()),
        (Value::List(_), _) => Err(file.error(&node.origin, format!("'{}' has one value, not a list", key(argument)))),
        _ => Ok(vec![node]),
    }
}

/// A value as an argument; none if it turns the option off.
fn word(file: &File, argument: &Arg, node: &Node) -> Result<Option<OsString>, Diagnostic> {
    let (key, takes_values) = (key(argument), argument.get_action().takes_values());
    let may_be_bare = !takes_values || argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    let text = match &node.value {
        Value::Flag(on) if may_be_bare => return Ok(on.then(|| format!("--{key}").into())),
        _ if !takes_values => {
            let message = format!("true or false is expected here, not {}", node.value.kind());
            return Err(file.error(&node.origin, message));
        }
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        other => {
            return Err(
                file.error(&node.origin, format!("a string or a number is expected here, not {}", other.kind()))
            );
        }
    };
    let mut word = OsString::from(format!("--{key}="));
    match argument.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath => {
            word.push(file.directory.join(Path::new(&text)));
        }
        _ => word.push(text),
    }
    Ok(Some(word))
}

/// The error of a value. Missing and conflicting options are reported once all are known.
fn fault(error: &clap::Error, argument: &Arg) -> Option<String> {
    match error.kind() {
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict => None,
        _ => Some(match (error.source(), error.get(ContextKind::InvalidValue)) {
            (Some(reason), Some(ContextValue::String(value))) => {
                format!("'{value}' is not possible for '{}': {reason}", key(argument))
            }
            _ => first_line(error),
        }),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
