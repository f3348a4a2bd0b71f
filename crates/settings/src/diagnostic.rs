//! Error messages for users: the error, its position, and a correction.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// An invalid argument; the program exits with code 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// `file:line:column`, or the option, or none if neither helps.
    place: Option<String>,
    message: String,
    /// Line number, line, first column and width to underline, both in characters from 0.
    excerpt: Option<(usize, String, usize, usize)>,
}

impl Diagnostic {
    /// A message without position.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), excerpt: None }
    }

    /// A message for a command line option, e.g. `--set paths.0.rate=fast`.
    pub fn option(option: &str, message: impl Into<String>) -> Self {
        Self { place: Some(option.to_owned()), message: message.into(), excerpt: None }
    }

    /// A message for the bytes `span` of `text` in `file`.
    pub fn in_text(file: &str, text: &str, span: &Range<usize>, message: impl Into<String>) -> Self {
        let start = span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_number = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let column = text.get(line_start..start).unwrap_or_default().chars().count();
        let spanned = text.get(start..span.end.min(text.len())).unwrap_or_default();
        let width = spanned.lines().next().unwrap_or_default().chars().count().max(1);
        Self {
            place: Some(format!("{file}:{line_number}:{}", column + 1)),
            message: message.into(),
            excerpt: Some((line_number, line.to_owned(), column, width)),
        }
    }

    /// A file that cannot be read or written.
    pub fn file(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        Self::plain(format!("cannot {doing} {}: {}", path.display(), reason(error)))
    }

    /// The same message about `--grid` if it is about one of the values that a grid sets.
    #[must_use]
    pub fn of_grid(mut self, grid: &[(String, String)]) -> Self {
        if let Some(option) = self.place.as_deref().and_then(|place| place.strip_prefix("--set "))
            && grid.iter().any(|(key, value)| option == format!("{key}={value}"))
        {
            self.place = Some(format!("--grid {option}"));
        }
        self
    }

    /// The message without its position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Message and position in one line.
    pub fn whole(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "error: {place}: {}", self.message)?,
            None => write!(f, "error: {}", self.message)?,
        }
        if let Some((number, line, column, width)) = &self.excerpt {
            let gutter = " ".repeat(number.to_string().len());
            let underline = "^".repeat((*width).min(line.chars().count().saturating_sub(*column)).max(1));
            write!(f, "\n{gutter} |\n{number} | {line}\n{gutter} | {}{underline}", " ".repeat(*column))?;
        }
        Ok(())
    }
}

/// `; did you mean 'x'?` if one of `known` is similar to `given`, else empty.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let given = given.to_lowercase();
    let limit = (given.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (edit_distance(&given, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map_or(String::new(), |(_, candidate)| format!("; did you mean '{candidate}'?"))
}

/// Text of an I/O error.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Minimum number of single-character insertions, deletions, replacements and transpositions.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_file_line_and_column_and_shows_the_line() {
        let text = "a = 1\nbb = \"x\"\n";
        let shown = Diagnostic::in_text("s.toml", text, &(11..14), "no").to_string();
        assert_eq!(shown, "error: s.toml:2:6: no\n  |\n2 | bb = \"x\"\n  |      ^^^");
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_nonsense_is_not() {
        assert_eq!(did_you_mean("lsos", ["olia", "loss", "lia"]), "; did you mean 'loss'?");
        assert_eq!(did_you_mean("lm2", ["lm3", "full_mesh"]), "; did you mean 'lm3'?");
        assert_eq!(did_you_mean("quantum", ["lm3", "full_mesh"]), "");
    }

    #[test]
    fn swapped_neighbours_count_as_one_slip() {
        assert_eq!(edit_distance("cuibc", "cubic"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
