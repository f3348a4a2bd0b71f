//! The repository's shape: names, sizes and openings of files, links of its pages, and the page that is made from the
//! tables.

use anabranch_policy::combination::{Combination, Family};
use anabranch_policy::setting::Parameter;
use anabranch_policy::table::Member;
use anabranch_policy::{congestion, datagram, forecast, path_manager, reliability, scheduler};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Files longer than this are two files. The design says "about 600".
const LONGEST_FILE: usize = 700;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "core", "misc", "helper", "helpers"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All files with this extension below `directory`, in order, without what builds and runs leave behind.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    for path in entries.map(|entry| entry.expect("the entry can be read").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !["target", "results", "corpus", "artifacts"].contains(&&*name) {
            found.extend(files(&path, extension));
        } else if path.is_file() && path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_module_opens_with_what_it_is_for() {
    let root = root();
    let sources = files(&root.join("crates"), "rs");
    assert!(sources.len() > 100, "only {} sources were found", sources.len());
    let silent: Vec<String> = sources
        .iter()
        .filter(|path| !path.ends_with("tests.rs") && !read(path).starts_with("//! "))
        .map(|path| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "no opening sentence in:\n{}", silent.join("\n"));
}

#[test]
fn names_say_something_and_files_are_not_too_long() {
    for path in files(&root().join("crates"), "rs") {
        let empty = path.iter().any(|part| {
            let part = part.to_string_lossy();
            EMPTY_NAMES.contains(&part.trim_end_matches(".rs"))
        });
        assert!(!empty, "{}: call it after what it does", path.display());
        let lines = read(&path).lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines, {LONGEST_FILE} at most", path.display());
    }
}

/// What stands between `[..](` and `)`.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#')).collect()
}

/// Paths of files in backquotes: with a slash, and a known ending or a slash at the end.
fn mentioned(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let endings = [".rs", ".toml", ".md", ".svg", ".csv", "/"];
    let plain = |text: &&str| !text.contains([' ', '*', '<', '{', '$', '=', ':']) && text.contains('/');
    quoted.filter(plain).filter(|text| endings.iter().any(|ending| text.ends_with(ending))).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages = files(&root(), "md");
    assert!(pages.len() >= 5, "only {} pages were found", pages.len());
    for page in pages {
        let directory = page.parent().expect("a page is in a directory");
        for target in links(&read(&page)) {
            let file = target.split('#').next().unwrap_or_default();
            assert!(directory.join(file).exists(), "{}: {target} is not there", page.display());
        }
    }
}

/// The pages of the book: those below `docs/`, but its table of contents.
fn book() -> Vec<PathBuf> {
    files(&root().join("docs"), "md").into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect()
}

#[test]
fn the_table_of_contents_names_every_page_once() {
    let docs = root().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let mut named: Vec<PathBuf> = links(&summary).into_iter().map(|target| docs.join(target)).collect();
    named.sort();
    assert_eq!(named, book());
}

/// What a heading is called in a link, as mdBook and GitHub have it.
fn anchor(heading: &str) -> String {
    let known = |letter: &char| letter.is_alphanumeric() || ['-', '_'].contains(letter);
    heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").chars().filter(known).collect()
}

#[test]
fn links_to_headings_lead_to_one() {
    for page in files(&root(), "md") {
        let directory = page.parent().expect("a page is in a directory");
        let text = read(&page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for (file, heading) in
            targets.filter(|target| !target.contains("://")).filter_map(|target| target.split_once('#'))
        {
            let there = if file.is_empty() { page.clone() } else { directory.join(file) };
            let known = read(&there).lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            assert!(known, "{}: {file} has no heading #{heading}", page.display());
        }
    }
}

#[test]
fn the_book_links_to_itself_only_and_names_files_that_exist() {
    let root = root();
    for page in book() {
        let text = read(&page);
        let directory = page.parent().expect("a page is in a directory");
        for target in links(&text) {
            let file = directory.join(target.split('#').next().unwrap_or_default());
            let inside = file.canonicalize().is_ok_and(|file| file.starts_with(root.join("docs")));
            assert!(inside, "{}: {target} is not in the book; name the file in backquotes", page.display());
        }
        let of_repository =
            |name: &&str| ["crates/", "docs/", "scenarios/"].iter().any(|folder| name.starts_with(folder));
        for name in mentioned(&text).into_iter().filter(of_repository).filter(|name| !name.contains("NAME")) {
            assert!(root.join(name).exists(), "{} names {name}, which is not there", page.display());
        }
    }
}

#[test]
fn pages_that_sources_name_exist() {
    let root = root();
    for source in files(&root.join("crates"), "rs") {
        let text = read(&source);
        for (at, _) in text.match_indices("docs/") {
            let letters = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
            let name = text[at..].split(|letter: char| !letters(letter)).next().unwrap_or_default();
            let Some(end) = name.find(".md") else { continue };
            assert!(root.join(&name[..end + 3]).exists(), "{} names {name}, which is not there", source.display());
        }
    }
}

#[test]
fn files_that_the_front_pages_name_exist() {
    let root = root();
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(&root.join(page));
        for name in mentioned(&text) {
            // What a run writes, and what a contributor is to write.
            if name.starts_with("results/") || name.starts_with("target/") || name.contains("NAME") {
                continue;
            }
            let places = [root.join(name), root.join("crates").join(name), root.join("crates/mptcp/src").join(name)];
            assert!(places.iter().any(|place| place.exists()), "{page} names {name}, which is not there");
        }
    }
}

