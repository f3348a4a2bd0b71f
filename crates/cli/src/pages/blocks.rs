//! Finds and fills the generated tables of a page.

use super::record::PageRecord;
use super::tables;

/// Start of the opening comment; the table's description follows, then [`OPEN_END`].
const OPEN: &str = "<!-- measured: ";
/// End of the opening comment.
const OPEN_END: &str = " -->";
/// The closing comment.
const CLOSE: &str = "<!-- end of measured -->";

/// Description of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Name of the experiment, or `all`.
    pub experiment: String,
    /// `facts`, `matrix`, ...
    pub kind: String,
    /// Further words, each a comma-separated list.
    pub arguments: Vec<Vec<String>>,
}

impl Block {
    fn read(words: &str) -> Result<Self, String> {
        let mut parts = words.split_whitespace().map(str::to_owned);
        let (Some(experiment), Some(kind)) = (parts.next(), parts.next()) else {
            return Err(format!("'{words}' is not an experiment and what is shown of it"));
        };
        let arguments = parts.map(|list| list.split(',').map(str::to_owned).collect()).collect();
        Ok(Self { experiment, kind, arguments })
    }

    fn metrics_if(&self, kind: &str) -> Vec<String> {
        if self.kind == kind { self.arguments.first().cloned().unwrap_or_default() } else { Vec::new() }
    }

    /// Metrics whose means it shows.
    pub fn means(&self) -> Vec<String> {
        self.metrics_if("means")
    }

    /// Metrics that it shows at the points of a sweep.
    pub fn swept(&self) -> Vec<String> {
        self.metrics_if("sweep")
    }
}

/// The tables of a page.
pub fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let words = page.split(OPEN).skip(1).filter_map(|rest| rest.split_once(OPEN_END)).map(|(words, _)| words);
    words.map(Block::read).collect()
}

/// The page with tables generated from the records. Tables of experiments without a record are kept.
pub fn fill(page: &str, records: &[PageRecord]) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (words, after) = after.split_once(OPEN_END).ok_or("a table's first comment does not end")?;
        let (old, after) = after.split_once(CLOSE).ok_or_else(|| format!("the table '{words}' does not end"))?;
        let table = table(&Block::read(words)?, records)?.map(|table| format!("\n\n{}\n\n", table.trim()));
        let table = table.unwrap_or_else(|| old.to_owned());
        text.push_str(&format!("{before}{OPEN}{words}{OPEN_END}{table}{CLOSE}"));
        rest = after;
    }
    Ok(text + rest)
}

/// A table as Markdown; none without a record.
fn table(block: &Block, records: &[PageRecord]) -> Result<Option<String>, String> {
    let argument = |at: usize| block.arguments.get(at).map_or(&[][..], Vec::as_slice);
    if block.experiment == "all" && records.is_empty() {
        return Ok(None);
    }
    if block.experiment == "all" {
        let all: Vec<_> = records.iter().map(|record| &record.measured).collect();
        return match block.kind.as_str() {
            "verdicts" => Ok(Some(tables::verdicts(&all))),
            "headlines" => Ok(Some(tables::headlines(&all))),
            kind => Err(format!("there is no table '{kind}' of all experiments")),
        };
    }
    let found = records.iter().map(|record| &record.measured).find(|measured| measured.name == block.experiment);
    let Some(measured) = found else { return Ok(None) };
    let made = match block.kind.as_str() {
        "facts" => tables::facts(measured),
        "matrix" => tables::matrix(measured),
        "claims" => tables::claims(measured),
        "sensitivity" => tables::sensitivity(measured),
        "means" => tables::means(measured, argument(0), argument(1)),
        "sweep" => tables::sweep(measured, argument(0), argument(1)),
        kind => return Err(format!("there is no table '{kind}'")),
    };
    Ok(Some(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_table_are_read() {
        let page = "text\n<!-- measured: maps means throughput,delay maps@linux -->\nold\n<!-- end of measured -->\n";
        let found = blocks(page).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].experiment.as_str(), found[0].kind.as_str()), ("maps", "means"));
        assert_eq!(found[0].means(), ["throughput", "delay"]);
        assert_eq!(found[0].swept(), Vec::<String>::new());
        assert!(blocks("<!-- measured: maps -->").is_err());
    }

    #[test]
    fn a_table_of_an_experiment_that_was_not_run_stays_and_one_without_end_is_told() {
        let page = "a <!-- measured: maps facts -->old<!-- end of measured --> b";
        assert_eq!(fill(page, &[]).unwrap(), page);
        assert!(fill("<!-- measured: maps facts -->old", &[]).is_err());
        assert!(fill("<!-- measured: maps --><!-- end of measured -->", &[]).is_err());
    }
}
