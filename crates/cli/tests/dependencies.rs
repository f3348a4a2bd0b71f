//! Rules on dependencies: licences, layers of our crates, and what crates without I/O must not use.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Licences compatible with `MIT OR Apache-2.0`: they require only that their text is kept.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Our crates from the bottom up. A crate may depend on lower layers only.
const LAYERS: &[&[&str]] = &[
    &["anabranch-wire", "anabranch-policy", "anabranch-structure"],
    &["anabranch-mptcp", "anabranch-routing", "anabranch-steering", "anabranch-system"],
    &["anabranch-sim", "anabranch-stack", "anabranch-host", "anabranch-media", "anabranch-settings"],
    &[
        "anabranch-attach",
        "anabranch-datagram",
        "anabranch-perf",
        "anabranch-proxy",
        "anabranch-router",
        "anabranch-steer",
    ],
    &["anabranch-capture", "anabranch-emulate", "anabranch-lab"],
    &["anabranch-cli", "anabranch-campaign", "anabranch", "anabranch-playground", "anabranch-python"],
];

/// Products usable on their own, with options of `cargo tree`: crates that their trees must not have, tests aside, and
/// the maximum number of third-party crates.
const PRODUCTS: &[(&str, &[&str], usize)] = &[
    ("anabranch", &["anabranch-sim", "anabranch-routing", "anabranch-proxy"], 56),
    ("anabranch --no-default-features", &["anabranch-sim", "anabranch-routing", "anabranch-host", "serde"], 40),
    ("anabranch-cli --no-default-features", &["anabranch-sim", "anabranch-datagram", "anabranch-steer"], 110),
    ("anabranch-stack", &["anabranch-sim", "anabranch-routing", "anabranch-host", "serde"], 44),
    ("anabranch-attach", &["anabranch-sim", "anabranch-routing"], 60),
    ("anabranch-datagram", &["anabranch-sim", "anabranch-routing", "anabranch-mptcp", "anabranch-stack"], 75),
    ("anabranch-proxy", &["anabranch-sim", "anabranch-routing", "anabranch-host"], 75),
    ("anabranch-lab", &["anabranch-stack", "anabranch-proxy", "anabranch-router"], 110),
    ("anabranch-perf", &["anabranch-sim", "anabranch-routing", "anabranch-host"], 55),
    ("anabranch-router", &["anabranch-sim", "anabranch-mptcp", "anabranch-stack"], 55),
    ("anabranch-steer", &["anabranch-sim", "anabranch-mptcp", "anabranch-stack", "anabranch-routing"], 45),
];

/// Crates whose output is a function of their inputs: no sockets, clocks, threads or operating system.
const WITHOUT_IO: &[&str] = &["wire", "policy", "mptcp", "routing", "sim", "steering"];

/// Forbidden dependencies of those crates: I/O, unseeded randomness, untyped errors.
const NOT_FOR_THEM: &[&str] = &[
    "anyhow",
    "async-std",
    "chrono",
    "crossbeam",
    "fastrand",
    "getrandom",
    "libc",
    "miette",
    "mio",
    "nix",
    "rand",
    "rayon",
    "rustix",
    "smol",
    "socket2",
    "time",
    "tokio",
];

