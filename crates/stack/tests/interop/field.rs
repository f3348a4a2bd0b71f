//! A stack of ours and the kernel with middleboxes on all paths, where the test itself decides which subflows there are
//! and hears what our path manager hears.

use crate::kernel::{accept, connect, ip, mptcp_listener};
use crate::middlebox::{Middlebox, Seen, Way};
use crate::pair::{config, ours, theirs, with_stack};
use crate::scene::Capture;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::path_manager::{CloseReason, ForwardDelays, Measurements, PathAction, PathEvent, PathManager};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration as Span, Instant};
use anabranch_sim::LinkConfig;
use anabranch_stack::{Stack, Stream};
use anabranch_wire::MptcpOption;
use socket2::Socket;
use std::future::Future;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The port that tests listen on.
pub const PORT: u16 = 7;

/// What our path manager heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// The peer announced an address.
    Announced(AddressId, SocketAddr),
    /// The peer withdrew an address.
    Removed(AddressId),
    /// The peer changed a priority.
    Priority(SubflowId, bool),
    /// A subflow between a local and a remote address, perhaps a backup.
    Open(SubflowId, AddressId, AddressId, bool),
    /// A subflow ended.
    Closed(SubflowId, CloseReason),
}

/// The test's wire to our path manager.
#[derive(Clone, Default)]
pub struct Orders(Arc<Mutex<(Vec<PathAction>, Vec<Heard>)>>);

/// A path manager, or none, that also does what a test orders.
struct Obedient {
    orders: Orders,
    inner: Option<Box<dyn PathManager>>,
}

impl PathManager for Obedient {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        if let Some(inner) = &mut self.inner {
            inner.handle(now, event, actions);
        }
        let mut orders = self.orders.0.lock().expect("nobody panicked with it");
        actions.append(&mut orders.0);
        let heard = match *event {
            PathEvent::AddressAnnounced { id, remote, .. } => Heard::Announced(id, remote),
            PathEvent::AddressRemoved { id, .. } => Heard::Removed(id),
            PathEvent::SubflowPriority { subflow, backup, .. } => Heard::Priority(subflow, backup),
            PathEvent::SubflowEstablished { subflow, local, remote, backup, .. } => {
                Heard::Open(subflow, local, remote, backup)
            }
            PathEvent::SubflowClosed { subflow, reason, .. } => Heard::Closed(subflow, reason),
            _ => return,
        };
        orders.1.push(heard);
    }
    fn measurements(&self) -> Measurements {
        self.inner.as_ref().map_or(Measurements::Never, |inner| inner.measurements())
    }
    fn forward_delays(&self) -> ForwardDelays {
        self.inner.as_ref().map_or(ForwardDelays::Unmeasured, |inner| inner.forward_delays())
    }
}

/// Who is there.
pub struct Field {
    pub stack: Stack,
    pub boxes: Vec<Middlebox>,
    pub v6: bool,
    orders: Orders,
}

/// The kernel's end of a connection. It listens as long as this lives, since joins come to a listener.
pub struct Kernel {
    pub socket: Socket,
    _listener: Option<Socket>,
}

impl Kernel {
    /// The kernel's end, and its listener if it accepted the connection.
    pub fn new(socket: Socket, listener: Option<Socket>) -> Self {
        Self { socket, _listener: listener }
    }
}

/// Runs a test in a fresh namespace with so many paths. The path manager is `full_mesh` with settings such as
/// `path_manager.announce=both`, or with none of them nobody but the test.
pub fn field<F: Future<Output = ()>>(paths: u8, v6: bool, mesh: Option<&str>, test: impl FnOnce(Field) -> F + Send) {
    let all = vec![links(); usize::from(paths)];
    field_of(&all, v6, mesh.map(|settings| format!("path_manager=full_mesh {settings}")).as_deref(), test);
}

/// The same with links of the test's own, and a path manager in words, or none.
pub fn field_of<F: Future<Output = ()>>(
    links: &[[LinkConfig; 2]],
    v6: bool,
    path_manager: Option<&str>,
    test: impl FnOnce(Field) -> F + Send,
) {
    let orders = Orders::default();
    let inner = path_manager.map(|words| {
        let combination: Combination = words.parse().expect("words of ours");
        combination.build_path_manager().expect("a path manager of ours")
    });
    let manager = Obedient { orders: orders.clone(), inner };
    with_stack(Box::new(manager), |stack| async move {
        let attach = |(path, links)| Middlebox::attach(&stack, path, v6, links, 1);
        let boxes = (0..).zip(links).map(attach).collect();
        ip("mptcp limits set subflows 8 add_addr_accepted 8");
        let _capture = Capture::begin();
        test(Field { stack, boxes, v6, orders }).await;
    });
}

/// The links of a path: long and slow enough that a transfer fills one path and needs the other.
pub fn links() -> [LinkConfig; 2] {
    let link = LinkConfig::new(Rate::from_bits_per_second(40_000_000), Span::from_millis(5), 1_000);
    [link.clone(), link]
}

impl Field {
    /// Default settings.
    pub fn config(&self) -> ConnectionConfig {
        config(&Combination::default())
    }

    /// A connection that we open.
    pub async fn we_open(&self) -> (Stream, Kernel) {
        self.we_open_with(self.config()).await
    }

