//! `anabranch perf`: measures the throughput of paths per second.

mod options;
mod print;

pub use options::{Kernel, PerfOptions};

use crate::attachment::Reach;
use crate::console::{print as put, remark};
use crate::ending::block_on;
use crate::live::{Live, wish_to_end};
use anabranch_attach::Attached;
use anabranch_perf::{Host, Ours, PerfError, Progress, Report, ServerConfig, ServerEvent};
use anabranch_settings::diagnostic::Diagnostic;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the client or the server. Returns whether the measurement was completed.
pub fn perf(options: &PerfOptions) -> Result<bool, Diagnostic> {
    let remote = if options.server || options.remote.is_none() { None } else { Some(options.remote()?) };
    let ports = [options.port];
    let reach = remote.map_or(Reach::On(&ports), |remote| Reach::Server(remote.into()));
    if options.stack.dry_run {
        put(&options.stack.plan(reach)?);
        return Ok(true);
    }
    block_on(async {
        let plan = options.plan()?;
        let (host, attached) = open(options, reach).await?;
        let live = match &attached {
            Some(attached) if options.live => Some(Live::of_stack(attached.stack(), "anabranch perf")?),
            _ => None,
        };
        let outcome = match remote {
            None => serve(options, &host, attached.as_ref(), live).await,
            Some(remote) => measure(options, &host, remote, &plan, live).await,
        };
        if let Some(attached) = attached {
            attached.detach().await.map_err(|error| crate::attachment::diagnostic(&error))?;
        }
        outcome
    })
}

/// The measuring host; the Anabranch stack must be detached at the end.
async fn open(options: &PerfOptions, reach: Reach<'_>) -> Result<(Host, Option<Attached>), Diagnostic> {
    if let Some(kernel) = options.kernel_host() {
        return Ok((kernel, None));
    }
    let open = options.stack.open(reach).await?;
    if let Err(wrong) = check_from(options, &open.attached) {
        open.attached.detach().await.map_err(|error| crate::attachment::diagnostic(&error))?;
        return Err(wrong);
    }
    let ours = Ours {
        stack: open.attached.stack().clone(),
        config: open.connection,
        local: options.from,
        policies: options.stack.policy.clone(),
    };
    Ok((Host::Ours(Box::new(ours)), Some(open.attached)))
}

/// Checks that `--from` is an address of the stack, which would take another one silently.
fn check_from(options: &PerfOptions, attached: &Attached) -> Result<(), Diagnostic> {
    let Some(from) = options.from else { return Ok(()) };
    let own: Vec<IpAddr> =
        attached.paths().into_iter().flat_map(|path| path.addresses).map(|(_, address)| address).collect();
    if own.contains(&from) {
        return Ok(());
    }
    let own: Vec<String> = own.iter().map(IpAddr::to_string).collect();
    let message = format!("{from} is no address of the stack, which has {}", own.join(", "));
    Err(Diagnostic::option("--from", message))
}

/// An error of the user's input, or of the network.
fn failed(error: &PerfError) -> Result<bool, Diagnostic> {
    if error.is_users() {
        return Err(Diagnostic::plain(error.to_string()));
    }
    remark(&format!("error: {error}"));
    Ok(false)
}

async fn measure(
    options: &PerfOptions,
    host: &Host,
    remote: SocketAddr,
    plan: &anabranch_perf::Plan,
    live: Option<Live>,
) -> Result<bool, Diagnostic> {
    let quiet = options.json || live.is_some();
    if !quiet {
        put(&format!("{} to {remote}: {}\n{}", print::about(&host.about()), print::plan(plan), print::HEAD));
    }
    let tell = |progress: Progress<'_>| {
        if !quiet {
            put(&print::interval(progress.up, progress.interval, progress.senders));
        }
    };
    let inside = options.stack.inside(remote);
    let stop = wish_to_end(live.as_ref());
    let outcome = if options.sink {
        anabranch_perf::run_against_any(host, inside, plan, stop, tell).await
    } else {
        anabranch_perf::run(host, inside, plan, stop, tell).await
    };
    drop(live);
    match outcome {
        // With --udp the engine has another address for the server.
        Err(PerfError::Connect { error, .. }) => failed(&PerfError::Connect { remote, error }),
        Err(error) => failed(&error),
        Ok(report) => {
            put(&if options.json { json(&report) } else { print::report(&report) });
            Ok(report.interrupted.is_none())
        }
    }
}

fn json(report: &Report) -> String {
    serde_json::to_string_pretty(report).map_or_else(|error| error.to_string(), |text| text + "\n")
}

async fn serve(
    options: &PerfOptions,
    host: &Host,
    attached: Option<&Attached>,
    live: Option<Live>,
) -> Result<bool, Diagnostic> {
    let config = |address: SocketAddr| ServerConfig {
        one_off: options.one_off,
        max_tests: usize::from(options.max_tests),
        ..ServerConfig::new(address)
    };
    let (json, quiet) = (options.json, live.is_some());
    let place = options.stack.place(attached, options.port);
    let tell = move |event: ServerEvent| {
        if !quiet {
            say(&event, json, &place);
        }
    };
    let (v6, v4) = (Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into());
    let port = options.stack.listening(options.port);
    let stopped = AtomicBool::new(false);
    let stop = || async {
        wish_to_end(live.as_ref()).await;
        stopped.store(true, Ordering::Relaxed);
    };
    // A host without IPv6 has no dual-stack address.
    let outcome = match anabranch_perf::serve(host, &config(SocketAddr::new(v6, port)), stop(), tell.clone()).await {
        Err(PerfError::Listen { error, .. }) if error.kind() != std::io::ErrorKind::AddrInUse && attached.is_none() => {
            anabranch_perf::serve(host, &config(SocketAddr::new(v4, port)), stop(), tell).await
        }
        outcome => outcome,
    };
    drop(live);
    // Without --one-off only a signal ends it.
    let well = |failed| !options.one_off || stopped.load(Ordering::Relaxed) || failed == 0;
    outcome.map(|counters| well(counters.failed)).or_else(|error| failed(&error))
}

/// Prints server events as lines; with JSON, standard output has only results, and what went wrong is a remark.
fn say(event: &ServerEvent, json: bool, place: &str) {
    let line = match event {
        ServerEvent::Ended { client, up, down, interrupted } if json => {
            let test =
                serde_json::json!({ "client": client, "received": up, "sent": down, "interrupted": interrupted });
            return put(&format!("{test}\n"));
        }
        ServerEvent::Ended { client, up, down, interrupted } => {
            let how = interrupted.map_or_else(|| "over".to_owned(), print::interrupted);
            format!("{client}: {how}\n{}", print::sides(up.as_ref(), down.as_ref()))
        }
        ServerEvent::Listening(_) => format!("listening on {place}\n"),
        ServerEvent::Began { client, plan, about } => {
            format!("{client}: {}, from {}\n{}", print::plan(plan), print::about(about), print::HEAD)
        }
        ServerEvent::Interval { up, interval, .. } => print::interval(*up, interval, None),
        ServerEvent::Failed { client, reason } => format!("{client}: {reason}\n"),
        ServerEvent::Refused { client, reason } => format!("{client}: refused, {reason}\n"),
        ServerEvent::Stranger { peer, reason } => format!("{peer}: dropped, {reason}\n"),
    };
    use ServerEvent::{Failed, Refused, Stranger};
    match event {
        Failed { .. } | Refused { .. } | Stranger { .. } if json => remark(line.trim_end()),
        _ if json => {}
        _ => put(&line),
    }
}
