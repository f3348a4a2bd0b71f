//! Words that the field has terms for, in comments and in identifiers.

use crate::source::Source;
use std::path::Path;
use syn::visit::Visit;

/// Phrases that no comment may contain, in lower case, with the terms to use.
const PHRASES: [(&str, &str); 15] = [
    ("stretch", "range, interval"),
    ("train", "segments under a shared mapping, burst"),
    ("doubt", "suspect, stale"),
    ("holder", "the subflow that sent it"),
    ("rescue", "duplicate, reinjection"),
    ("give up", "abandon, withdraw, close"),
    ("gives up", "abandons, withdraws, closes"),
    ("given up", "abandoned, withdrawn, closed"),
    ("gave up", "abandoned, withdrew, closed"),
    ("goes twice", "is duplicated"),
    ("go twice", "are duplicated"),
    ("sent twice", "duplicated, retransmitted"),
    ("held against", "compared with"),
    ("put aside", "suspended"),
    ("puts aside", "suspends"),
];

/// Parts of identifiers, between underscores or capitals, with the terms to use.
const PARTS: [(&str, &str); 9] = [
    ("stretch", "range, interval"),
    ("train", "shared mapping, burst"),
    ("doubt", "suspect, stale"),
    ("holder", "sender"),
    ("rescue", "duplicate, reinjection"),
    ("give", "assign, send, abandon"),
    ("gave", "assigned, sent, abandoned"),
    ("noted", "recorded"),
    ("twice", "duplicate"),
];

/// Complaints about the comments of a crate's `src`, and about its `identifiers`, without those that only tests compile.
pub fn unclear(name: &str, folder: &Path, source: &Source, identifiers: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in source.lines.keys() {
        let path = folder.join("src").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        complaints.extend(
            in_comments(&text).into_iter().map(|(line, complaint)| format!("{name}/{file}:{line}: {complaint}")),
        );
    }
    for module in source.modules.values().filter(|_| identifiers) {
        let mut names = Names(Vec::new());
        module.items.iter().for_each(|item| names.visit_item(item));
        complaints.extend(names.0.into_iter().map(|complaint| format!("{name}/{}: {complaint}", module.file)));
    }
    complaints.sort();
    complaints.dedup();
    complaints
}

/// The phrases in the comments of a text, which may be broken over two lines.
fn in_comments(text: &str) -> Vec<(usize, String)> {
    let mut complaints = Vec::new();
    let mut before = String::new();
    for (number, line) in text.lines().enumerate() {
        let comment = comment(line).to_lowercase();
        let both = format!("{before} {comment}");
        for (phrase, terms) in PHRASES {
            let ends_here = |at: usize| at + phrase.len() > before.len();
            let found = both.match_indices(phrase).any(|(at, _)| ends_here(at) && is_whole(&both, at, phrase.len()));
            if found {
                complaints.push((number + 1, format!("\"{phrase}\" in a comment: {terms}")));
            }
        }
        before = comment;
    }
    complaints
}

/// The text of a line's comment, if the line is one.
fn comment(line: &str) -> String {
    let line = line.trim_start();
    let text = line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
    text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a phrase stands by itself, perhaps with an s behind it.
fn is_whole(text: &str, at: usize, length: usize) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphabetic() || letter == '_');
    let behind = text[at + length..].strip_prefix('s').unwrap_or(&text[at + length..]);
    !is_letter(text[..at].chars().next_back()) && !is_letter(behind.chars().next())
}

struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, ident: &'ast proc_macro2::Ident) {
        let name = ident.to_string();
        if name.starts_with("note_") {
            self.0.push(format!("`{name}`: record_, on_"));
        }
        for (part, terms) in PARTS {
            if parts(&name).any(|own| own == part || own.strip_suffix('s') == Some(part)) {
                self.0.push(format!("`{name}`: {terms}"));
            }
        }
    }
}

/// The words that an identifier is made of, in lower case.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut apart = String::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            apart.push('_');
        }
        apart.extend(letter.to_lowercase());
        before = letter;
    }
    apart.split('_').map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[test]
fn a_phrase_over_two_lines_is_found_once_and_other_words_are_not_taken_for_it() {
    let text =
        "// What was given\n// up is lost.\nlet given = 1;\n/// A constraint, and a stretcher.\n//! Long trains.";
    let lines: Vec<usize> = in_comments(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [2, 5]);
}

#[test]
fn identifiers_are_split_at_underscores_and_capitals() {
    let all = |name| parts(name).collect::<Vec<_>>();
    assert_eq!(all("give_up_probe"), ["give", "up", "probe"]);
    assert_eq!(all("GiveUp"), ["give", "up"]);
    assert_eq!(all("MOST_TRAINS"), ["most", "trains"]);
}