/// Forbidden words in their sources, with the reason. A word ends where an identifier ends, except those that end in
/// `(` or `:`.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time", "time is an argument: anabranch_policy::time"),
    ("SystemTime", "time is an argument: anabranch_policy::time"),
    ("TcpStream", "no sockets"),
    ("TcpListener", "no sockets"),
    ("UdpSocket", "no sockets"),
    ("std::thread", "no threads inside"),
    ("thread_local", "no globals"),
    ("std::sync::Mutex", "no threads inside"),
    ("static mut", "no globals"),
    ("std::fs", "no files"),
    ("std::env", "output is a function of seed and inputs"),
    ("std::process", "output is a function of seed and inputs"),
    ("HashSet", "order of iteration differs from run to run: BTreeSet"),
    ("RandomState", "order of iteration differs from run to run"),
    (".powf(", "differs from machine to machine: libm"),
    (".powi(", "differs from machine to machine: libm, or multiply"),
    (".exp(", "differs from machine to machine: libm"),
    (".ln(", "differs from machine to machine: libm"),
    (".log2(", "differs from machine to machine: libm"),
    (".log10(", "differs from machine to machine: libm"),
    (".sin(", "differs from machine to machine: libm"),
    (".cos(", "differs from machine to machine: libm"),
    (".cbrt(", "differs from machine to machine: libm"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn metadata() -> Value {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Whether [`LICENCES`] alone can satisfy an SPDX expression. `AND` binds closer than `OR`; the old `/` means `OR`.
/// Invalid expressions are not allowed.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest).is_some_and(|met| met && rest.is_empty())
}

/// Removes `word` from the front.
fn take(rest: &mut &[&str], word: &str) -> Option<()> {
    let (first, after) = rest.split_first()?;
    (*first == word).then(|| *rest = after)
}

fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut met = all_of(rest)?;
    while take(rest, "OR").is_some() {
        met |= all_of(rest)?;
    }
    Some(met)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut met = licence(rest)?;
    while take(rest, "AND").is_some() {
        met &= licence(rest)?;
    }
    Some(met)
}

