//! `anabranch serve`: terminates connections of `anabranch proxy`, or of any MPTCP client of this host, and forwards them.

use super::proxy::{priority, target};
use crate::attachment::{Reach, StackOptions, diagnostic};
use crate::console::print;
use crate::datagrams::DatagramOptions;
use crate::diagnostic::Diagnostic;
use crate::ending::{asked_to_end, block_on};
use crate::serving::{LimitOptions, read_key, resolves};
use anabranch_proxy::{AllowList, Destination, Priorities, PriorityRule, Rule, Server, ServerConfig, Target};
use clap::Args;
use std::path::PathBuf;

/// What can be said to `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// The port to listen on
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Connect all clients to this target
    #[arg(long, value_name = "HOST:PORT", value_parser = target, required_unless_present = "socks", conflicts_with = "socks")]
    to: Option<Target>,
    /// Connect clients to the targets that they name
    #[arg(long)]
    socks: bool,
    /// With --socks, allow only matching targets: HOST:PORT, where HOST is a name, *.NAME, an address, a network such as
    /// 10.0.0.0/8, or *, and PORT a number or * (repeatable) [default: all but this host's own loopback and link-local addresses]
    #[arg(long, value_name = "RULE", requires = "socks", value_parser = rule)]
    allow: Vec<Rule>,
    /// Priority of what matching targets send, 1 (highest) to 6, for policies that use it: a name,
    /// *.NAME, an address, a network such as 10.0.0.0/8, or *, optionally with :PORT (repeatable; the first that fits) [default: 1]
    #[arg(long, value_name = "PATTERN=N", value_parser = priority)]
    priority: Vec<PriorityRule>,
    /// The key that clients must prove (see `anabranch key`); optional only with --local
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    datagrams: DatagramOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    stack: StackOptions,
}

fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: anabranch_proxy::RuleError| error.to_string())
}

impl ServeOptions {
    fn destination(&self) -> Result<Destination, Diagnostic> {
        match &self.to {
            Some(target) => {
                resolves("--to", target)?;
                Ok(Destination::Fixed(target.clone()))
            }
            None if self.allow.is_empty() => Ok(Destination::Named(AllowList::default())),
            None => Ok(Destination::Named(AllowList::new(self.allow.clone()))),
        }
    }
}

/// Runs it until it is asked to end.
///
/// # Errors
/// What is wrong with the options or the host.
pub fn serve(options: &ServeOptions) -> Result<(), Diagnostic> {
    if options.key.is_none() && options.stack.local.is_none() {
        let message = "without --key this would forward for whoever reaches it; make a key with `anabranch key FILE` and give \
                       it to both ends with --key FILE, or stay on this host with --local";
        return Err(Diagnostic::plain(message));
    }
    let destination = options.destination()?;
    let key = options.key.as_deref().map(read_key).transpose()?;
    let ports = [options.port];
    if options.stack.dry_run {
        print(&options.stack.plan(Reach::On(&ports))?);
        return Ok(());
    }
    // Where clients choose targets they may send datagrams too, if they prove the key.
    let datagrams = match (&destination, &key, options.stack.local) {
        (Destination::Named(allow), Some(key), None) => options.datagrams.config(options.port, key, allow)?,
        _ => None,
    };
    block_on(async {
        // Its threads end last.
        let workers = options.limits.start_workers()?;
        let open = options.stack.open_on(Reach::On(&ports), workers.runtimes()).await?;
        let to = options.to.as_ref().map_or("where clients ask to".to_owned(), Target::to_string);
        let config = ServerConfig {
            port: options.port,
            key,
            destination,
            connection: open.connection,
            priorities: Priorities::new(options.priority.clone()),
            limits: options.limits.limits(),
            journal: options.limits.journal(),
        };
        let cannot = |error| Diagnostic::option(&format!("--port {}", options.port), format!("cannot listen: {error}"));
        let server = Server::bind(open.attached.stacks(), config).map_err(cannot)?;
        if options.stack.local.is_none() {
            // The stack's own addresses are behind those of the uplinks.
            print(&format!("listening on port {} of the uplinks: to {to}\n", options.port));
        }
        let paths = options.stack.local.map(|_| open.attached.paths()).unwrap_or_default();
        for (_, address) in paths.iter().flat_map(|path| &path.addresses) {
            let address = std::net::SocketAddr::new(*address, options.port);
            print(&format!("listening on {address}: to {to}\n"));
        }
        let datagrams = datagrams.map(|config| options.datagrams.bind(config)).transpose()?.flatten();
        let live = options.limits.live(open.attached.stacks(), "anabranch serve")?;
        let counters = match datagrams {
            None => server.run(asked_to_end(live)).await,
            Some(datagrams) => {
                let (end, ended) = tokio::sync::oneshot::channel::<()>();
                let streams = async {
                    let counters = server.run(asked_to_end(live)).await;
                    drop(end);
                    counters
                };
                let (counters, done) = tokio::join!(streams, datagrams.run(async { _ = ended.await }));
                print(&format!("{done}\n"));
                counters
            }
        };
        print(&format!("{counters}\n"));
        open.attached.detach().await.map_err(|error| diagnostic(&error))
    })
}
