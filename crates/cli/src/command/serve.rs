//! `anabranch serve`: terminates connections of `anabranch proxy`, or of any MPTCP client of this host, and forwards them.

use super::hang_up::{Taken, read_again};
use super::proxy::{priority, target};
use crate::attachment::{Reach, StackOptions, diagnostic};
use crate::configuration::{ConfigurationOption, ReadAgain};
use crate::console::print;
use crate::datagrams::DatagramOptions;
use crate::ending::block_on;
use crate::live::Live;
use crate::secrets::{is_readable, read_key, read_keys};
use crate::service_manager;
use crate::serving::{LimitOptions, Verbosity, resolves, stops};
use crate::status::{Serving, Source, StatusOptions};
use crate::values::port;
use anabranch_datagram::Done;
use anabranch_proxy::{
    AllowList, Destination, Keys, Priorities, PriorityRule, ProxyCounters, Rule, Server, ServerConfig, ServerTerms,
    Target,
};
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Keys that can change at runtime.
const TAKEN: [&str; 10] =
    ["allow", "drain", "idle", "key", "keys", "max-connections", "priority", "socks", "to", "verbose"];

/// Options of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// The port to listen on
    #[arg(long, value_name = "PORT", value_parser = port)]
    port: u16,
    /// Connect all clients to this target
    #[arg(long, value_name = "HOST:PORT", value_parser = target, required_unless_present = "socks", conflicts_with = "socks")]
    to: Option<Target>,
    /// Connect clients to the targets they name
    #[arg(long)]
    socks: bool,
    /// With --socks, allow only matching targets: HOST:PORT, where HOST is a name, *.NAME, an address, a prefix such
    /// as 10.0.0.0/8, or *, and PORT a number or * (repeatable) [default: all but this host's own loopback and link-local addresses]
    #[arg(long, value_name = "RULE", requires = "socks", value_parser = rule)]
    allow: Vec<Rule>,
    /// Priority of data from matching targets, 1 (highest) to 6, for policies that use it: a name, *.NAME, an
    /// address, a prefix such as 10.0.0.0/8, or *, optionally with :PORT (repeatable; the first match counts) [default: 1]
    #[arg(long, value_name = "PATTERN=N", value_parser = priority)]
    priority: Vec<PriorityRule>,
    /// Key that clients must prove to have (see `anabranch key`); optional only with --local
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Instead of --key: a file with a line NAME KEY per client, KEY being the content of its key file
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    datagrams: DatagramOptions,
    #[command(flatten)]
    configuration: ConfigurationOption,
    #[command(flatten)]
    status: StatusOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    stack: StackOptions,
}

fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: anabranch_proxy::RuleError| error.to_string())
}

impl ServeOptions {
    /// Checks that need neither privileges nor the network.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.check_words()?;
        if self.key.iter().chain(&self.keys).all(|path| is_readable(path)) {
            self.read_keys()?;
        }
        Ok(())
    }

    /// The checks that read no secret: a pipe gives one only once.
    fn check_words(&self) -> Result<(), Diagnostic> {
        self.refuse_everybody()?;
        self.status.check()?;
        self.stack.check(true)
    }

    /// A server without keys must not be reachable from other hosts.
    fn refuse_everybody(&self) -> Result<(), Diagnostic> {
        if self.key.is_none() && self.keys.is_none() && self.stack.local.is_none() {
            let message = "without --key this would forward for whoever reaches it; make a key with `anabranch key FILE` and give \
                           it to both ends with --key FILE, or stay on this host with --local";
            return Err(Diagnostic::plain(message));
        }
        Ok(())
    }

    /// Settings that can change at runtime.
    fn terms(&self) -> Result<ServerTerms, Diagnostic> {
        self.refuse_everybody()?;
        let keys = self.read_keys()?;
        Ok(ServerTerms { keys, destination: self.destination()?, priorities: Priorities::new(self.priority.clone()) })
    }

    fn read_keys(&self) -> Result<Option<Keys>, Diagnostic> {
        match (&self.key, &self.keys) {
            (Some(path), _) => Ok(Some(Keys::one(read_key(path)?))),
            (None, Some(path)) => read_keys(path).map(Some),
            (None, None) => Ok(None),
        }
    }

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

