//! `anabranch route`: runs this host as a router of an ad-hoc network, or queries a running router.

mod options;
mod profile;
mod show;

pub use options::RouteOptions;

use crate::configuration::ReadAgain;
use crate::console::{print, remark};
use crate::ending::{self, asked_to_end, block_on};
use crate::service_manager;
use anabranch_router::{ConfigRead, NewConfig, Question, RouteDaemon, RouteError, ask};
use anabranch_settings::diagnostic::Diagnostic;
use std::convert::Infallible;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Routes until it is told to end, or prints the state of a running router.
///
/// # Errors
/// An error of the options or the host.
pub fn route(options: &RouteOptions) -> Result<(), Diagnostic> {
    match options.show {
        Some(what) => show(options, what.question()),
        None => run(options),
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

/// Keys of the file that take effect while the router runs; not the forecasts that some profiles have.
const TAKEN: [&str; 22] = [
    "interface",
    "point-to-point",
    "lane",
    "full-path",
    "lane-policy",
    "passive",
    "network",
    "gateway",
    "profile",
    "hello-interval",
    "dead-interval",
    "two-hop-refresh",
    "bfd",
    "bfd-multiplier",
    "link-cost",
    "adjacency",
    "lsa-fullness",
    "mdr-constraint",
    "retransmit-interval",
    "ack-interval",
    "backup-wait",
    "priority",
];

fn run(options: &RouteOptions) -> Result<(), Diagnostic> {
    let config = options.config()?;
    // Before the host's configuration changes.
    ending::listen()?;
    block_on(async {
        let again = ReadAgain::new::<RouteOptions>("route", &options.configuration)?;
        let (sender, news) = unbounded_channel();
        let reading = read_again(again, sender);
        let daemon = RouteDaemon::start(config).await.map_err(|error| diagnostic(&error))?;
        print(&format!("{}\n", daemon.describe()));
        service_manager::ready();
        let end = async {
            tokio::select! {
                () = asked_to_end() => {}
                never = reading => match never {},
            }
        };
        let outcome = daemon.telling(remark).following(news).run(end).await;
        service_manager::stopping(std::time::Duration::ZERO);
        outcome.map_err(|error| diagnostic(&error))
    })
}

/// Reads the file again at each SIGHUP. Without a file, SIGHUP ends the router.
async fn read_again(again: Option<ReadAgain>, sender: UnboundedSender<ConfigRead>) -> Infallible {
    let heard = again.map(|again| anabranch_attach::listen_for_hang_ups().map(|hang_ups| (again, hang_ups)));
    let Some(Ok((again, mut hang_ups))) = heard else { return std::future::pending().await };
    loop {
        hang_ups.next().await;
        let read = again.options::<RouteOptions>().and_then(|(options, changed)| Ok((options.config()?, changed)));
        let read = match read {
            Ok((config, changed)) => {
                let left = changed.into_iter().filter(|key| !TAKEN.contains(&key.as_str())).collect();
                Ok(NewConfig { config, left })
            }
            Err(wrong) => Err(wrong.whole()),
        };
        // The receiver lives as long as this.
        let _ = sender.send(read);
    }
}

fn diagnostic(error: &RouteError) -> Diagnostic {
    Diagnostic::plain(error.to_string())
}
