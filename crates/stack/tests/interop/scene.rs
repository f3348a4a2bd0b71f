//! A test's surroundings, in a namespace of its own: our stack and the kernel with middleboxes on all paths between them,
//! and small programs that both can run.

use crate::kernel::{ip, mptcp_socket};
use crate::middlebox::Middlebox;
use crate::pair::{config, ours, theirs};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration;
use anabranch_sim::LinkConfig;
use anabranch_stack::PathReport;
use anabranch_stack::{Stack, StackConfig, Stream};
use anabranch_system::Namespace;
use bytes::{Buf, Bytes};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use socket2::Socket;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use tokio::io::AsyncWrite;
use tokio::runtime::Runtime;

/// The port that tests listen on.
pub const PORT: u16 = 7;

/// What is around a test.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Address family.
    pub v6: bool,
    /// A path for each: the link towards us, the link towards the kernel.
    pub links: Vec<[LinkConfig; 2]>,
    /// Draws the links' luck.
    pub seed: u64,
    /// Settings of the kernel below `/proc/sys/net`.
    pub settings: Vec<(&'static str, String)>,
    /// Our policies.
    pub combination: Combination,
    /// The kernel joins our addresses, or waits to be joined at its own.
    pub kernel_joins: bool,
    /// Seconds after which the test has failed.
    pub deadline: u64,
}

impl Scene {
    /// So many perfect paths.
    pub fn new(paths: usize, v6: bool) -> Self {
        Self {
            v6,
            links: vec![[LinkConfig::default(), LinkConfig::default()]; paths],
            seed: 1,
            settings: Vec::new(),
            combination: Combination::default(),
            kernel_joins: true,
            deadline: 60,
        }
    }

    /// With a setting of the kernel.
    pub fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// With links of so much one-way delay, milliseconds, and loss.
    pub fn links(mut self, delay: u64, loss: f64) -> Self {
        use anabranch_sim::link::{DelayModel, LossModel};
        for link in self.links.iter_mut().flatten() {
            link.delay = DelayModel::Fixed(Duration::from_millis(delay));
            link.loss = if loss > 0.0 { vec![LossModel::Uniform(loss)] } else { Vec::new() };
        }
        self
    }

    /// Runs `test` in a fresh namespace, within a runtime, and looks that neither side keeps anything.
    pub fn run<T: Send, F: Future<Output = T>>(self, test: impl FnOnce(Hosts) -> F + Send) -> T {
        let namespace = Namespace::new().expect("namespaces were there a moment ago");
        namespace.run(|| self.inside(test)).expect("it can be entered")
    }

    fn inside<T, F: Future<Output = T>>(self, test: impl FnOnce(Hosts) -> F) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let runtime = Abandoned(Some(runtime));
        runtime.0.as_ref().expect("it is there until it is dropped").block_on(async {
            ip("link set lo up");
            for (name, value) in &self.settings {
                let file = format!("/proc/sys/net/{name}");
                std::fs::write(&file, value).unwrap_or_else(|error| panic!("{file}: {error}"));
            }
            ip("mptcp limits set subflows 8 add_addr_accepted 8");
            let path_manager = self.combination.build_path_manager().expect("a path manager of ours");
            let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
            let paths = (0..).zip(&self.links);
            let attach = |(path, links): (u8, _)| Middlebox::attach(&stack, path, self.v6, links, self.seed);
            let middleboxes: Vec<Middlebox> = paths.map(attach).collect();
            if !self.kernel_joins {
                for path in 1..middleboxes.len() {
                    ip(&format!("mptcp endpoint add {} signal", theirs(path as u8, self.v6)));
                }
            }
            let _capture = Capture::begin();
            let driver = tokio::spawn(driver);
            let deadline = std::time::Duration::from_secs(self.deadline);
            let (v6, combination, listener) = (self.v6, self.combination, RefCell::default());
            let hosts = Hosts { stack: stack.clone(), middleboxes, v6, combination, listener };
            let outcome = tokio::time::timeout(deadline, test(hosts)).await.expect("the test ends in time");
            stack.shutdown();
            driver.await.expect("the driver does not panic").expect("the driver ends well");
            outcome
        })
    }
}

