//! `anabranch route`: runs this host as a router of an ad-hoc network, or queries a running router.

mod options;
mod profile;
mod show;

pub use options::RouteOptions;

use crate::console::{print, remark};
use crate::ending::block_on;
use anabranch_router::{Question, RouteConfig, RouteDaemon, RouteError, ask};
use anabranch_settings::diagnostic::Diagnostic;

/// Routes until it is told to end, or prints the state of a running router.
///
/// # Errors
/// An error of the options or the host.
pub fn route(options: &RouteOptions) -> Result<(), Diagnostic> {
    match options.show {
        Some(what) => show(options, what.question()),
        None => run(options.config()?),
    }
}

fn show(options: &RouteOptions, question: Question) -> Result<(), Diagnostic> {
    let answer = ask(options.table, question).map_err(|error| diagnostic(&error))?;
    if options.json {
        print(&format!("{answer:#}\n"));
    } else {
        print(&show::text(question, &answer));
    }
    Ok(())
}

fn run(config: RouteConfig) -> Result<(), Diagnostic> {
    let unheard = |error: std::io::Error| Diagnostic::plain(format!("signals cannot be waited for: {error}"));
    // Before the host's configuration changes.
    anabranch_attach::listen_for_the_end().map_err(unheard)?;
    block_on(async {
        let daemon = RouteDaemon::start(config).await.map_err(|error| diagnostic(&error))?;
        print(&format!("{}\n", daemon.describe()));
        let end = async {
            if anabranch_attach::asked_to_end().await.is_err() {
                // Then only SIGKILL ends it.
                std::future::pending::<()>().await;
            }
        };
        daemon.telling(remark).run(end).await.map_err(|error| diagnostic(&error))
    })
}

fn diagnostic(error: &RouteError) -> Diagnostic {
    Diagnostic::plain(error.to_string())
}
