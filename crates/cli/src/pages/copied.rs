//! Checks CSV files copied from the output of `calibrate`, `sweep --rivals` and the forecasters: recomputes the numbers
//! of their pages.

use anabranch_lab::statistics::{median, quantile};
use std::path::Path;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fields of a CSV line.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut().unwrap().push(letter),
        }
    }
    fields
}

/// Lines after the header.
fn lines(file: &str) -> Vec<Vec<String>> {
    read(file).lines().skip(1).map(fields).collect()
}

/// Cells of the first row in a page's tables that begins with these cells.
fn row(page: &str, begins: &[&str]) -> Vec<String> {
    let start = format!("| {} |", begins.join(" | "));
    let row = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no row '{start}'"));
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The number at the start of a text such as `-5.3 ± 3.7` or `8.4 %`.
fn number(text: &str) -> f64 {
    text.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("'{text}' begins with no number"))
}

/// Asserts that a page's number matches the CSV, within rounding.
fn assert_close(what: &str, said: &str, computed: f64, unit: f64) {
    assert!((number(said) - computed).abs() < unit * 1.01, "{what}: the page says {said}, its CSV {computed}");
}

fn assert_names_its_commit(page: &str) {
    let named = page.split("commit ").skip(1).any(|rest| {
        let hash: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        hash.len() == 7
    });
    assert!(named, "the page does not name the commit of its numbers");
}

#[test]
fn the_page_of_calibration_says_what_its_csv_does() {
    let page = read("measurements/calibration.md");
    assert_names_its_commit(&page);
    let cases = lines("results/calibration.csv");
    let (ours, linux) = (6, 9);
    type Chosen = fn(&str) -> bool;
    let of: [(&str, usize, Chosen); 4] = [
        ("our stack", ours, |_| true),
        ("Linux", linux, |_| true),
        ("Linux, one path", linux, |case| case.starts_with("one_")),
        ("Linux, several paths", linux, |case| !case.starts_with("one_")),
    ];
    for (name, column, chosen) in of {
        let off: Vec<f64> =
            cases.iter().filter(|case| chosen(&case[0])).map(|case| number(&case[column]).abs()).collect();
        // Another table of the page has a row `Linux` too.
        let said = row(page.split("## Result").nth(1).unwrap(), &[name]);
        assert_eq!(said[1], off.len().to_string(), "{name}: cases");
        assert_close(name, &said[2], median(&off), 0.1);
        assert_close(name, &said[4], quantile(&off, 0.9), 0.1);
    }
}

#[test]
fn the_page_of_rivals_says_what_its_csv_does() {
    let page = read("measurements/rivals.md");
    assert_names_its_commit(&page);
    let points = lines("results/rivals.csv");
    for (name, column) in [("ours", 4), ("kernel", 6), ("kernel_bbr", 8)] {
        let benefits = |lossy: Option<bool>| -> Vec<f64> {
            let wanted = points.iter().filter(|point| lossy.is_none_or(|lossy| point[1].ends_with("lossy") == lossy));
            wanted.map(|point| number(&point[column])).collect()
        };
        let all = benefits(None);
        // Another table of the page has rows with these names.
        let said = row(page.split("## Results").nth(1).unwrap(), &[name]);
        assert_close(name, &said[1], median(&all), 0.01);
        assert_close(name, &said[2], median(&benefits(Some(false))), 0.01);
        assert_close(name, &said[3], median(&benefits(Some(true))), 0.01);
        assert_close(name, &said[4], quantile(&all, 0.1), 0.01);
        assert_close(name, &said[5], all.iter().copied().fold(f64::INFINITY, f64::min), 0.01);
        let percent = |count: usize| count as f64 * 100.0 / all.len() as f64;
        let below = points.iter().filter(|point| point[column].starts_with('-')).count();
        assert_close(name, &said[6], percent(below), 0.5);
        // A value rounded to -0.05 may be on either side.
        let (least, most) = (count(&all, |benefit| benefit < -0.05), count(&all, |benefit| benefit <= -0.05));
        let far = number(&said[7]);
        assert!((percent(least) - 0.5..=percent(most) + 0.5).contains(&far), "{name}: {far} % far below");
    }
    let ahead = points.iter().filter(|point| number(&point[3]) > number(&point[5])).count();
    assert!(page.contains(&format!("on {ahead} of {} points", points.len())), "ahead on {ahead}");
}

fn count(values: &[f64], wanted: impl Fn(f64) -> bool) -> usize {
    values.iter().filter(|value| wanted(**value)).count()
}

#[test]
fn the_page_of_forecasters_says_what_its_csv_does() {
    let page = read("measurements/forecasters.md");
    assert_names_its_commit(&page);
    let standard: Vec<Vec<String>> =
        lines("results/forecasters.csv").into_iter().filter(|line| line[0] == "standard").collect();
    assert_eq!(standard.len(), 8);
    let first = &standard[0];
    let facts = format!("{} forecasts, {} % up, {} losses, 20 seeds.", first[2], first[3], first[4]);
    assert!(page.contains(&facts), "{facts}");
    assert_eq!(first[1], "101 to 120");
    for line in &standard {
        assert_eq!(row(&page, &[&line[5]]), line[5..], "{}", line[5]);
    }
}
