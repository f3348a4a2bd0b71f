//! Requests over netlink, one at a time, and its messages.
//!
//! Requests block: the kernel answers before `send` returns. A list comes in datagrams that the kernel fills as they
//! are read.

use crate::attributes::{attribute, u16_at, u32_at};
use netlink_sys::{Socket, SocketAddr};
use nix::sys::socket::{MsgFlags, recv};
use std::io;
use std::os::fd::AsRawFd;

/// The kernel fills datagrams of a list up to this length (NLMSG_GOODSIZE's limit).
const DATAGRAM: usize = 32 * 1_024;

/// Length of a message's header.
const HEADER: usize = 16;

/// Flags of a request.
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;

/// Flag of a list that changed while it was read.
const INTERRUPTED: u16 = 0x10;

/// Types of messages that all families have.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Flags of an error: it has attributes; the request is not repeated in it.
const ERROR_HAS_ATTRIBUTES: u16 = 0x200;
const ERROR_IS_SHORT: u16 = 0x100;

/// Attribute of an error: a sentence (NLMSGERR_ATTR_MSG).
const ERROR_TEXT: u16 = 1;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The kernel refused. `text` is its explanation, often empty.
    #[error("the kernel refuses: {} {text}", io::Error::from_raw_os_error(*errno))]
    Refused { errno: i32, text: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A message: its type, flags, sequence number and content.
pub struct Message<'a> {
    pub kind: u16,
    flags: u16,
    sequence: u32,
    pub content: &'a [u8],
}

/// The messages in a datagram, up to the first that is malformed.
pub fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(datagram, 0)? as usize;
        let content = datagram.get(HEADER..length)?;
        let (kind, flags, sequence) = (u16_at(datagram, 4)?, u16_at(datagram, 6)?, u32_at(datagram, 8)?);
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, flags, sequence, content })
    })
}

/// A socket for requests, in the network namespace of the thread that opened it.
pub struct Requests {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Requests {
    /// Opens a socket of a netlink protocol.
    ///
    /// # Errors
    /// The kernel does not have the protocol.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Without it refusals have a number and no sentence.
        let _ = socket.set_ext_ack(true);
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// Requests a change.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn change(&mut self, kind: u16, content: &[u8]) -> Result<(), RequestError> {
        self.exchange(kind, ACKNOWLEDGE, content, |_| ()).map(|_| ())
    }

    /// Requests one answer or a few, which `each` reads.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn get(&mut self, kind: u16, content: &[u8], each: impl FnMut(&[u8])) -> Result<(), RequestError> {
        self.exchange(kind, ACKNOWLEDGE, content, each).map(|_| ())
    }

    /// Requests a list. Returns whether it did not change while it was read.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn list(&mut self, kind: u16, content: &[u8], each: impl FnMut(&[u8])) -> Result<bool, RequestError> {
        self.exchange(kind, DUMP, content, each)
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        content: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<bool, RequestError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&message(kind, REQUEST | flags, self.sequence, content), 0)?;
        let mut whole = true;
        loop {
            let length = match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(nix::errno::Errno::EINTR) => continue,
                outcome => outcome.map_err(io::Error::from)?,
            };
            for message in messages(self.buffer.get(..length).unwrap_or_default()) {
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & INTERRUPTED == 0;
                match message.kind {
                    // A list that fails midway ends with the error's number.
                    DONE => return refusal(&message).map_or(Ok(whole), Err),
                    ERROR => return refusal(&message).map_or(Ok(whole), Err),
                    _ => each(message.content),
                }
            }
        }
    }
}

/// The bytes of a message.
fn message(kind: u16, flags: u16, sequence: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + content.len());
    bytes.extend(((HEADER + content.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The kernel knows who we are.
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(content);
    bytes
}

/// What a message of type ERROR or DONE complains of; success is told by both too.
fn refusal(message: &Message<'_>) -> Option<RequestError> {
    let errno = u32_at(message.content, 0).unwrap_or_default().cast_signed().wrapping_neg();
    if errno == 0 {
        return None;
    }
    // After the number come the header of our request and, unless it is left out, the rest of it.
    let request = u32_at(message.content, 4).unwrap_or_default() as usize;
    let repeated = if message.flags & ERROR_IS_SHORT == 0 { request.clamp(HEADER, DATAGRAM) } else { HEADER };
    let rest = message.content.get(4 + repeated.next_multiple_of(4)..);
    let rest = rest.filter(|_| message.flags & ERROR_HAS_ATTRIBUTES != 0);
    let text = rest.and_then(|rest| attribute(rest, ERROR_TEXT)).unwrap_or_default();
    let text = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
    Some(RequestError::Refused { errno, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;

    #[test]
    fn a_refusal_has_the_number_and_the_sentence() {
        let request = message(30, REQUEST | ACKNOWLEDGE, 7, &[1, 2, 3, 4]);
        let mut content = (-22i32).to_ne_bytes().to_vec();
        content.extend(&request);
        let mut attributes = Attributes::default();
        attributes.put(ERROR_TEXT, b"userspace PM not selected\0");
        content.extend(attributes.bytes());
        let bytes = message(ERROR, ERROR_HAS_ATTRIBUTES, 7, &content);
        let read = messages(&bytes).next().and_then(|message| refusal(&message));
        let Some(RequestError::Refused { errno, text }) = read else { panic!("it is a refusal") };
        assert_eq!((errno, text.as_str()), (22, "userspace PM not selected"));
    }

    #[test]
    fn number_zero_is_success() {
        let content = [&0i32.to_ne_bytes()[..], &message(30, REQUEST, 7, &[])].concat();
        let bytes = message(ERROR, 0, 7, &content);
        assert!(messages(&bytes).all(|message| refusal(&message).is_none()));
    }

    #[test]
    fn messages_that_are_cut_short_end_the_datagram() {
        let bytes = [message(30, 0, 1, &[0; 4]), message(31, 0, 2, &[0; 4])].concat();
        assert_eq!(messages(&bytes).count(), 2);
        assert_eq!(messages(&bytes[..39]).count(), 1);
        assert_eq!(messages(&[0; 64]).count(), 0);
    }
}
