//! Writes a relay's input and output to a capture file, in its own thread: the relay must not wait for a disk.

use anabranch_policy::time::Instant;
use anabranch_wire::pcapng::{Direction, Interface, PacketNote, Writer};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Most queued packets.
const WAITING: usize = 16_384;

struct Entry {
    port: usize,
    at: Instant,
    direction: Direction,
    bytes: Vec<u8>,
}

/// A capture being written: an interface per port; times count from the start of the relay.
#[derive(Debug)]
pub struct Capture {
    entries: SyncSender<Entry>,
    writer: JoinHandle<io::Result<()>>,
    not_written: u64,
}

impl Capture {
    /// Creates a file with an interface per port, with these names.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn start(path: &Path, ports: &[String]) -> io::Result<Self> {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?), "Anabranch")?;
        let interfaces = ports.iter().map(|name| writer.add_interface(name, "")).collect::<io::Result<Vec<_>>>()?;
        let (entries, waiting) = sync_channel(WAITING);
        let work = move || write(writer, &interfaces, &waiting);
        let writer = thread::Builder::new().name("capture".to_owned()).spawn(work)?;
        Ok(Self { entries, writer, not_written: 0 })
    }

    /// Records a packet from the host at a port.
    pub(super) fn came(&mut self, at: Instant, port: usize, packet: &[u8]) {
        self.add(at, port, packet, Direction::Outbound);
    }

    /// Records a packet delivered to the host at a port.
    pub(super) fn went(&mut self, at: Instant, port: usize, packet: &[u8]) {
        self.add(at, port, packet, Direction::Inbound);
    }

    /// The direction is that of the host: its own packets are outbound.
    fn add(&mut self, at: Instant, port: usize, packet: &[u8], direction: Direction) {
        let entry = Entry { port, at, direction, bytes: packet.to_vec() };
        self.not_written += u64::from(self.entries.try_send(entry).is_err());
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Captured {
        drop(self.entries);
        match self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(()) => Captured { missing: self.not_written, error: None },
            Err(error) => Captured { missing: self.not_written, error: Some(error.to_string()) },
        }
    }
}

/// What became of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Packets that are missing because the disk was too slow or writing had ended.
    pub missing: u64,
    /// Why writing ended early; what was written before is in the file, except its end.
    pub error: Option<String>,
}

fn write(mut writer: Writer<BufWriter<File>>, interfaces: &[Interface], waiting: &Receiver<Entry>) -> io::Result<()> {
    for entry in waiting {
        let Some(interface) = interfaces.get(entry.port) else { continue };
        let note = PacketNote { direction: Some(entry.direction), comment: None };
        writer.write_packet(*interface, entry.at.as_nanos(), &entry.bytes, note)?;
    }
    writer.finish().map(drop)
}
