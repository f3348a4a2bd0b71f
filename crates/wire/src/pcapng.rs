//! Writes capture files in the pcapng format, for Wireshark and similar programs (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

/// Link type of packets that begin with their IPv4 or IPv6 header (LINKTYPE_RAW).
const LINKTYPE_RAW: u16 = 101;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Shows the byte order of the section: little-endian.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION_TEXT: u16 = 3;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// An interface of a capture file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interface(u32);

/// Direction of a packet at its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// Metadata of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketNote<'a> {
    /// Direction, if known.
    pub direction: Option<Direction>,
    /// A comment for the reader.
    pub comment: Option<&'a str>,
}

/// A capture file being written: one section, raw IP, times in nanoseconds.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    interfaces: u32,
    /// The body of the present block; kept to reuse its memory.
    body: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file with the section header. `application` is the name of the writing program.
    ///
    /// # Errors
    /// Errors of `out`, as in all methods.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, body: Vec::new() };
        writer.body.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0, and an unknown section length: the section ends with the file.
        writer.body.extend_from_slice(&[1, 0, 0, 0]);
        writer.body.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.option(SECTION_APPLICATION, application.as_bytes());
        writer.option(END_OF_OPTIONS, &[]);
        writer.block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Describes an interface, before its first packet. An empty description is left out.
    pub fn add_interface(&mut self, name: &str, description: &str) -> io::Result<Interface> {
        self.body.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        // Two reserved bytes, then a snapshot length of 0: no limit.
        self.body.extend_from_slice(&[0; 6]);
        self.option(INTERFACE_NAME, name.as_bytes());
        if !description.is_empty() {
            self.option(INTERFACE_DESCRIPTION_TEXT, description.as_bytes());
        }
        // Resolution of 10^-9 seconds.
        self.option(INTERFACE_RESOLUTION, &[9]);
        self.option(END_OF_OPTIONS, &[]);
        self.block(INTERFACE_DESCRIPTION)?;
        let interface = Interface(self.interfaces);
        self.interfaces += 1;
        Ok(interface)
    }

    /// Writes an IP packet that crossed `interface` of this file `nanoseconds` after the file's epoch.
    pub fn write_packet(
        &mut self,
        interface: Interface,
        nanoseconds: u64,
        packet: &[u8],
        note: PacketNote<'_>,
    ) -> io::Result<()> {
        let length = u32::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?.to_le_bytes();
        self.body.extend_from_slice(&interface.0.to_le_bytes());
        self.body.extend_from_slice(&((nanoseconds >> 32) as u32).to_le_bytes());
        self.body.extend_from_slice(&(nanoseconds as u32).to_le_bytes());
        // Captured and original length: packets are never truncated.
        self.body.extend_from_slice(&length);
        self.body.extend_from_slice(&length);
        self.body.extend_from_slice(packet);
        self.pad();
        if let Some(comment) = note.comment {
            self.option(COMMENT, comment.as_bytes());
        }
        if let Some(direction) = note.direction {
            let bits: u32 = match direction {
                Direction::Inbound => 1,
                Direction::Outbound => 2,
            };
            self.option(PACKET_FLAGS, &bits.to_le_bytes());
        }
        if note != PacketNote::default() {
            self.option(END_OF_OPTIONS, &[]);
        }
        self.block(ENHANCED_PACKET)
    }

    /// Ends the file: flushes and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Appends an option; a text above 65 535 bytes is truncated.
    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.body.extend_from_slice(&code.to_le_bytes());
        self.body.extend_from_slice(&length.to_le_bytes());
        self.body.extend_from_slice(value.get(..usize::from(length)).unwrap_or(value));
        self.pad();
    }

    /// Aligns the next part of a block to four bytes.
    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the body as a block, with its length before and after it, so that files can be read backwards.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let total = u32::try_from(self.body.len() + 12).map_err(|_| io::ErrorKind::InvalidInput)?.to_le_bytes();
        let written = [&kind.to_le_bytes(), &total, self.body.as_slice(), &total]
            .into_iter()
            .try_for_each(|part| self.out.write_all(part));
        // Cleared after a failure too, so that the next block does not begin with the rest.
        self.body.clear();
        written
    }
}

#[cfg(test)]
mod tests;
