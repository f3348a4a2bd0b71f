//! The pages that map sentences of RFCs and behaviours of Linux to tests name existing tests.

use std::path::{Path, PathBuf};

const MULTIPATH: &str = "tests/multipath";
const TCP: &str = "tests/tcp";
/// These build some test names from parts, and check those of `wire-profile.md` themselves.
const INTEROP: &str = "../stack/tests/interop";

#[test]
fn every_test_named_in_the_tables_exists() {
    let pages = [
        ("rfc8684", [MULTIPATH].as_slice(), 160),
        ("rfc9293", [TCP, MULTIPATH].as_slice(), 200),
        ("wire-profile", [MULTIPATH, TCP, INTEROP].as_slice(), 15),
    ];
    for (page, folders, least) in pages {
        let text = std::fs::read_to_string(root().join(format!("../../docs/{page}.md"))).unwrap();
        let named = text.split('`').skip(1).step_by(2).filter(|code| is_test(code, folders)).count();
        assert!(named >= least, "{page}: {named} tests named");
    }
}

/// In the second column; a file of another crate follows the name of that and a colon.
#[test]
fn every_file_named_in_the_tables_exists() {
    let mut files = 0;
    for page in ["rfc8684", "rfc9293"] {
        let text = std::fs::read_to_string(root().join(format!("../../docs/{page}.md"))).unwrap();
        for column in text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1)) {
            for group in column.replace('`', "").split(';') {
                let (of, names) = group.split_once(':').unwrap_or(("mptcp", group));
                for name in names.split(',').map(str::trim).filter(|name| name.ends_with(".rs")) {
                    let folders = [("con/", "connection/"), ("sf/", "subflow/"), ("ep/", "endpoint/")];
                    let long =
                        folders.iter().find_map(|(short, long)| Some(format!("{long}{}", name.strip_prefix(short)?)));
                    let path = format!("../{}/src/{}", of.trim(), long.as_deref().unwrap_or(name));
                    assert!(root().join(&path).is_file(), "{page}: {name} of {of}");
                    files += 1;
                }
            }
        }
    }
    assert!(files > 200, "{files} files named");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Whether a name is that of a test here; panics if it looks like one and does not exist.
fn is_test(code: &str, folders: &[&str]) -> bool {
    let is_name =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    // If the kernel tests have a module of the same name, the page says which is meant.
    match code.strip_prefix("multipath::").unwrap_or(code).split_once("::") {
        Some((module, test)) if is_name(module) && is_name(test) && module != "module" => {
            let file = |folder: &&str| root().join(folder).join(format!("{module}.rs"));
            let files: Vec<PathBuf> = folders.iter().map(file).filter(|file| file.exists()).collect();
            assert!(!files.is_empty(), "no module of {code}");
            let ours = files.iter().any(|file| declares(file, test));
            assert!(ours || files.iter().any(|file| file.starts_with(root().join(INTEROP))), "no test {code}");
            ours
        }
        // A unit test beside the code.
        None if is_name(code) && code.matches('_').count() >= 4 => {
            let sources = ["src", "../wire", "../policy/src"];
            assert!(sources.iter().any(|folder| is_within(&root().join(folder), code)), "no test {code}");
            true
        }
        _ => false,
    }
}

/// Whether a file has a test of that name, perhaps with arguments of proptest.
fn declares(file: &Path, test: &str) -> bool {
    let source = std::fs::read_to_string(file).unwrap();
    source.match_indices(&format!("fn {test}(")).any(|(at, _)| source[..at].trim_end().ends_with("#[test]"))
}

fn is_within(folder: &Path, test: &str) -> bool {
    let mut paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.any(|path| match path.is_dir() {
        true => is_within(&path, test),
        false => path.extension().is_some_and(|extension| extension == "rs") && declares(&path, test),
    })
}