/// A setting as an item of a list: name, default, values, meaning.
fn item(parameter: &Parameter) -> String {
    let summary = parameter.summary.trim_end_matches('.');
    format!("- `{}` ({}; {}): {summary}.", parameter.name, parameter.default, parameter.values)
}

/// The members of a family, each with its settings. A setting that several members have alike stands once, behind them.
fn family_list<P: ?Sized>(page: &mut String, table: &[Member<P>], default: &str) {
    let all: Vec<String> =
        table.iter().flat_map(|member| member.parameters()).map(|parameter| item(&parameter)).collect();
    let is_shared = |item: &String| all.iter().filter(|other| *other == item).count() > 1;
    let mut shared: Vec<String> = Vec::new();
    for member in table {
        let chosen = if member.name == default { " (the default)" } else { "" };
        let (summary, source) = (member.summary.trim_end_matches('.'), member.source.trim_end_matches('.'));
        let _ = writeln!(page, "\n### {}{chosen}\n\n{summary}. Source: {source}.", member.name);
        let (mut own, mut names) = (String::new(), Vec::new());
        for parameter in member.parameters() {
            let item = item(&parameter);
            if !is_shared(&item) {
                let _ = writeln!(own, "{item}");
                continue;
            }
            names.push(format!("`{}` ({})", parameter.name, parameter.default));
            if !shared.contains(&item) {
                shared.push(item);
            }
        }
        if !own.is_empty() {
            let _ = write!(page, "\n{own}");
        }
        if !names.is_empty() {
            let _ = writeln!(page, "\nShared settings: {}.", names.join(", "));
        }
    }
    if !shared.is_empty() {
        let _ = writeln!(page, "\nThe shared settings:\n\n{}", shared.join("\n"));
    }
}

/// `docs/policies.md`, from the tables.
fn policies_page() -> String {
    let mut page = "# Policies\n\n\
        The members of each family of policies, as `anabranch list` prints them: name, what it does, source, and settings with\n\
        their default and values. A test makes this page from the tables in `crates/policy`.\n\n\
        In a scenario: `congestion = \"olia\"`, or with settings `path_manager = { name = \"lm3\", rounding = \"up\" }`. On the\n\
        command line: `--policy congestion=olia,path_manager=lm3,path_manager.rounding=up`. The first comment of\n\
        `crates/policy/src/FAMILY/NAME.rs` has a member's formulas with units, the equation numbers of the source, and every\n\
        deviation from it. [Single policies](measurements/policies.md) has what was measured.\n"
        .to_owned();
    let defaults = Combination::default();
    for family in Family::ALL {
        let default = &defaults.choice(family).name;
        let (title, decides) = match family {
            Family::Congestion => ("Congestion control", "how much may be in flight on each subflow"),
            Family::Scheduler => ("Schedulers", "which subflow carries the next chunk of data"),
            Family::PathManager => ("Path managers", "which subflows exist and which are active"),
            Family::Reliability => ("Reliability", "which data may be abandoned, and when"),
            Family::Forecaster => ("Forecasters", "how likely a link is up at a horizon"),
        };
        let _ = writeln!(page, "\n## {title}: `{}`\n\nDecides {decides}.", family.name());
        match family {
            Family::Congestion => family_list(&mut page, congestion::TABLE, default),
            Family::Scheduler => family_list(&mut page, scheduler::TABLE, default),
            Family::PathManager => family_list(&mut page, path_manager::TABLE, default),
            Family::Reliability => family_list(&mut page, reliability::TABLE, default),
            Family::Forecaster => family_list(&mut page, forecast::TABLE, default),
        }
    }
    // No family of connections: sessions of datagrams have it.
    let _ = writeln!(
        page,
        "\n## Datagrams: `datagram`\n\nDecides which paths carry a datagram ([datagrams](datagrams.md))."
    );
    family_list(&mut page, datagram::TABLE, datagram::TABLE[0].name);
    page
}

#[test]
fn the_page_of_policies_says_what_the_tables_say() {
    let path = root().join("docs/policies.md");
    let page = policies_page();
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    assert!(
        read(&path) == page,
        "docs/policies.md is not what the tables say; ANABRANCH_BLESS=1 cargo test -p anabranch-cli --test repository writes it"
    );
}
