//! `anabranch play`: the lab in a browser on this machine.

mod files;
mod link;
mod server;

use crate::{console, ending};
use anabranch_lab::library;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use files::Files;
use server::Server;
use std::path::PathBuf;

/// Policies that the page shows side by side.
const MOST_POLICIES: usize = 3;

#[derive(Debug, Args)]
pub struct PlayOptions {
    /// Scenario: a file, or the name of a built-in one (see `list`)
    #[arg(default_value = "two_paths")]
    scenario: PathBuf,
    /// Policies side by side, at most three; by default those that the page chooses
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    policies: Vec<String>,
    /// Seed of the run
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Port on the loopback; by default a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Folder of the page, if it is not in this program [default: playground/dist]
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
}

/// Serves the page until it is told to end.
pub fn play(options: &PlayOptions) -> Result<(), Diagnostic> {
    let document = library::open(&options.scenario, &[])?;
    let scenario = document.scenario()?;
    if options.policies.len() > MOST_POLICIES {
        let message = format!("at most {MOST_POLICIES} policies run side by side");
        return Err(Diagnostic::option("--policy", message));
    }
    for policy in &options.policies {
        if scenario.policies.iter().all(|known| known.name != *policy) {
            let known: Vec<&str> = scenario.policies.iter().map(|known| known.name.as_str()).collect();
            let message = format!("the scenario has no policy '{policy}': it has {}", known.join(", "));
            return Err(Diagnostic::option("--policy", message));
        }
    }
    if let Some(reason) = scenario.cannot_be_watched() {
        return Err(Diagnostic::plain(reason));
    }
    let files = Files::open(options.page.as_deref())?;
    let source = match options.scenario.to_str().filter(|_| !options.scenario.exists()) {
        Some(name) => link::Source::Name(name),
        None => link::Source::Text(document.source.text),
    };
    let fragment = link::fragment(&source, &options.policies, options.seed);
    ending::block_on(async {
        let server = Server::open(files, options.port).await?;
        console::print(&format!("{}#{fragment}\n", server.address()));
        if console::lost().is_some() {
            return Ok(());
        }
        console::remark("open this address in a browser; Ctrl-C ends");
        tokio::select! {
            () = server.serve() => {}
            () = ending::asked_to_end() => {}
        }
        Ok(())
    })
}