/// A runtime that waits for nobody when a test has failed: threads may hang in the kernel's sockets.
struct Abandoned(Option<Runtime>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// `dumpcap` at work where `ANABRANCH_CAPTURE` names a file: for the repetition of a single test.
pub struct Capture(Child);

impl Capture {
    /// Begins, if it is wanted.
    pub fn begin() -> Option<Self> {
        let file = std::env::var("ANABRANCH_CAPTURE").ok()?;
        let words = ["-q", "-i", "any", "-s", "200", "-w", &file];
        let child = Command::new("dumpcap").args(words).stderr(Stdio::null()).spawn().expect("dumpcap is there");
        std::thread::sleep(std::time::Duration::from_millis(500));
        Some(Self(child))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // What it has not read yet would be lost.
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        // Gone already is good enough.
        let _ = nix::sys::signal::kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT);
        let _ = self.0.wait();
    }
}

/// Who is there.
pub struct Hosts {
    /// We.
    pub stack: Stack,
    /// What lies between, path by path.
    pub middleboxes: Vec<Middlebox>,
    /// Address family.
    pub v6: bool,
    combination: Combination,
    /// The kernel's.
    listener: RefCell<Option<Socket>>,
}

/// The port at all addresses.
fn any(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, address.port())
}

impl Hosts {
    /// Our settings for a connection: those of the scene's policies, and no long waits after the end.
    pub fn config(&self) -> ConnectionConfig {
        let mut config = config(&self.combination);
        config.tcp.time_wait = Duration::from_millis(200);
        config.tcp.fin_wait_2 = Duration::from_secs(2);
        config
    }

    /// Our address on the first path, and the port of tests.
    pub fn our_address(&self) -> SocketAddr {
        SocketAddr::new(ours(0, self.v6), PORT)
    }

    /// The kernel's.
    pub fn kernel_address(&self) -> SocketAddr {
        SocketAddr::new(theirs(0, self.v6), PORT)
    }

    /// The kernel's on another path.
    pub fn kernel_ip(&self, path: u8) -> IpAddr {
        theirs(path, self.v6)
    }

    /// A connection that we open to the kernel: our end and the kernel's.
    pub async fn we_open(&self, config: ConnectionConfig) -> (Stream, Socket) {
        self.we_open_to(mptcp_socket(self.kernel_address()), config).await
    }

    /// The same to a listener of the caller's making. It listens to the end: the kernel takes joins only at ports that
    /// somebody listens on.
    pub async fn we_open_to(&self, listener: Socket, config: ConnectionConfig) -> (Stream, Socket) {
        let address = self.kernel_address();
        let listener = self.listening(listener);
        let stream = self.stack.connect(None, address, config).await.expect("the kernel accepts");
        let (socket, _) = blocking(move || listener.accept()).await.expect("we connected");
        (stream, socket)
    }

    /// The kernel's listener: `fresh` if there is none yet.
    fn listening(&self, fresh: Socket) -> Socket {
        let mut listener = self.listener.borrow_mut();
        let listener = listener.get_or_insert_with(|| {
            fresh.set_reuse_address(true).expect("an option that sockets have");
            fresh.bind(&any(self.kernel_address()).into()).expect("the port is free");
            fresh.listen(16).expect("it can listen");
            fresh
        });
        listener.try_clone().expect("a descriptor")
    }

    /// A connection that the kernel opens to us.
    pub async fn the_kernel_opens(&self, config: ConnectionConfig) -> (Stream, Socket) {
        self.the_kernel_opens_with(mptcp_socket(self.our_address()), config).await
    }

