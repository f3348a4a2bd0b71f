//! One run in real time: a sender and its paths; the receiver is always Linux.

use super::who::Who;
use crate::calibrate::cases::Span;
use crate::calibrate::emulated::linux_end::{self, Settings, set_up_client, set_up_server, within};
use crate::calibrate::emulated::{Done, PORT, client_addresses, failed, ours, server_address, start_some_links};
use crate::calibrate::meter::Meter;
use crate::calibrate::side_by_side::RealTimeRun;
use anabranch_emulate::Report;
use anabranch_lab::journal::key;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::simulation;
use anabranch_lab::sweep::cast::{Ends, Entrant};
use anabranch_lab::sweep::journal::Line;
use anabranch_lab::sweep::network::Load;
use anabranch_lab::sweep::point::Point;
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{Stack, Stream};
use anabranch_system::Namespace;
use anabranch_system::raise_priority;
use socket2::Socket;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// Seed of the links' random streams, the same for all.
const SEED: u64 = 1;
/// The kernel's default congestion control.
const CONGESTION: &str = "cubic";
/// A congestion control that tolerates random loss.
const BBR: &str = "bbr";

/// Names in the results file, both in Mbit/s: in the measured span, and from the first SYN to its end.
const THROUGHPUT: &str = "throughput";
const FROM_FIRST_SYN: &str = "from_first_syn";

/// What a run carried, Mbit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goodput {
    /// In the measured span.
    pub measured: f64,
    /// From the first SYN to its end.
    pub from_first_syn: f64,
}

impl Goodput {
    /// Of a line of the results file; none if an earlier version wrote it.
    pub fn of(line: &Line) -> Option<Self> {
        let of = |name| line.measured.get(name).copied();
        Some(Self { measured: of(THROUGHPUT)?, from_first_syn: of(FROM_FIRST_SYN)? })
    }
}

/// A run to execute.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    pub point: &'a Point,
    /// The sender.
    pub who: Who,
    ours: &'a Entrant,
}

/// Whether the kernel has BBR.
pub fn has_bbr() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .is_ok_and(|names| names.split_whitespace().any(|name| name == BBR))
}

/// The runs of a point: Anabranch, the kernel's MPTCP, the same with BBR if `bbr`, and TCP on each path.
pub fn of_point<'a>(point: &'a Point, ours: &'a Entrant, bbr: bool) -> Vec<Trial<'a>> {
    let singles = (0..point.paths.len()).map(Who::Tcp);
    let all = [Who::Ours, Who::Kernel].into_iter().chain(bbr.then_some(Who::KernelBbr));
    all.chain(singles).map(|who| Trial { point, who, ours }).collect()
}

impl RealTimeRun for Trial<'_> {
    type Done = Done;

    fn rate(&self) -> f64 {
        self.paths().into_iter().filter_map(|place| self.point.paths.get(place)).map(|path| path.rate).sum()
    }

    fn name(&self) -> String {
        format!("point {}, {}", self.point.number, self.policy())
    }

    fn run(&self) -> Result<Done, String> {
        raise_priority();
        let scenario = self.point.scenario(self.ours, Load::Bulk).map_err(|error| error.to_string())?;
        match self.who {
            Who::Ours => self.run_ours(&scenario),
            Who::Kernel | Who::KernelBbr | Who::Tcp(_) => self.run_kernel(&scenario),
        }
    }

    fn report(done: &Done) -> &Report {
        &done.report
    }
}

