//! A scenario as written: TOML values with source positions, with `--set` options applied.

use crate::diagnostic::{Diagnostic, did_you_mean};
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Position of a value in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Byte range of the file.
    File(Range<usize>),
    /// Index of the `--set` option.
    Option(usize),
}

/// Text of a scenario, for error messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Name of the file as the user wrote it.
    pub file: String,
    pub text: String,
    /// The `--set` options, `key=value` each.
    pub options: Vec<String>,
}

impl Source {
    pub fn open(path: &Path, options: &[String]) -> Result<Self, Diagnostic> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Diagnostic::file(path, "read the scenario", &error))?;
        Ok(Self { file: path.display().to_string(), text, options: options.to_vec() })
    }

    /// A scenario that is embedded in the program.
    pub fn embedded(name: &str, text: &str, options: &[String]) -> Self {
        Self { file: name.to_owned(), text: text.to_owned(), options: options.to_vec() }
    }

    /// Directory of the file, to which names of files in it are relative.
    pub fn directory(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }

    /// An error message for `origin`.
    pub fn error(&self, origin: &Origin, message: impl Into<String>) -> Diagnostic {
        match origin {
            Origin::File(span) => Diagnostic::in_text(&self.file, &self.text, span, message),
            Origin::Option(at) => {
                let option = self.options.get(*at).map_or("", String::as_str);
                Diagnostic::option(&format!("--set {option}"), message)
            }
        }
    }
}

/// A value with its position.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub origin: Origin,
}

/// A TOML value. Dates are not supported.
#[derive(Clone, Debug)]
pub enum Value {
    Text(String),
    Integer(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    /// Position of the key.
    pub origin: Origin,
    pub node: Node,
}

impl Value {
    /// Name of the type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Parses `source.text` and applies `source.options`.
pub fn read(source: &Source) -> Result<Node, Diagnostic> {
    let parsed = DeTable::parse(&source.text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        source.error(&Origin::File(span), format!("this is not TOML: {}", error.message()))
    })?;
    let span = parsed.span();
    let mut root = Node { value: table(source, parsed.into_inner())?, origin: Origin::File(span) };
    for (at, option) in source.options.iter().enumerate() {
        lay_over(source, &mut root, at, option)?;
    }
    Ok(root)
}

fn table(source: &Source, parsed: DeTable<'_>) -> Result<Value, Diagnostic> {
    let mut entries = Vec::with_capacity(parsed.len());
    for (key, value) in parsed {
        let origin = Origin::File(key.span());
        let span = value.span();
        let node = node(source, span, value.into_inner())?;
        entries.push(Entry { key: key.into_inner().into_owned(), origin, node });
    }
    Ok(Value::Table(entries))
}

fn node(source: &Source, span: Range<usize>, parsed: DeValue<'_>) -> Result<Node, Diagnostic> {
    let origin = Origin::File(span);
    let value = match parsed {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| source.error(&origin, "this integer is too large"))?,
        ),
        DeValue::Float(number) => {
            Value::Real(number.as_str().parse().map_err(|_| source.error(&origin, "this number cannot be understood"))?)
        }
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => return Err(source.error(&origin, "a date has no meaning in a scenario")),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| {
                    let span = item.span();
                    node(source, span, item.into_inner())
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => table(source, inner)?,
    };
    Ok(Node { value, origin })
}

/// Matches all elements of a list in a key.
const EACH: &str = "*";

/// Applies one `key=value` to the tree. The key is a dotted path; a list element is selected by its index or its
/// `name`, or by `*` for all. The value is TOML, else a string.
fn lay_over(source: &Source, root: &mut Node, at: usize, option: &str) -> Result<(), Diagnostic> {
    let origin = Origin::Option(at);
    let Some((path, text)) = option.split_once('=') else {
        return Err(source.error(&origin, "expected key=value, e.g. --set connection.receive_buffer=\"256 kB\""));
    };
    let value = option_value(&origin, text.trim());
    let steps: Vec<&str> = path.trim().split('.').collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err(source.error(&origin, "the key has an empty part"));
    }
    place(source, root, &origin, &steps, &value)
}

/// Sets `value` at the path `steps` below `here`.
fn place(source: &Source, here: &mut Node, origin: &Origin, steps: &[&str], value: &Value) -> Result<(), Diagnostic> {
    let Some((step, rest)) = steps.split_first() else {
        *here = Node { value: value.clone(), origin: origin.clone() };
        return Ok(());
    };
    match &mut here.value {
        Value::List(items) if *step == EACH => {
            items.iter_mut().try_for_each(|item| place(source, item, origin, rest, value))
        }
        _ => place(source, descend(source, here, origin, step)?, origin, rest, value),
    }
}

/// Parses the value of a command line option as TOML, else as a string.
pub fn option_value(origin: &Origin, text: &str) -> Value {
    // Parsed as a one-line document; if TOML refuses it, it is a bare word or a quantity.
    let document = format!("v = {text}");
    let quiet = Source { file: String::new(), text: document, options: Vec::new() };
    let parsed = if text.contains('\n') { None } else { read(&quiet).ok() };
    match parsed.map(|root| root.value) {
        Some(Value::Table(mut entries)) if entries.len() == 1 => {
            let mut node = entries.remove(0).node;
            relabel(&mut node, origin);
            node.value
        }
        _ => Value::Text(text.to_owned()),
    }
}

fn relabel(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| relabel(item, origin)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| {
            entry.origin = origin.clone();
            relabel(&mut entry.node, origin);
        }),
        _ => {}
    }
}

fn descend<'a>(source: &Source, here: &'a mut Node, origin: &Origin, step: &str) -> Result<&'a mut Node, Diagnostic> {
    match &mut here.value {
        Value::Table(entries) => {
            let found = entries.iter().position(|entry| entry.key == step);
            let at = found.unwrap_or_else(|| {
                let node = Node { value: Value::Table(Vec::new()), origin: origin.clone() };
                entries.push(Entry { key: step.to_owned(), origin: origin.clone(), node });
                entries.len() - 1
            });
            Ok(&mut entries[at].node)
        }
        Value::List(items) => {
            let names: Vec<String> = items.iter().map(|item| name_of(item).unwrap_or_default().to_owned()).collect();
            let by_name = names.iter().position(|name| name == step);
            let at = by_name.or_else(|| step.parse::<usize>().ok().filter(|at| *at < items.len()));
            let Some(at) = at else {
                let hint = did_you_mean(step, names.iter().map(String::as_str));
                let known = names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>().join(", ");
                let count = items.len();
                let message = if known.is_empty() {
                    format!("'{step}' is no number below {count}, and no element of the list has a name")
                } else {
                    format!("'{step}' is neither a number below {count} nor one of {known}{hint}")
                };
                return Err(source.error(origin, message));
            };
            Ok(&mut items[at])
        }
        other => Err(source.error(origin, format!("'{step}' is looked for in {}, which has no parts", other.kind()))),
    }
}

fn name_of(node: &Node) -> Option<&str> {
    let Value::Table(entries) = &node.value else { return None };
    entries.iter().find_map(|entry| match &entry.node.value {
        Value::Text(text) if entry.key == "name" => Some(text.as_str()),
        _ => None,
    })
}