    /// The same with a socket of the caller's making.
    pub async fn the_kernel_opens_with(&self, socket: Socket, config: ConnectionConfig) -> (Stream, Socket) {
        let address = self.our_address();
        let listener = self.stack.listen(PORT, config).expect("the port is free");
        let connecting = blocking(move || socket.connect(&address.into()).map(|()| socket));
        let (stream, socket) = tokio::join!(listener.accept(), connecting);
        (stream.expect("the kernel connects"), socket.expect("we accept"))
    }

    /// A connection in either direction; the kernel connects or listens with `socket`.
    pub async fn open_with(&self, role: Role, socket: Socket, config: ConnectionConfig) -> (Stream, Socket) {
        match role {
            Role::WeOpen => self.we_open_to(socket, config).await,
            Role::TheKernelOpens => self.the_kernel_opens_with(socket, config).await,
        }
    }

    /// A connection in either direction.
    pub async fn open(&self, role: Role, config: ConnectionConfig) -> (Stream, Socket) {
        match role {
            Role::WeOpen => self.we_open(config).await,
            Role::TheKernelOpens => self.the_kernel_opens(config).await,
        }
    }

    /// Waits until neither side has anything left of its connections but the kernel's TIME-WAIT; hung tests end by their
    /// deadline.
    pub async fn nothing_lingers(&self) {
        // Looking starts two programs, so it is done less and less often.
        let mut pause = std::time::Duration::from_millis(20);
        loop {
            let left = lingering();
            let ours = self.stack.connection_count();
            if left.is_empty() && ours == 0 {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(std::time::Duration::from_millis(640));
        }
    }
}

/// Our end of a connection, to read and write at the same time.
pub struct Shared(RefCell<Stream>);

impl Shared {
    /// It is shared on one thread.
    pub fn new(stream: Stream) -> Self {
        Self(RefCell::new(stream))
    }

    /// The next bytes; none at the end.
    pub async fn read(&self, most: usize) -> io::Result<Bytes> {
        poll_fn(|context| self.0.borrow().poll_read_bytes(context, most)).await
    }

    /// Writes all.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut left = Bytes::copy_from_slice(bytes);
        while !left.is_empty() {
            let taken = poll_fn(|context| self.0.borrow().poll_write_bytes(context, left.clone())).await?;
            left.advance(taken);
        }
        Ok(())
    }

    /// Writes no more.
    pub async fn close(&self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(context)).await
    }

    /// Payload carried by each subflow, bytes: received or sent.
    pub fn paths_carried(&self, received: bool) -> Vec<u64> {
        let reports = self.0.borrow().paths();
        let carried = |path: &PathReport| {
            if received { path.subflow.bytes_received } else { path.subflow.view.counters.bytes_sent }
        };
        reports.iter().map(carried).collect()
    }

    /// What our end knows.
    pub fn describe(&self) -> String {
        let stream = self.0.borrow();
        let (view, stats, receiving) = (stream.view(), stream.stats(), stream.receive_state());
        format!("{:?} {view:?} {:?} {stats:?} {receiving:?}", stream.protocol(), stream.subflows())
    }
}

/// Who opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Our stack.
    WeOpen,
    /// The kernel.
    TheKernelOpens,
}

impl Role {
    /// Both, with words for a test's name.
    pub const ALL: [(Self, &'static str); 2] = [(Self::WeOpen, "we_open"), (Self::TheKernelOpens, "the_kernel_opens")];
}

/// Runs something that blocks, on a thread that was begun in the scene's namespace.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The kernel's sockets, MPTCP and TCP, that are neither listening nor in TIME-WAIT, one a line.
pub fn lingering() -> Vec<String> {
    let mut lines = Vec::new();
    for kind in ["-HMna", "-Htna"] {
        let output = Command::new("ss").arg(kind).output().expect("ss is there where ip is");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rests = |line: &&str| line.starts_with("LISTEN") || line.starts_with("TIME-WAIT");
        lines.extend(text.lines().filter(|line| !rests(line)).map(str::to_owned));
    }
    lines
}

/// So many bytes that a mistake of place shows in.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
