//! A scenario file, and runs of `anabranch emulate` with it.

use crate::emulate::agent;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary directory of a test with a scenario.
pub struct Stage(PathBuf);

/// Results of a run.
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub said: String,
    /// Standard error.
    pub complained: String,
    /// The summary; null if there is none.
    pub json: Value,
}

impl Stage {
    /// One path called A, with a link of these TOML lines.
    pub fn one_path(name: &str, link: &str) -> Self {
        Self::new(name, &path("A", link))
    }

    /// A scenario with these paths.
    pub fn new(name: &str, paths: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulate").join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("the test's directory can be made");
        let head = "name = \"staged\"\nduration = \"10 s\"\ntransfer = { kind = \"endless\" }\n\
                    connection = { receive_buffer = \"1 MB\" }\n";
        std::fs::write(directory.join("scenario.toml"), format!("{head}{paths}")).expect("it can be written");
        Self(directory)
    }

    /// Path of a file beside the scenario.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `anabranch emulate OPTIONS scenario.toml -- COMMAND`, not started yet.
    pub fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let mut emulate = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        emulate.arg("emulate").args(options).args(["scenario.toml", "--json", "run.json", "--"]).args(command);
        emulate.current_dir(&self.0).stdin(Stdio::null());
        emulate
    }

    /// Runs it.
    pub fn run(&self, options: &[&str], command: &[&str]) -> Ran {
        self.ran(self.command(options, command).output().expect("the program runs"))
    }

    /// Results of a finished run.
    pub fn ran(&self, output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let json = std::fs::read_to_string(self.0.join("run.json")).unwrap_or_default();
        Ran {
            code: output.status.code().expect("no signal ended it"),
            said: text(output.stdout),
            complained: text(output.stderr),
            json: serde_json::from_str(&json).unwrap_or_default(),
        }
    }

    /// Runs one agent against another at the server; both must succeed.
    pub fn agents(&self, options: &[&str], server: &[&str], client: &[&str]) -> Ran {
        let this = std::env::current_exe().expect("it runs");
        let this = this.to_str().expect("the path is UTF-8");
        let server = format!("exec '{this}' {} {}", agent::NAME, server.join(" "));
        let port = agent::PORT.to_string();
        let options = [options, &["--server", server.as_str(), "--port", port.as_str()]].concat();
        let ran = self.run(&options, &[&[this, agent::NAME], client].concat());
        assert_eq!(ran.code, 0, "{}", ran.complained);
        ran
    }
}

/// A path with one link.
pub fn path(name: &str, link: &str) -> String {
    format!("[[paths]]\nname = \"{name}\"\n[[paths.links]]\n{link}\n")
}

impl Ran {
    /// A counter of a link, e.g. of `A/0/forward`.
    pub fn link(&self, name: &str, key: &str) -> u64 {
        let links = self.json["links"].as_array().expect("there are links");
        let link = links.iter().find(|link| link["name"] == name).expect("there is this link");
        let value = link.pointer(&format!("/{key}")).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{key} in {link}"))
    }

    /// Whether the machine was too busy to judge times.
    pub fn was_late(&self) -> bool {
        self.json["lateness"]["max_us"].as_f64().expect("there is the lateness") > 20_000.0
    }
}
