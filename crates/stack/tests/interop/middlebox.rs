//! A relay between the kernel's TUN device and our stack: a link of the lab's in each direction, and a rule that may drop,
//! change or invent packets before they enter it.

use crate::kernel::ip;
use crate::pair::{ours, theirs};
use anabranch_policy::ids::AddressId;
use anabranch_policy::time::Instant;
use anabranch_sim::link::{Cargo, DropCause};
use anabranch_sim::{Link, LinkConfig};
use anabranch_stack::DeviceId;
use anabranch_stack::{Device, Stack};
use anabranch_system::Clock;
use anabranch_wire::Packet;
use bytes::Bytes;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Bytes of the largest IP packet.
const LARGEST: usize = 65_535;

/// Most packets taken from one side before the other's turn.
const BATCH: usize = 64;

/// Where a packet is going.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the kernel to our stack.
    ToUs,
    /// From our stack to the kernel.
    ToKernel,
}

/// A packet that came to the middlebox.
#[derive(Clone, Debug)]
pub struct Seen {
    pub way: Way,
    pub at: std::time::Instant,
    /// As it came.
    pub bytes: Bytes,
    pub packet: Packet,
    /// Whether anything went on in its place.
    pub passed: bool,
}

/// Packets that are remembered; a long transfer goes on without being written down.
const MEMORY: usize = 4_096;

/// Decides on each packet: what it returns goes on.
type Rule = Box<dyn FnMut(Way, Packet) -> Vec<Packet> + Send>;

/// Packets as bytes that no host sent.
type Inventions = Vec<(Way, Vec<u8>)>;