    /// The same with settings of ours.
    pub async fn we_open_with(&self, config: ConnectionConfig) -> (Stream, Kernel) {
        let listener = mptcp_listener(self.v6, PORT);
        let kept = listener.try_clone().expect("a descriptor more");
        let socket = accept(listener, |socket| socket);
        let address = SocketAddr::new(theirs(0, self.v6), PORT);
        let stream = self.stack.connect(None, address, config).await.expect("the kernel accepts");
        (stream, Kernel::new(socket.done().await, Some(kept)))
    }

    /// A connection that the kernel opens.
    pub async fn the_kernel_opens(&self) -> (Stream, Kernel) {
        self.the_kernel_opens_with(self.config()).await
    }

    /// The same with settings of ours.
    pub async fn the_kernel_opens_with(&self, config: ConnectionConfig) -> (Stream, Kernel) {
        let listener = self.stack.listen(PORT, config).expect("the port is free");
        let socket = connect(SocketAddr::new(ours(0, self.v6), PORT), |socket| socket);
        let stream = listener.accept().await.expect("the kernel connects");
        (stream, Kernel::new(socket.done().await, None))
    }

    /// Who opens, in turn.
    pub async fn open(&self, we: bool) -> (Stream, Kernel) {
        if we { self.we_open().await } else { self.the_kernel_opens().await }
    }

    /// Has our path manager do something.
    pub fn order(&self, action: PathAction) {
        self.orders.0.lock().expect("nobody panicked with it").0.push(action);
        // Any event makes it look at its orders: an address that never was is gone.
        self.stack.address_down(AddressId(250));
    }

    /// Opens a subflow from our address to the kernel's, by identifier.
    pub fn join(&self, stream: &Stream, local: u8, remote: u8) {
        let (connection, local, remote) = (stream.id(), AddressId(local), AddressId(remote));
        self.order(PathAction::CreateSubflow { connection, local, remote, backup: false });
    }

    /// What our path manager heard that fits.
    pub fn heard(&self, fits: impl Fn(&Heard) -> bool) -> Vec<Heard> {
        self.orders.0.lock().expect("nobody panicked with it").1.iter().filter(|heard| fits(heard)).copied().collect()
    }

    /// Waits until it has heard something that fits.
    pub async fn hear(&self, fits: impl Fn(&Heard) -> bool) -> Heard {
        until(|| !self.heard(&fits).is_empty()).await;
        self.heard(&fits)[0]
    }

    /// Waits for the news of a subflow besides the first; returns its id.
    pub async fn joined(&self) -> SubflowId {
        match self.hear(|heard| matches!(heard, Heard::Open(SubflowId(1..), ..))).await {
            Heard::Open(subflow, ..) => subflow,
            _ => unreachable!("only that fits"),
        }
    }

    /// Payload that came by on a path, bytes.
    pub fn carried(&self, path: usize, way: Way) -> usize {
        let on_path = self.boxes[path].seen(|seen| seen.way == way);
        on_path.iter().map(|seen| seen.packet.segment.payload.len()).sum()
    }

    /// Packets on any path with an MPTCP option that fits.
    pub fn with_option(&self, way: Way, fits: impl Fn(&MptcpOption) -> bool) -> Vec<Seen> {
        let of_way = |seen: &Seen| seen.way == way && seen.packet.segment.options.mptcp.iter().any(&fits);
        self.boxes.iter().flat_map(|middlebox| middlebox.seen(of_way)).collect()
    }
}

/// Waits until it is so; the test's deadline is the end of patience.
pub async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Sends so many bytes to the kernel, which reads them all.
pub async fn to_kernel(stream: &mut Stream, kernel: &Kernel, length: usize) {
    let mut socket = kernel.socket.try_clone().expect("a descriptor more");
    let reader = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; length];
        socket.read_exact(&mut bytes).expect("we send them");
        bytes
    });
    let bytes = crate::scene::pattern(length);
    stream.write_all(&bytes).await.expect("it is open");
    assert!(reader.await.expect("it reads") == bytes, "other bytes arrived at the kernel");
}

/// The kernel sends so many bytes, and we read them all.
pub async fn to_us(stream: &mut Stream, kernel: &Kernel, length: usize) {
    let mut socket = kernel.socket.try_clone().expect("a descriptor more");
    let bytes = crate::scene::pattern(length);
    let sent = bytes.clone();
    let writer = tokio::task::spawn_blocking(move || socket.write_all(&sent).expect("it is open"));
    let mut received = vec![0; length];
    stream.read_exact(&mut received).await.expect("the kernel sends them");
    writer.await.expect("it writes");
    assert!(received == bytes, "other bytes arrived here");
}

/// A few bytes each way: the connection lives, and both sides know that it is confirmed.
pub async fn talk(stream: &mut Stream, kernel: &Kernel) {
    to_kernel(stream, kernel, 100).await;
    to_us(stream, kernel, 100).await;
}

/// A test's name, and what it does with IPv6 or without.
pub type Test = (&'static str, fn(bool));

/// A module's tests, each in both families.
pub fn in_both_families(module: &str, tests: &[Test]) -> Vec<libtest_mimic::Trial> {
    let families = [(false, "ipv4"), (true, "ipv6")];
    let each = |&(name, test): &Test| {
        families.map(|(v6, family)| {
            libtest_mimic::Trial::test(format!("{module}::{name}_{family}"), move || {
                test(v6);
                Ok(())
            })
        })
    };
    tests.iter().flat_map(each).collect()
}
