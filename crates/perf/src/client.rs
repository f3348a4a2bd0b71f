//! The client of a measurement.

use super::error::{EARLY, PerfError};
use super::host::Host;
use super::link::Link;
use super::message::{self, LONG, Message};
use super::meter::Meter;
use super::plan::{Length, Plan};
use super::report::{About, Interval, Report, SCHEMA, Side, Stopper, StreamReport, Transfer};
use super::transfer::{End, Line, Transfers};
use core::future::Future;
use core::net::SocketAddr;
use core::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for the server's answer.
const ANSWER: Duration = Duration::from_secs(20);
/// Timeout for the server's results, which follow the queued payload.
const RESULTS: Duration = Duration::from_secs(60);
/// Timeout for the server's results once the test was stopped, perhaps since the server does not answer.
const STOPPING: Duration = Duration::from_secs(2);
/// Timeout for closing.
const CLOSING: Duration = Duration::from_secs(2);

/// The progress of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// From client to server, or else from server to client.
    pub up: bool,
    /// The interval as measured at this end.
    pub interval: &'a Interval,
    /// The sender's latest interval, if we are the receiver.
    pub senders: Option<&'a Interval>,
}

/// Measures against a perf server ([`super::serve`]); `tell` is called for each interval. Once `stop` completes the report
/// has the results until then.
///
/// # Errors
/// [`PerfError`].
pub async fn run(
    host: &Host,
    remote: SocketAddr,
    plan: &Plan,
    stop: impl Future<Output = ()> + Send,
    tell: impl FnMut(Progress<'_>) + Send,
) -> Result<Report, PerfError> {
    plan.check().map_err(PerfError::Plan)?;
    let mut stop = pin!(stop);
    let begin = async {
        let control = Arc::new(host.connect(remote).await?);
        let (lines, server) = prepare(host, &control, remote, plan).await?;
        message::write(&control, &Message::Start).await?;
        Ok((control, lines, server))
    };
    let (control, lines, server) = before(stop.as_mut(), begin).await?;
    let streams = streams(&lines);
    let mut transfers = Transfers::new(lines);
    transfers.receive(plan.direction.is_up());
    if plan.direction.is_up() {
        transfers.send(plan);
    }
    let Measured { ours, theirs, interrupted } = measure(&control, &transfers, plan, stop, Mutex::new(tell)).await?;
    transfers.abort();
    if interrupted.is_none() {
        close(&control).await;
        let sides = [&ours.0, &ours.1, &theirs.0, &theirs.1];
        sides.into_iter().flatten().try_for_each(|side| something_left(plan, side))?;
    }
    let (up, down) = (plan.direction.is_up(), plan.direction.is_down());
    Ok(Report {
        schema: SCHEMA,
        client: host.about(),
        server: Some(server),
        remote,
        plan: plan.clone(),
        streams,
        up: up.then_some(Transfer { sent: ours.0, received: theirs.0 }),
        down: down.then_some(Transfer { sent: theirs.1, received: ours.1 }),
        interrupted,
    })
}

/// Writes to, or reads from, any TCP server that discards or sends data, such as discard or chargen: no perf server is needed,
/// and only our end is measured. Once `stop` completes the report has the results until then.
///
/// # Errors
/// [`PerfError`].
pub async fn run_against_any(
    host: &Host,
    remote: SocketAddr,
    plan: &Plan,
    stop: impl Future<Output = ()> + Send,
    mut tell: impl FnMut(Progress<'_>) + Send,
) -> Result<Report, PerfError> {
    plan.check().map_err(PerfError::Plan)?;
    let up = plan.direction.is_up();
    if up && plan.direction.is_down() {
        return Err(PerfError::Plan("a server of another kind swallows or sends: one direction at a time"));
    }
    if !up && matches!(plan.length, Length::Bytes(_)) {
        return Err(PerfError::Plan("how much a server of another kind sends is its own decision: give a time"));
    }
    let mut stop = pin!(stop);
    let open = async {
        let mut lines = Vec::new();
        for stream in 0..plan.streams {
            lines.push(Line::new(Arc::new(host.connect(remote).await?), stream));
        }
        Ok(lines)
    };
    let lines = before(stop.as_mut(), open).await?;
    let streams = streams(&lines);
    let mut transfers = Transfers::new(lines);
    transfers.receive(up);
    if up {
        transfers.send(plan);
    }
    let end = if up { End::Sender } else { End::Receiver };
    let (side, interrupted) = {
        let told = |interval: &Interval| tell(Progress { up, interval, senders: None });
        let mut side = pin!(Meter::new(end, &transfers.lines, plan).run(&transfers, told));
        tokio::select! {
            side = &mut side => (side, None),
            () = stop => {
                transfers.stop();
                (side.await, Some(Stopper::Client))
            }
        }
    };
    if interrupted.is_none() {
        if up && ended_early(plan, &side, &transfers.lines) {
            return Err(PerfError::Confused("the server ended the connections before the test was over"));
        }
        something_left(plan, &side)?;
    }
    transfers.abort();
    let (sent, received) = if up { (Some(side), None) } else { (None, Some(side)) };
    let transfer = Transfer { sent, received };
    Ok(Report {
        schema: SCHEMA,
        client: host.about(),
        server: None,
        remote,
        plan: plan.clone(),
        streams,
        up: up.then(|| transfer.clone()),
        down: (!up).then_some(transfer),
        interrupted,
    })
}

/// Whether a sender could not send for as long, or as much, as planned.
fn ended_early(plan: &Plan, side: &Side, lines: &[Arc<Line>]) -> bool {
    match plan.window() {
        Some(window) => side.intervals.last().is_none_or(|last| last.end < window),
        None => lines.iter().any(|line| plan.bytes_of(line.stream).is_some_and(|all| line.written() < all)),
    }
}

/// An error if all bytes of a test were sent within the omitted time.
fn something_left(plan: &Plan, side: &Side) -> Result<(), PerfError> {
    let nothing = "all of it was sent within the omitted seconds: send more, or omit less";
    let left = plan.omit <= 0.0 || side.intervals.iter().any(|interval| !interval.omitted);
    if left { Ok(()) } else { Err(PerfError::Plan(nothing)) }
}

/// Waits for the server's next message.
async fn answer(control: &Link, remote: SocketAddr) -> Result<Message, PerfError> {
    let message = timeout(ANSWER, message::read(control, LONG)).await.map_err(|_| PerfError::Silent)?;
    match message.map_err(|error| PerfError::of_message(error, remote))? {
        Message::Refused { reason } => Err(PerfError::Refused(reason.chars().filter(|c| !c.is_control()).collect())),
        message => Ok(message),
    }
}

/// Negotiates the test and opens its streams.
async fn prepare(
    host: &Host,
    control: &Link,
    remote: SocketAddr,
    plan: &Plan,
) -> Result<(Vec<Arc<Line>>, About), PerfError> {
    control.set_nodelay();
    message::write(control, &Message::Test { plan: plan.clone(), about: host.about() }).await?;
    let Message::Accepted { session, about } = answer(control, remote).await? else {
        return Err(PerfError::Confused("the server did not accept and did not refuse"));
    };
    let mut lines = Vec::new();
    for stream in 0..plan.streams {
        let link = host.connect(remote).await?;
        message::write(&link, &Message::Stream { session: session.clone(), stream }).await?;
        lines.push(Line::new(Arc::new(link), stream));
    }
    match answer(control, remote).await? {
        Message::Ready => Ok((lines, about.tamed())),
        _ => Err(PerfError::Confused("the server was not ready when it should have been")),
    }
}

/// The protocols of the connections.
fn streams(lines: &[Arc<Line>]) -> Vec<StreamReport> {
    let report = |line: &Arc<Line>| {
        let (protocol, fallback) = line.link.protocol();
        StreamReport { stream: line.stream, protocol: protocol.to_owned(), fallback }
    };
    lines.iter().map(report).collect()
}

/// The two directions, up first.
type Sides = (Option<Side>, Option<Side>);

/// Results of both ends.
struct Measured {
    ours: Sides,
    theirs: Sides,
    interrupted: Option<Stopper>,
}

/// The outcome of `work`, unless `stop` completes before.
async fn before<T>(
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = Result<T, PerfError>>,
) -> Result<T, PerfError> {
    tokio::select! {
        outcome = work => outcome,
        () = stop => Err(PerfError::Stopped),
    }
}

/// Measures at this end, and receives the server's measurements.
async fn measure(
    control: &Arc<Link>,
    transfers: &Transfers,
    plan: &Plan,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    tell: Mutex<impl FnMut(Progress<'_>) + Send>,
) -> Result<Measured, PerfError> {
    let senders: Mutex<Option<Interval>> = Mutex::new(None);
    let (tell, senders) = (&tell, &senders);
    let side = |up: bool, wanted: bool| async move {
        if !wanted {
            return Ok(None);
        }
        let end = if up { End::Sender } else { End::Receiver };
        let meter = Meter::new(end, &transfers.lines, plan);
        let told = |interval: &Interval| {
            let theirs = senders.lock().unwrap_or_else(PoisonError::into_inner);
            let senders = theirs.as_ref().filter(|_| !up);
            (tell.lock().unwrap_or_else(PoisonError::into_inner))(Progress { up, interval, senders });
        };
        let side = meter.run(transfers, told).await;
        if transfers.ended_early(end, plan) { Err(PerfError::Confused(EARLY)) } else { Ok(Some(side)) }
    };
    let both = async { tokio::try_join!(side(true, plan.direction.is_up()), side(false, plan.direction.is_down())) };
    let (mut both, mut theirs) = (pin!(both), pin!(results(control, senders)));
    let ours = tokio::select! {
        ours = &mut both => ours?,
        early = &mut theirs => {
            // It was told to end.
            let theirs = early?;
            transfers.stop();
            return Ok(Measured { ours: both.await?, theirs, interrupted: Some(Stopper::Server) });
        }
        () = &mut stop => {
            transfers.stop();
            let ours = both.await?;
            let ask = async {
                message::write(control, &Message::Stop).await?;
                theirs.await
            };
            let theirs = timeout(STOPPING, ask).await.ok().and_then(Result::ok).unwrap_or_default();
            return Ok(Measured { ours, theirs, interrupted: Some(Stopper::Client) });
        }
    };
    let ask = async {
        message::write(control, &Message::Finished).await?;
        theirs.await
    };
    tokio::select! {
        theirs = timeout(RESULTS, ask) => {
            Ok(Measured { ours, theirs: theirs.map_err(|_| PerfError::Silent)??, interrupted: None })
        }
        () = stop => Ok(Measured { ours, theirs: Sides::default(), interrupted: Some(Stopper::Client) }),
    }
}

/// Reads the server's messages up to its results.
async fn results(control: &Link, senders: &Mutex<Option<Interval>>) -> Result<Sides, PerfError> {
    loop {
        match message::read(control, LONG).await.map_err(|error| PerfError::of_message(error, control.peer()))? {
            Message::Interval { interval } => {
                *senders.lock().unwrap_or_else(PoisonError::into_inner) = Some(interval.tamed());
            }
            Message::Results { up, down } => return Ok((up.map(Side::tamed), down.map(Side::tamed))),
            _ => return Err(PerfError::Confused("the server said something out of turn")),
        }
    }
}

/// Closes the control connection, and waits briefly for the server to close it too.
async fn close(control: &Link) {
    control.shutdown();
    let mut scratch = control.scratch();
    // Further data is discarded.
    let _ = timeout(CLOSING, async { while control.swallow(&mut scratch).await.is_ok_and(|bytes| bytes > 0) {} }).await;
}