/// A path's relay. Clones are the same one; it ends with its device's pipe.
#[derive(Clone)]
pub struct Middlebox {
    /// Its device at our stack.
    pub device: DeviceId,
    rule: Arc<Mutex<Rule>>,
    inventions: Arc<Mutex<Inventions>>,
    memory: Arc<Mutex<Vec<Seen>>>,
    something_new: Arc<Notify>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Middlebox {
    /// A path with a relay in it: as [`crate::pair::attach`], with a link towards us and one towards the kernel.
    pub fn attach(stack: &Stack, path: u8, v6: bool, links: &[LinkConfig; 2], seed: u64) -> Self {
        let name = format!("path{path}");
        let tun = tun_rs::DeviceBuilder::new().name(&name).mtu(1500).build_sync().expect("a TUN device");
        tun.set_nonblocking(true).expect("it can be polled");
        let tun = watch(tun.as_fd().try_clone_to_owned().expect("a descriptor"));
        configure(path, v6);
        let (device, pipe) = Device::pipe().expect("a pipe");
        let pipe = watch(pipe);
        let device = stack.attach(device);
        stack.address_up(device, AddressId(path + 1), ours(path, v6)).expect("the device is there");
        let middlebox = Self {
            device,
            rule: Arc::new(Mutex::new(Box::new(|_, packet| vec![packet]))),
            inventions: Arc::default(),
            memory: Arc::default(),
            something_new: Arc::default(),
            task: Arc::default(),
        };
        let link = |link: &LinkConfig, way: &str| Link::new(link, seed, &format!("path {path} {way}"));
        let links = [link(&links[0], "to us"), link(&links[1], "to the kernel")];
        let relay = Relay { middlebox: middlebox.clone(), links, sides: [pipe, tun], clock: Clock::new() };
        let task = tokio::spawn(async move { relay.run().await.unwrap_or_default() });
        *middlebox.task.lock().expect("nobody panicked with it") = Some(task);
        middlebox
    }

    /// From now on this decides.
    pub fn obey(&self, rule: impl FnMut(Way, Packet) -> Vec<Packet> + Send + 'static) {
        *self.rule.lock().expect("no rule panicked") = Box::new(rule);
    }

    /// From now on everything passes.
    pub fn pass(&self) {
        self.obey(|_, packet| vec![packet]);
    }

    /// From now on nothing passes.
    pub fn swallow(&self) {
        self.obey(|_, _| Vec::new());
    }

    /// Puts a packet on the way.
    pub fn invent(&self, way: Way, packet: Packet) {
        let mut bytes = Vec::with_capacity(packet.wire_len());
        packet.emit(&mut bytes).expect("a test's packets can be written");
        self.invent_bytes(way, bytes);
    }

    /// The same with any IP packet.
    pub fn invent_bytes(&self, way: Way, packet: Vec<u8>) {
        self.inventions.lock().expect("nobody panicked with it").push((way, packet));
        self.something_new.notify_one();
    }

    fn remember(&self, seen: Seen) {
        let mut memory = self.memory.lock().expect("nobody panicked with it");
        if memory.len() < MEMORY {
            memory.push(seen);
        }
    }

    /// Packets that it saw so far and that fit, in order; it remembers the first few thousand.
    pub fn seen(&self, fits: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        self.memory.lock().expect("nobody panicked with it").iter().filter(|seen| fits(seen)).cloned().collect()
    }

    /// Waits until `count` packets that fit have come by; returns them.
    pub async fn wait(&self, count: usize, fits: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        loop {
            let fitting = self.seen(&fits);
            if fitting.len() >= count {
                return fitting;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Tears the kernel's device down at once; our end of the path swallows what it gets.
    pub fn remove_device(&self) {
        if let Some(task) = self.task.lock().expect("nobody panicked with it").take() {
            task.abort();
        }
    }
}

/// The kernel's side of a path: its address, and a way to all of our addresses for what is bound to the path.
fn configure(path: u8, v6: bool) {
    let name = format!("path{path}");
    if v6 {
        ip(&format!("addr add {}/64 dev {name} nodad", theirs(path, true)));
    } else {
        ip(&format!("addr add {}/24 dev {name}", theirs(path, false)));
    }
    ip(&format!("link set {name} up"));
    let family = if v6 { "-6" } else { "-4" };
    ip(&format!("{family} route add default dev {name} metric {}", 100 + u32::from(path)));
}

fn watch(descriptor: OwnedFd) -> AsyncFd<OwnedFd> {
    // SAFETY: an `OwnedFd` is open as long as it lives and always the same descriptor; nobody but the `AsyncFd` has it.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register(descriptor) };
    watched.expect("a runtime")
}

/// What a relay carries.
struct Bits;

impl Cargo for Bits {
    type Item = Vec<u8>;

    fn length(&self, item: &Vec<u8>) -> u32 {
        item.len() as u32
    }

    fn mark_congestion(&mut self, _item: &mut Vec<u8>) -> bool {
        false
    }

    fn corrupt(&mut self, item: &mut Vec<u8>, luck: u32) {
        let place = luck as usize % item.len();
        item[place] ^= 1 << (luck % 8);
    }

    fn duplicate(&mut self, item: &Vec<u8>) -> Vec<u8> {
        item.clone()
    }

    fn discard(&mut self, _item: Vec<u8>, _cause: DropCause) {}
}

/// The relay at work: index 0 is towards us, 1 towards the kernel.
struct Relay {
    middlebox: Middlebox,
    links: [Link<Vec<u8>>; 2],
    sides: [AsyncFd<OwnedFd>; 2],
    clock: Clock,
}

impl Relay {
    async fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; LARGEST];
        loop {
            self.deliver();
            let due = self.links.iter().map(Link::poll_timeout).min().unwrap_or(Instant::NEVER);
            let wait = if due == Instant::NEVER { 3_600_000_000_000 } else { due.since(self.clock.now()).as_nanos() };
            let [pipe, tun] = &self.sides;
            tokio::select! {
                ready = pipe.readable() => drop(ready?),
                ready = tun.readable() => drop(ready?),
                () = tokio::time::sleep(std::time::Duration::from_nanos(wait)) => {}
                () = self.middlebox.something_new.notified() => {}
            }
            self.take(Way::ToKernel, &mut buffer)?;
            self.take(Way::ToUs, &mut buffer)?;
            let inventions = std::mem::take(&mut *self.middlebox.inventions.lock().expect("nobody panicked"));
            inventions.into_iter().for_each(|(way, bytes)| self.offer_bytes(way, bytes));
        }
    }

    /// Reads what goes this way.
    fn take(&mut self, way: Way, buffer: &mut [u8]) -> io::Result<()> {
        let rule = Arc::clone(&self.middlebox.rule);
        let mut rule = rule.lock().expect("no rule panicked");
        for _ in 0..BATCH {
            let side = match way {
                Way::ToKernel => &self.sides[0],
                Way::ToUs => &self.sides[1],
            };
            let read = side.try_io(tokio::io::Interest::READABLE, |side| Ok(nix::unistd::read(side, buffer)?));
            let length = match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            // Neighbour discovery and the like end here.
            let bytes = Bytes::copy_from_slice(&buffer[..length]);
            let Ok(packet) = Packet::parse(&bytes) else { continue };
            let seen = Seen { way, at: std::time::Instant::now(), bytes, packet: packet.clone(), passed: true };
            let onwards = rule(way, packet);
            self.middlebox.remember(Seen { passed: !onwards.is_empty(), ..seen });
            onwards.iter().for_each(|packet| self.offer(way, packet));
        }
        Ok(())
    }

    fn offer(&mut self, way: Way, packet: &Packet) {
        let mut bytes = Vec::with_capacity(packet.wire_len());
        packet.emit(&mut bytes).expect("the rule keeps packets whole");
        self.offer_bytes(way, bytes);
    }

    fn offer_bytes(&mut self, way: Way, bytes: Vec<u8>) {
        self.links[usize::from(way == Way::ToKernel)].handle_packet(self.clock.now(), bytes, &mut Bits);
    }

    /// Hands over what has arrived. What is not taken is lost.
    fn deliver(&mut self) {
        let now = self.clock.now();
        for (link, side) in self.links.iter_mut().zip(&self.sides) {
            link.handle_timeout(now, &mut Bits);
            while let Some(bytes) = link.poll_delivery(now) {
                let _ = nix::unistd::write(side, &bytes);
            }
        }
    }
}
