//! A channel between two processes for messages and descriptors.

use nix::cmsg_space;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Bytes of the longest message.
const MESSAGE: usize = 4_096;

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self(one), Self(other)))
    }

    /// Makes child processes inherit this end. Returns its descriptor number for [`Self::inherited`].
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn leave_open(&self) -> io::Result<RawFd> {
        fcntl(&self.0, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(self.0.as_raw_fd())
    }

    /// The end that the parent process left open with this number. Call this once, before opening any other descriptor.
    ///
    /// # Errors
    /// If there is no socket of that number.
    pub fn inherited(number: RawFd) -> io::Result<Self> {
        // Standard streams are not taken.
        if number < 3 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: whether the number is an open descriptor is checked before any other use; the caller promises that no
        // other code owns it.
        #[allow(unsafe_code)]
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        fcntl(socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        // SAFETY: it is open, as just checked.
        #[allow(unsafe_code)]
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self(UnixStream::from(socket)))
    }

    /// Sends a message, which must not be empty, with or without a descriptor.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn send(&self, message: &[u8], descriptor: Option<&OwnedFd>) -> io::Result<()> {
        let numbers: Vec<RawFd> = descriptor.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
        let with = [ControlMessage::ScmRights(&numbers)];
        let control = if numbers.is_empty() { &with[..0] } else { &with[..] };
        let pieces = [IoSlice::new(message)];
        sendmsg::<()>(self.0.as_raw_fd(), &pieces, control, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    /// Waits for the next message and its descriptor; the message is empty when the other end is closed.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn receive(&self) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let mut bytes = vec![0; MESSAGE];
        let mut control = cmsg_space!(RawFd);
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<()>(self.0.as_raw_fd(), &mut pieces, Some(&mut control), flags)?;
        let mut descriptors = Vec::new();
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = message {
                for number in numbers {
                    // SAFETY: the kernel has just created it for us.
                    #[allow(unsafe_code)]
                    descriptors.push(unsafe { OwnedFd::from_raw_fd(number) });
                }
            }
        }
        let length = received.bytes;
        bytes.truncate(length);
        Ok((bytes, descriptors.pop()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn a_descriptor_arrives_with_its_message_and_works_there() {
        let (one, other) = Channel::pair().expect("two ends");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        one.send(b"take this", Some(&OwnedFd::from(reader))).expect("it is sent");
        let (message, descriptor) = other.receive().expect("it arrives");
        assert_eq!(message, b"take this");
        writer.write_all(b"through the pipe").expect("it is written");
        drop(writer);
        let mut text = String::new();
        std::fs::File::from(descriptor.expect("it came along")).read_to_string(&mut text).expect("it is read");
        assert_eq!(text, "through the pipe");
    }

    #[test]
    fn an_end_that_is_gone_is_an_empty_message() {
        let (one, other) = Channel::pair().expect("two ends");
        one.send(b"last", None).expect("it is sent");
        drop(one);
        assert_eq!(other.receive().expect("it arrives").0, b"last");
        assert!(other.receive().expect("the end").0.is_empty());
    }

    #[test]
    fn a_number_that_nobody_has_opened_is_an_error() {
        assert!(Channel::inherited(0).is_err());
        assert!(Channel::inherited(1_000_000).is_err());
    }
}