impl Trial<'_> {
    fn paths(&self) -> Vec<usize> {
        match self.who {
            Who::Tcp(path) => vec![path],
            Who::Ours | Who::Kernel | Who::KernelBbr => (0..self.point.paths.len()).collect(),
        }
    }

    fn policy(&self) -> String {
        match self.who {
            Who::Ours => self.ours.name().to_owned(),
            Who::Kernel => "kernel".to_owned(),
            Who::KernelBbr => "kernel_bbr".to_owned(),
            Who::Tcp(_) => "kernel_tcp".to_owned(),
        }
    }

    /// Key of the run in the results file.
    pub fn key(&self) -> String {
        let text = self.point.text(Ends::Ours, Load::Bulk);
        let policies = if self.who == Who::Ours { self.ours.fingerprint() } else { CONGESTION.to_owned() };
        let paths: Vec<String> = self.paths().iter().map(usize::to_string).collect();
        key(&["real time", &text, &self.policy(), &policies, &paths.join(","), &SEED.to_string()])
    }

    /// Line of the results file.
    pub fn line(&self, program: &str, done: &Done) -> Line {
        let lateness = done.report.lateness.late_share();
        let measured = BTreeMap::from([
            (THROUGHPUT.to_owned(), done.reading.goodput),
            (FROM_FIRST_SYN.to_owned(), done.reading.from_first_syn),
            ("pause".to_owned(), done.reading.pause),
            ("late_share".to_owned(), lateness),
            ("discarded".to_owned(), done.discarded as f64),
        ]);
        Line {
            key: self.key(),
            program: program.to_owned(),
            point: self.point.number,
            policy: self.policy(),
            paths: self.paths(),
            measured,
        }
    }

    fn meter(&self) -> Meter {
        let span = self.point.span;
        Meter::new(Instant::now(), Span { warm_up: span.warm_up, measured: span.counted })
    }

    /// Linux socket settings of an end.
    fn settings(&self, receives: bool) -> Settings<'static> {
        Settings {
            multipath: !matches!(self.who, Who::Tcp(_)),
            receive_buffer: self.point.receive_buffer.filter(|_| receives),
            congestion: if self.who == Who::KernelBbr { BBR } else { CONGESTION },
        }
    }

    /// Linux at both ends.
    fn run_kernel(&self, scenario: &Scenario) -> Result<Done, String> {
        let (paths, download) = (self.paths(), self.point.download);
        let client = Namespace::new().map_err(failed("make a namespace"))?;
        let server = Namespace::new().map_err(failed("make a namespace"))?;
        let clients = within(&client, || set_up_client(paths.len()))?;
        let end = within(&server, || set_up_server(paths.len()))?;
        let relay = start_some_links(scenario, &paths, SEED, clients, end)?;
        let listener = within(&server, || self.settings(!download).listen()).map_err(failed("listen"))?;
        let socket = within(&client, || self.settings(download).client()).map_err(failed("make a socket"))?;
        let meter = self.meter();
        let measured = std::thread::scope(|scope| {
            let near = scope.spawn(move || carry_as_client(socket, download, meter));
            let far = carry_as_server(&listener, !download, meter);
            let near = near.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(near?.or(far?))
        });
        let discarded = self.discarded(if download { &client } else { &server })?;
        let report = relay.stop().map_err(failed("stop the links"))?;
        let measured: Option<Meter> = measured.map_err(|error: io::Error| failed("carry data")(error))?;
        Ok(Done { reading: measured.unwrap_or(meter).reading(), report, discarded })
    }

    /// Anabranch sends, Linux receives.
    fn run_ours(&self, scenario: &Scenario) -> Result<Done, String> {
        let (paths, download) = (self.paths(), self.point.download);
        let policies = &self.ours.contender.policies;
        let linux = Namespace::new().map_err(failed("make a namespace"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(failed("make a runtime"))?.block_on(async {
            let own = if download { vec![server_address()] } else { client_addresses(paths.len()) };
            let (stack, mut engine) = ours::host(policies, &own)?;
            let (clients, server) = if download {
                let server = engine.pop().ok_or("a host without a device")?;
                (within(&linux, || set_up_client(paths.len()))?, server)
            } else {
                (engine, within(&linux, || set_up_server(paths.len()))?)
            };
            let relay = start_some_links(scenario, &paths, SEED, clients, server)?;
            let settings = self.settings(true);
            let make = || if download { settings.client() } else { settings.listen() };
            let socket = within(&linux, make)?;
            let config = simulation::connection(scenario, &self.ours.contender);
            let meter = self.meter();
            let sender = Sender::begin(&stack, config, download)?;
            let reader = std::thread::spawn(move || {
                raise_priority();
                if download { carry_as_client(socket, true, meter) } else { carry_as_server(&socket, true, meter) }
            });
            let over = tokio::time::Instant::from_std(meter.end());
            let sent = tokio::time::timeout_at(over, sender.send()).await;
            let measured = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            stack.shutdown();
            let discarded = self.discarded(&linux)?;
            let report = relay.stop().map_err(failed("stop the links"))?;
            if let Ok(Err(error)) = sent {
                return Err(error);
            }
            let measured = measured.map_err(failed("receive"))?;
            Ok(Done { reading: measured.unwrap_or(meter).reading(), report, discarded })
        })
    }

    /// Segments that Linux dropped after acknowledging them.
    fn discarded(&self, receiver: &Namespace) -> Result<u64, String> {
        within(receiver, || linux_end::counter("MPTcpExt", "NoDSSInWindow"))
    }
}

/// The sending end of Anabranch.
enum Sender {
    Server(anabranch_stack::Listener),
    Client(Stack, Box<ConnectionConfig>),
}

impl Sender {
    fn begin(stack: &Stack, config: ConnectionConfig, download: bool) -> Result<Self, String> {
        if !download {
            return Ok(Self::Client(stack.clone(), Box::new(config)));
        }
        stack.listen(PORT, config).map(Self::Server).map_err(|error| error.to_string())
    }

    /// Sends as much as it can.
    async fn send(self) -> Result<(), String> {
        let stream: Stream = match &self {
            Self::Server(listener) => listener.accept().await.ok_or("the stack was shut down")?,
            Self::Client(stack, config) => {
                let target = SocketAddr::new(server_address(), PORT);
                let stream = stack.connect(client_addresses(1).pop(), target, (**config).clone()).await;
                stream.map_err(|error| error.to_string())?
            }
        };
        ours::write_for_ever(&stream).await
    }
}

/// The program at the client; returns its counts if it `reads`.
fn carry_as_client(socket: Socket, reads: bool, meter: Meter) -> io::Result<Option<Meter>> {
    linux_end::connect(&socket, meter.end())?;
    carry(&socket, reads, meter)
}

/// The program at the server.
fn carry_as_server(listener: &Socket, reads: bool, meter: Meter) -> io::Result<Option<Meter>> {
    match linux_end::accept(listener, meter.end())? {
        Some(stream) => carry(&stream, reads, meter),
        None => Ok(None),
    }
}

fn carry(stream: &Socket, reads: bool, mut meter: Meter) -> io::Result<Option<Meter>> {
    if !reads {
        linux_end::write_until(stream, meter.end())?;
        return Ok(None);
    }
    linux_end::read_until(stream, &mut meter)?;
    Ok(Some(meter))
}
