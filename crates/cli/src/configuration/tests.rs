use super::complete::complete_by;
use super::*;
use crate::arguments::Arguments;
use clap::{Arg, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn file(text: &str) -> File {
    File::from_text("a.toml", text.to_owned(), PathBuf::from("/etc/anabranch")).expect("it is TOML")
}

fn subcommand(name: &str) -> Command {
    Arguments::program().find_subcommand(name).expect("there is one").clone()
}

/// Arguments of a table of `proxy` or `serve`.
fn words(name: &str, text: &str) -> Result<Vec<String>, String> {
    let (file, command) = (file(&format!("[{name}]\n{text}\n")), subcommand(name));
    let section = Section::of(&file, &command).map_err(|error| error.to_string())?.expect("it is there");
    section.check_contradictions(&file, &command).map_err(|error| error.to_string())?;
    Ok(section.words_where(|_| true).map(|word| word.into_string().expect("text")).collect())
}

fn wrong(name: &str, text: &str) -> String {
    words(name, text).expect_err("it is refused")
}

#[test]
fn keys_are_the_long_options_and_files_lie_beside_the_file() {
    let text =
        "port = 4410\nsocks = true\nverbose = false\nallow = [\"*:443\", \"10.0.0.0/8:*\"]\nkey = \"k\"\nlocal = true";
    let expected =
        ["--port=4410", "--socks", "--allow=*:443", "--allow=10.0.0.0/8:*", "--key=/etc/anabranch/k", "--local"];
    let mut found = words("serve", text).expect("all is right");
    let mut expected = expected.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(words("serve", "key = \"/run/k\"").expect("right"), ["--key=/run/k"]);
    assert_eq!(words("proxy", "listen = \"127.0.0.1:1\"\nlocal = 3").expect("right").len(), 2);
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_was_meant() {
    let message = wrong("serve", "port = 4410\nmax_conections = 3");
    assert!(message.contains("a.toml:3:1: unknown key 'max_conections' in [serve]"), "{message}");
    assert!(message.contains("did you mean 'max-connections'?"), "{message}");
    assert!(message.contains("3 | max_conections = 3"), "{message}");
    let cases = [
        ("port = 70000", "a.toml:2:8: '70000' is not possible for 'port'"),
        ("port = true", "a string or a number is expected here, not true or false"),
        ("socks = 1", "true or false is expected here, not an integer"),
        ("port = [1, 2]", "'port' has one value, not a list"),
        (
            "allow = [\"*:443\", \"nonsense\"]",
            "a.toml:2:19: 'nonsense' is not possible for 'allow': a rule is HOST:PORT",
        ),
        ("socks = true\nallow = []", "a.toml:3:9: 'allow' is an empty list, and without 'allow' everything is allowed"),
        ("receive-buffer = \"4 apples\"", "'4 apples' is not possible for 'receive-buffer'"),
        ("socks = true\nto = \"127.0.0.1:80\"", "a.toml:3:1: 'to' cannot be used with 'socks'"),
        ("dry-run = true", "'dry-run' belongs on the command line"),
        ("help = true", "'help' belongs on the command line"),
        ("config = \"b.toml\"", "'config' belongs on the command line"),
    ];
    for (text, expected) in cases {
        let message = wrong("serve", text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

/// Arguments after merging those of a file with this text.
fn completed(line: &str, text: &str) -> Result<String, String> {
    let line = line.split(' ').map(OsString::from).collect();
    let words = complete_by(&Arguments::program(), line, |_| Ok(file(text))).map_err(|error| error.to_string())?;
    Ok(words.into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>().join(" "))
}

#[test]
fn an_option_of_the_command_line_counts_more_than_the_file() {
    let text = "[serve]\nport = 4410\nsocks = true\nallow = [\"*:443\", \"*:80\"]\nlocal = 2\n";
    let all = completed("anabranch serve --config a.toml", text).expect("all is right");
    for word in ["--port=4410", "--socks", "--allow=*:443", "--allow=*:80", "--local=2"] {
        assert!(all.contains(word), "{all}");
    }
    assert!(all.starts_with("anabranch serve --") && all.ends_with(" --config a.toml"), "{all}");
    let some = completed("anabranch serve --config a.toml --port 1 --allow *:22 --udp", text).expect("all is right");
    // `--udp` and a number of paths conflict.
    assert!(some.contains("--socks") && !some.contains("4410") && !some.contains("*:443"), "{some}");
    assert!(!some.contains("--local"), "{some}");
    let fixed = completed("anabranch serve --to 127.0.0.1:80 --config a.toml", text).expect("all is right");
    assert!(!fixed.contains("--socks"), "{fixed}");
    let none = completed("anabranch proxy --config a.toml", text).expect_err("there is no such table");
    assert!(none.contains("has no table [proxy]"), "{none}");
}

#[test]
fn a_line_without_a_file_or_with_a_fault_of_its_own_is_left_as_it_is() {
    for line in [
        "anabranch serve --port 1",
        "anabranch list",
        "anabranch",
        "anabranch serve --help",
        "anabranch nonsense --config x",
    ] {
        assert_eq!(completed(line, "[serve]\nport = 4410\n").expect("nothing is read"), line);
    }
}

/// The documented example.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/anabranch.toml");
    std::fs::read_to_string(path).expect("the example is there")
}

/// Whether a line is a commented-out option of the example.
fn is_off(line: &str) -> bool {
    line.strip_prefix('#')
        .is_some_and(|line| line.starts_with(|first: char| first.is_ascii_lowercase()) && line.contains(" = "))
}

#[test]
fn the_example_names_every_option_that_a_file_can_have_with_a_value_that_is_possible() {
    let text = example();
    let all: String = text
        .lines()
        .map(|line| if is_off(line) { &line[1..] } else { line })
        .fold(String::new(), |text, line| text + line + "\n");
    let file = file(&all);
    let program = Arguments::program();
    let commands: Vec<&Command> = program.get_subcommands().filter(|command| is_configurable(command)).collect();
    assert!(commands.len() >= 2);
    for command in commands {
        let section = Section::of(&file, command).unwrap_or_else(|error| panic!("{error}"));
        let section = section.unwrap_or_else(|| panic!("there is no table [{}]", command.get_name()));
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(Arg::get_long);
        for option in shown.filter(|option| section::may_stand_in_a_file(option)) {
            assert!(section.has(option), "[{}] does not mention '{option}'", command.get_name());
        }
    }
}

#[test]
fn the_example_is_right_as_it_is() {
    let file = file(&example());
    for name in ["proxy", "serve"] {
        let command = subcommand(name);
        let section = Section::of(&file, &command).unwrap_or_else(|error| panic!("{error}")).expect("it is there");
        section.check_completeness(&file, &command).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn what_a_table_lacks_is_told() {
    let missing = |name: &str, text: &str| {
        let (file, command) = (file(&format!("[{name}]\n{text}\n")), subcommand(name));
        let section = Section::of(&file, &command).expect("each key is right").expect("it is there");
        section.check_completeness(&file, &command).expect_err("it is refused").to_string()
    };
    let message = missing("serve", "key = \"k\"");
    assert!(message.contains("a.toml:1:2: [serve] also needs 'port'"), "{message}");
    let message = missing("proxy", "server = \"a.example:1\"");
    assert!(message.contains("[proxy] also needs 'key'"), "{message}");
}

/// Arguments that tables `[[uplink]]` add to those of `up`.
fn uplink_words(text: &str) -> Result<Vec<String>, String> {
    let (file, command) = (file(&format!("{text}\n[up]\nkill-switch = true\n")), subcommand("up"));
    let section = Section::of(&file, &command).map_err(|error| error.to_string())?.expect("it is there");
    Ok(section.words_where(|_| true).map(|word| word.into_string().expect("text")).collect())
}

#[test]
fn tables_of_uplinks_hold_for_each_command_and_say_what_the_options_say() {
    let text = "[[uplink]]\ninterface = \"wlan0\"\n[[uplink]]\ninterface = \"usb0\"\nrole = \"backup\"\n\
                [[uplink]]\ninterface = \"wwan0\"\nrole = \"metered\"\nquota = \"5GB/month\"\n";
    let found = uplink_words(text).expect("all is right");
    let expected = [
        "--kill-switch",
        "--uplink=wlan0",
        "--uplink=usb0",
        "--uplink=wwan0",
        "--backup=usb0",
        "--metered=wwan0",
        "--quota=wwan0=5GB/month",
    ];
    assert_eq!(found, expected);
    let (file, serve) = (file(&format!("{text}[serve]\nport = 1\n")), subcommand("serve"));
    let section = Section::of(&file, &serve).expect("all is right").expect("it is there");
    let words: Vec<OsString> = section.words_where(|_| true).collect();
    assert!(words.contains(&"--backup=usb0".into()) && !words.contains(&"--metered=wwan0".into()), "{words:?}");
}

#[test]
fn what_is_wrong_with_an_uplink_is_told_with_its_line() {
    let cases = [
        ("role = \"backup\"", "[[uplink]] needs 'interface'"),
        ("interface = 3", "a.toml:2:13: a string is expected here, not an integer"),
        ("interface = \"a\"\nrole = \"back\"", "a.toml:3:8: 'back' is no role; there are primary, backup, metered"),
        ("interface = \"a\"\nqota = \"1GB/day\"", "did you mean 'quota'?"),
        ("interface = \"a\"\nquota = \"1GB/day\"", "only an uplink with role = \"metered\" has a quota"),
        ("interface = \"a\"\nrole = \"metered\"\nquota = \"1GB\"", "'a=1GB' is no quota"),
        ("interface = \"a\"\n[[uplink]]\ninterface = \"a\"", "there are two tables for a"),
    ];
    for (text, expected) in cases {
        let message = uplink_words(&format!("[[uplink]]\n{text}")).expect_err("it is refused");
        assert!(message.contains(expected), "{text}: {message}");
    }
    let both = file("[[uplink]]\ninterface = \"a\"\n[up]\nuplink = \"b\"\n");
    let message = Section::of(&both, &subcommand("up")).err().expect("it is refused").to_string();
    assert!(message.contains("'uplink' in [up] cannot be used with tables [[uplink]]"), "{message}");
}

#[test]
fn a_pipe_is_read_once_and_not_waited_for_when_it_is_to_be_read_again() {
    let path = std::env::temp_dir().join(format!("anabranch-pipe-{}", std::process::id()));
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("there is room");
    let again =
        ReadAgain::new::<crate::command::ProxyOptions>("proxy", &ConfigurationOption { config: Some(path.clone()) });
    let again = again.expect("it was read before").expect("there is a file");
    let refused = again.options::<crate::command::ProxyOptions>().expect_err("nothing is in it").to_string();
    std::fs::remove_file(&path).expect("it is ours");
    assert!(refused.contains("read again") && refused.contains("it is no regular file"), "{refused}");
}
