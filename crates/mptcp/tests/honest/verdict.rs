//! The allowed ends of a case.

use super::case::Case;
use super::world::World;
use anabranch_mptcp::CloseCause;
use anabranch_policy::time::Duration;

/// How a case ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Every byte arrived, and both sides were told.
    Finished,
    /// Every byte arrived; one side was not told in time.
    FinishedAtOneEnd,
    /// Both sides were told of the failure.
    Failed,
    /// The client failed before the server had a connection.
    NeverAccepted,
    /// One side failed and the other cannot know: without keepalive it waits until its application aborts.
    Abandoned,
}

/// An unobstructed connection ends within this time after the paths are calm: a few retransmission timeouts, backed off
/// to the length of the script.
const HEALTHY: Duration = Duration::from_secs(400);
/// Time until a connection without a peer ends: fifteen timeouts (RFC 9293, section 3.8.3), or nine keepalive probes.
const BEREAVED: Duration = Duration::from_secs(2_500);
/// TIME-WAIT after FIN-WAIT-2, incomplete handshakes, and a margin.
const AFTERMATH: Duration = Duration::from_secs(400);

/// Runs a case to its end. Returns how it ended, and the bytes that arrived; or the failed check.
pub fn run(case: &Case) -> Result<(Outcome, u64), String> {
    let mut world = World::new(case)?;
    world.play()?;
    world.heal()?;
    let excuse = excuse(&world);
    world.run_to_end(HEALTHY)?;
    if !world.is_over() && excuse.is_some() {
        world.run_to_end(BEREAVED)?;
    }
    let abandoned = abort_waiting(&mut world, excuse)?;
    world.run_out(AFTERMATH)?;
    let left = [0, 1].map(|host| world.pair.hosts[host].connection_count());
    if left != [0, 0] {
        return Err(format!("{left:?} connections are left; {}", describe(&world)));
    }
    let outcome = judge(&world, excuse).map_err(|complaint| format!("{complaint}; {}", describe(&world)))?;
    let bytes = world.pair.received.iter().map(|received| received.len() as u64).sum();
    Ok((if abandoned { Outcome::Abandoned } else { outcome }, bytes))
}

/// Why the connection may fail, if it may.
fn excuse(world: &World<'_>) -> Option<&'static str> {
    let impatient = world.case.sides.iter().any(|side| side.tcp.max_timeouts < 15);
    let mangled = world.network.borrow().mangled != [0, 0];
    let evicted = world.pair.hosts.iter().any(|host| host.counters().evicted_handshakes > 0);
    match () {
        () if world.excuse.is_some() => world.excuse,
        () if evicted && world.apps[1].id.is_none() => Some("strangers' handshakes took its place"),
        () if mangled => Some("a middlebox changed payload"),
        () if impatient && world.bad_time > Duration::ZERO => Some("an impatient host on a bad path"),
        () if world.bad_time > Duration::from_secs(30) => Some("a bad path for long"),
        () => None,
    }
}

/// One end is gone and the other waits for it, without keepalive for ever (RFC 9293, section 3.8.4). Its application
/// aborts.
fn abort_waiting(world: &mut World<'_>, excuse: Option<&str>) -> Result<bool, String> {
    if world.is_over() {
        return Ok(false);
    }
    for host in 0..2 {
        let waits = world.apps[host].cause.is_none() && world.apps[host].id.is_some();
        let alone = world.apps[1 - host].cause.is_some() || (host == 0 && world.apps[1].id.is_none());
        let may_wait = excuse.is_some() && alone && world.case.sides[host].tcp.keepalive.is_none();
        if waits && !may_wait {
            return Err(format!("host {host} does not end ({excuse:?}); {}", describe(world)));
        }
        if waits {
            world.abort(host);
        }
    }
    world.observe()?;
    Ok(true)
}

fn judge(world: &World<'_>, excuse: Option<&str>) -> Result<Outcome, String> {
    let [client, server] = [0, 1].map(|host| world.apps[host].cause);
    for host in 0..2 {
        check_cause(world, host)?;
    }
    let finished = |cause: Option<CloseCause>| cause == Some(CloseCause::Finished);
    if finished(client) && finished(server) {
        return Ok(Outcome::Finished);
    }
    if excuse.is_none() {
        return Err("it failed, and nothing stood in its way".into());
    }
    match (client, server) {
        (Some(_), None) if world.apps[1].id.is_none() => Ok(Outcome::NeverAccepted),
        (Some(a), Some(b)) if a == CloseCause::Finished || b == CloseCause::Finished => Ok(Outcome::FinishedAtOneEnd),
        (Some(_), Some(_)) => Ok(Outcome::Failed),
        _ => Err("one end never heard of the end".into()),
    }
}

/// Whether the reported cause can be true.
fn check_cause(world: &World<'_>, host: usize) -> Result<(), String> {
    let (app, peer) = (&world.apps[host], &world.apps[1 - host]);
    match app.cause {
        Some(CloseCause::Finished) => {
            let whole = world.pair.received[host].len() as u64 == peer.written && peer.closed && peer.waiting == 0;
            let sent = app.closed && app.waiting == 0;
            let heard = app.end_seen;
            if !(whole && sent && heard) {
                return Err(format!("host {host} calls it finished (whole {whole}, sent {sent}, heard {heard})"));
            }
        }
        Some(CloseCause::Aborted) if !app.aborted => return Err(format!("host {host} did not abort")),
        Some(_) | None => {}
    }
    Ok(())
}

/// The state of the hosts at the end.
fn describe(world: &World<'_>) -> String {
    let mut text = format!("at {:?}, excuse {:?}", world.pair.now, world.excuse);
    for host in 0..2 {
        let app = &world.apps[host];
        let id = app.id.unwrap_or_default();
        text += &format!(
            "\nhost {host}: {:?}, written {} waiting {} closed {} read {} end {} fell back {}, {:?} {:?} {:?}\n  {:?}\n  {:?}",
            app.cause,
            app.written,
            app.waiting,
            app.closed,
            world.pair.received[host].len(),
            app.end_seen,
            app.fell_back,
            world.pair.hosts[host].protocol(id),
            world.pair.hosts[host].receive_state(id),
            world.pair.hosts[host].connection_view(world.pair.now, id),
            world.pair.hosts[host].subflow_views(world.pair.now, id),
            world.pair.events[host],
        );
    }
    text
}