/// Runs until it is told to end.
///
/// # Errors
/// An error of the options or the host.
pub fn serve(options: &ServeOptions) -> Result<(), Diagnostic> {
    options.limits.allow_descriptors();
    let (terms, again) = (options.terms()?, ReadAgain::new::<ServeOptions>("serve", &options.configuration)?);
    let ports = [options.port];
    if options.stack.dry_run {
        print(&options.stack.plan(Reach::On(&ports))?);
        return Ok(());
    }
    // Clients that may choose targets may send datagrams too, if they prove the key.
    let datagrams = match (&terms.destination, &terms.keys, options.stack.local) {
        (Destination::Named(allow), Some(keys), None) => {
            options.datagrams.config(options.port, keys, allow, options.limits.descriptors())?
        }
        _ => None,
    };
    block_on(async {
        let listeners = options.status.listen(options.stack.journal.as_deref(), "serve").await?;
        // Dropped last, so that its threads outlive the rest.
        let workers = options.limits.start_workers()?;
        let open = options.stack.open_on(Reach::On(&ports), None, workers.runtimes()).await?;
        if !options.stack.udp {
            open.tell_unusable(&options.stack.uplinks);
        }
        let verbosity = Verbosity::new(&options.limits);
        let to = options.to.as_ref().map_or("where clients ask to".to_owned(), Target::to_string);
        let config = ServerConfig {
            port: options.stack.listening(options.port),
            terms,
            connection: open.connection,
            limits: options.limits.limits(),
            journal: options.limits.journal(&verbosity),
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
        if let Some(address) = listeners.http() {
            print(&format!("status at http://{address}/status\n"));
        }
        let datagrams = datagrams.map(|planned| options.datagrams.bind(planned)).transpose()?.flatten();
        let (datagrams, change_datagrams) = datagrams.unzip();
        let observed =
            datagrams.as_ref().map(|server| -> Arc<dyn Fn() -> Done + Send + Sync> { Arc::new(server.observer()) });
        let live = options.limits.live(open.attached.stacks(), "anabranch serve")?;
        let source =
            Source::new("serve", open.attached.stacks(), server.control()).with_paths(open.attached.observer());
        let source = source.with_datagram_server(observed);
        let serving = Serving::start(listeners, Some(source));
        service_manager::ready();
        let change = server.changer();
        let take = |new: &ServeOptions| {
            new.check_words()?;
            let terms = new.terms()?;
            change_datagrams.iter().for_each(|change| change.set(&terms));
            change(terms, new.limits.limits());
            verbosity.set(&new.limits);
            Ok(Vec::new())
        };
        let counters = tokio::select! {
            counters = carry(server, datagrams, live) => counters,
            never = read_again(again, Taken { keys: &TAKEN, counts: "for new connections" }, take) => match never {},
        };
        drop(serving);
        print(&format!("{counters}\n"));
        open.attached.detach().await.map_err(|error| diagnostic(&error))
    })
}

/// Serves clients until it is told to end; datagrams are served for as long as streams.
async fn carry(server: Server, datagrams: Option<anabranch_datagram::Server>, live: Option<Live>) -> ProxyCounters {
    let stop = stops(live, server.control());
    let Some(datagrams) = datagrams else { return server.run(stop).await };
    let (end, ended) = oneshot::channel::<()>();
    let streams = async {
        let counters = server.run(stop).await;
        drop(end);
        counters
    };
    let until = async {
        // The sender signals by being dropped.
        let _ = ended.await;
    };
    let (counters, done) = tokio::join!(streams, datagrams.run(until));
    print(&format!("{done}\n"));
    counters
}