fn licence(rest: &mut &[&str]) -> Option<bool> {
    if take(rest, "(").is_some() {
        let met = any_of(rest)?;
        take(rest, ")")?;
        return Some(met);
    }
    let (name, after) = rest.split_first()?;
    *rest = after;
    if take(rest, "WITH").is_none() {
        return Some(LICENCES.contains(name));
    }
    let (exception, after) = rest.split_first()?;
    *rest = after;
    Some(LICENCES.contains(&format!("{name} WITH {exception}").as_str()))
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0-only",
        "GPL-3.0-only OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0-only) AND Unicode-3.0",
        "GPL-2.0-only AND MIT OR Zlib",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "(MIT OR Zlib) AND GPL-3.0-only",
        "MIT AND (GPL-3.0-only OR LGPL-2.1-only)",
        "MIT WITH surprise",
        "MIT Zlib",
        "(MIT",
        "MIT OR",
    ] {
        assert!(!allowed(bad), "{bad}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_goes_with_ours() {
    let metadata = metadata();
    let wrong: Vec<String> = list(&metadata, "packages")
        .iter()
        .filter(|package| !allowed(text(package, "license")))
        .map(|package| {
            format!("{} {}: '{}'", text(package, "name"), text(package, "version"), text(package, "license"))
        })
        .collect();
    assert!(list(&metadata, "packages").len() > 50, "the list of packages is whole");
    assert!(wrong.is_empty(), "licences that are not on the list:\n{}", wrong.join("\n"));
}

#[test]
fn arrows_between_our_crates_point_downwards() {
    let metadata = metadata();
    let members: BTreeSet<&str> = list(&metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    let ours: BTreeMap<&str, &Value> = list(&metadata, "packages")
        .iter()
        .filter(|package| members.contains(text(package, "id")))
        .map(|package| (text(package, "name"), package))
        .collect();
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut arrows = 0;
    for (name, package) in &ours {
        let own = layer(name).unwrap_or_else(|| panic!("{name} has no layer: add it in this test"));
        for dependency in list(package, "dependencies") {
            // Tests may use crates of higher layers.
            let for_tests = text(dependency, "kind") == "dev";
            let dependency = text(dependency, "name");
            if let Some(other) = layer(dependency).filter(|_| !for_tests) {
                assert!(other < own, "{name} must not depend on {dependency}, which is not below it");
                arrows += 1;
            }
            let short = name.trim_start_matches("anabranch-");
            let refused = WITHOUT_IO.contains(&short) && NOT_FOR_THEM.contains(&dependency);
            assert!(!refused, "{name} must not depend on {dependency}: it has no input and output of its own");
        }
    }
    assert!(arrows >= 40, "only {arrows} arrows were seen: cli alone has thirteen");
}

/// Name and version of all packages that `product` is built from on this machine, except for tests.
fn tree(product: &str) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package"]).args(product.split(' '));
    let output = command.current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let name_and_version = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    String::from_utf8_lossy(&output.stdout).lines().map(name_and_version).filter(|name| !name.is_empty()).collect()
}

#[test]
fn products_can_be_used_alone() {
    for (product, refused, most) in PRODUCTS {
        let tree = tree(product);
        let has = |name: &str| tree.iter().any(|package| package.split(' ').next() == Some(name));
        assert!(has("anabranch-policy") && has("tokio"), "the tree of {product} is whole");
        for name in *refused {
            assert!(!has(name), "{product} must not depend on {name}, nor must anything below it");
        }
        let others = tree.iter().filter(|package| !package.starts_with("anabranch")).count();
        assert!(others <= *most, "{product} is built from {others} crates of others, and may be from {most}");
    }
}

#[test]
fn unsafe_code_is_in_one_crate() {
    let crates = root().join("crates");
    let mut with_unsafe = BTreeSet::new();
    for file in sources(&crates) {
        let content = std::fs::read_to_string(&file).expect("the source can be read");
        let within = file.strip_prefix(&crates).expect("it is in one of the crates");
        let in_sources = within.iter().nth(1).is_some_and(|folder| folder == "src");
        if in_sources && content.lines().any(|line| line.trim_start().starts_with("#[allow(unsafe_code")) {
            with_unsafe.extend(within.iter().next().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    assert_eq!(with_unsafe.into_iter().collect::<Vec<_>>(), ["system"]);
}

/// The wall clock may be set while a program runs, in either direction. Nothing that counts time may use it: it is for
/// times in messages and a status, the days and months of quotas, and the first sequence number of an OSPF router.
#[test]
fn the_wall_clock_is_read_in_two_places() {
    let crates = root().join("crates");
    let reads = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["SystemTime::now", "CLOCK_REALTIME", "gettimeofday"].iter().any(|word| code.contains(word))
    };
    let mut places = Vec::new();
    for file in sources(&crates) {
        let within = file.strip_prefix(&crates).expect("it is in one of the crates");
        if within.iter().nth(1).is_some_and(|folder| folder == "src") {
            let content = std::fs::read_to_string(&file).expect("the source can be read");
            places.extend(content.lines().filter(|line| reads(line)).map(|_| within.to_owned()));
        }
    }
    assert_eq!(places, [Path::new("cli/src/console.rs"), Path::new("router/src/daemon.rs")]);
}

/// All Rust files under `directory`, in order.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    for path in entries.map(|entry| entry.expect("the entry can be read").path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The forbidden word in a line of code, if any. Comments are ignored.
fn offence(line: &str) -> Option<&'static (&'static str, &'static str)> {
    let code = line.split("//").next().unwrap_or_default();
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    FORBIDDEN.iter().find(|(word, _)| {
        code.match_indices(word).any(|(at, _)| {
            let after = code[at + word.len()..].chars().next();
            word.ends_with('(') || !after.is_some_and(name)
        })
    })
}

#[test]
fn an_offence_is_seen_and_a_comment_is_none() {
    assert!(offence("use std::time::Instant;").is_some());
    assert!(offence("let x = y.powf(2.0);").is_some());
    assert!(offence("// std::time is forbidden").is_none());
    assert!(offence("use std::net::IpAddr;").is_none());
    assert!(offence("use std::fs_like;").is_none());
}

#[test]
fn crates_without_input_and_output_touch_no_clock_socket_thread_or_file() {
    let root = root();
    let mut seen = 0;
    for name in WITHOUT_IO {
        let directory = root.join("crates").join(name).join("src");
        if !directory.exists() {
            continue;
        }
        for file in sources(&directory) {
            // Tests run on any machine and use tolerances.
            if file.ends_with("tests.rs") {
                continue;
            }
            seen += 1;
            let content = std::fs::read_to_string(&file).expect("the source can be read");
            let code = content.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let place = format!("{}:{}", file.display(), number + 1);
                if let Some((word, reason)) = offence(line) {
                    panic!("{place}: {word} does not belong here: {reason}");
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} files were read");
}
