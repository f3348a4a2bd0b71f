//! Parameters with several values, all combinations of which are run.

use anabranch_settings::diagnostic::Diagnostic;
use std::collections::HashSet;

/// Combinations above this number are a mistake.
const MOST: usize = 1_000_000;

/// Parameters and their values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grid {
    axes: Vec<(String, Vec<String>)>,
}

impl Grid {
    /// Reads `key=value,value,...` of each option; a comma within quotes, brackets or braces belongs to a value.
    ///
    /// # Errors
    /// One is not of that form, names a key or a value again, or there are more than a million combinations.
    pub fn read(options: &[String]) -> Result<Self, Diagnostic> {
        let mut grid = Self::default();
        for option in options {
            let wrong = |message: String| Diagnostic::option(&format!("--grid {option}"), message);
            let Some((key, values)) = option.split_once('=') else {
                return Err(wrong("it is key=value,value,...".to_owned()));
            };
            let (key, values) = (key.trim().to_owned(), parts(values));
            if key.is_empty() || values.iter().any(String::is_empty) {
                return Err(wrong("it is key=value,value,..., and nothing of it is empty".to_owned()));
            }
            if grid.axes.iter().any(|(known, _)| *known == key) {
                return Err(wrong(format!("'{key}' is named twice")));
            }
            // Its runs would be executed twice, and have one row.
            let mut seen = HashSet::new();
            if let Some(again) = values.iter().find(|value| !seen.insert(value.as_str())) {
                return Err(wrong(format!("the value {again} is named twice")));
            }
            grid.axes.push((key, values));
            if grid.size().is_none_or(|size| size > MOST) {
                return Err(wrong(format!("there are more than {MOST} combinations")));
            }
        }
        Ok(grid)
    }

    /// Whether none of the scenario's options, `key=value` each, sets a parameter of the grid too.
    ///
    /// # Errors
    /// One does.
    pub fn check_beside(&self, options: &[String]) -> Result<(), Diagnostic> {
        for option in options {
            let key = option.split_once('=').map_or(option.as_str(), |(key, _)| key).trim();
            if self.axes.iter().any(|(known, _)| known == key) {
                let message = format!("--grid gives '{key}' values too: say once which it has");
                return Err(Diagnostic::option(&format!("--set {option}"), message));
            }
        }
        Ok(())
    }

    /// The number of combinations; none beyond the range of numbers.
    fn size(&self) -> Option<usize> {
        self.axes.iter().try_fold(1usize, |size, (_, values)| size.checked_mul(values.len()))
    }

    /// Whether no parameter is given.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// All combinations, the last parameter varying first; one without parameters if there are none.
    pub fn points(&self) -> Vec<Vec<(String, String)>> {
        self.axes.iter().fold(vec![Vec::new()], |points, (key, values)| {
            let with = |point: &Vec<(String, String)>| {
                let point = point.clone();
                values.iter().map(move |value| [point.clone(), vec![(key.clone(), value.clone())]].concat())
            };
            points.iter().flat_map(with).collect()
        })
    }
}

/// Splits at commas outside of quotes, brackets and braces.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quote, mut escaped) = (vec![String::new()], 0, None, false);
    for letter in text.chars() {
        // In TOML only a text in double quotes has escapes.
        let literal = std::mem::take(&mut escaped);
        match (letter, quote) {
            _ if literal => {}
            ('\\', Some('"')) => escaped = true,
            (_, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is always one").push(letter);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(options: &[&str]) -> Result<Vec<String>, String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let points = Grid::read(&options).map_err(|error| error.message().to_owned())?.points();
        let text = |point: Vec<(String, String)>| {
            point.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        Ok(points.into_iter().map(text).collect())
    }

    #[test]
    fn all_combinations_are_run_and_the_last_key_varies_first() {
        assert_eq!(grid(&[]), Ok(vec![String::new()]));
        assert_eq!(grid(&["a=1,2", "b=\"x,y\",z"]).unwrap(), ["a=1 b=\"x,y\"", "a=1 b=z", "a=2 b=\"x,y\"", "a=2 b=z"]);
        assert_eq!(grid(&["a=[1,2],{ b = 3, c = 4 }"]).unwrap(), ["a=[1,2]", "a={ b = 3, c = 4 }"]);
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_text() {
        assert_eq!(grid(&[r#"a="x\",\"y",z"#]).unwrap(), [r#"a="x\",\"y""#, "a=z"]);
        assert_eq!(grid(&[r#"a="x\\",z"#]).unwrap(), [r#"a="x\\""#, "a=z"]);
        assert_eq!(grid(&[r"a='x\',z"]).unwrap(), [r"a='x\'", "a=z"]);
    }

    #[test]
    fn what_is_no_grid_is_said() {
        for wrong in ["a", "=1", "a=", "a=1,,2"] {
            assert!(grid(&[wrong]).is_err(), "{wrong}");
        }
        assert!(grid(&["a=1", "a=2"]).unwrap_err().contains("'a' is named twice"));
        assert!(grid(&["b=2", "a=1,2,1"]).unwrap_err().contains("the value 1 is named twice"));
        let many = format!("a={}", vec!["1"; 1001].join(","));
        let other = format!("b={}", vec!["1"; 1000].join(","));
        assert!(grid(&[&many, &other]).unwrap_err().contains("million") || grid(&[&many, &other]).is_err());
    }
}
