//! The data level of the literal peer: one stream in each direction, and the states of RFC 8684, appendix D. Numbers
//! are offsets in the streams; DATA_FIN is one more octet at the end.

use super::time::{NEVER, Nanos};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// The states of RFC 8684, appendix D, figure 22.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataState {
    Established,
    FinWait1,
    FinWait2,
    Closing,
    TimeWait,
    CloseWait,
    LastAck,
    Closed,
}

#[derive(Debug)]
pub struct DataLevel {
    pub state: DataState,
    // What we send.
    /// All data written by the application.
    pub stream: Vec<u8>,
    pub closed: bool,
    pub una: u64,
    pub nxt: u64,
    /// The right edge of the peer's window.
    pub edge: u64,
    /// Ranges to map again.
    pub again: VecDeque<(u64, u64)>,
    pub fin_sent: bool,
    pub resend_at: Nanos,
    pub tries: u32,
    pub probe_at: Nanos,
    pub probes: u32,
    // What we receive.
    pub rcv_nxt: u64,
    pub early: BTreeMap<u64, Bytes>,
    pub unread: VecDeque<Bytes>,
    pub unread_length: u64,
    /// The right edge of our window.
    pub offered: u64,
    /// Offset of the peer's DATA_FIN.
    pub fin_at: Option<u64>,
    pub fin_taken: bool,
}

impl DataLevel {
    pub fn new(buffer: u64) -> Self {
        Self {
            state: DataState::Established,
            stream: Vec::new(),
            closed: false,
            una: 0,
            nxt: 0,
            edge: 0,
            again: VecDeque::new(),
            fin_sent: false,
            resend_at: NEVER,
            tries: 0,
            probe_at: NEVER,
            probes: 0,
            rcv_nxt: 0,
            early: BTreeMap::new(),
            unread: VecDeque::new(),
            unread_length: 0,
            offered: buffer,
            fin_at: None,
            fin_taken: false,
        }
    }

    /// The length of our stream so far.
    pub fn length(&self) -> u64 {
        self.stream.len() as u64
    }

    /// Octets that were assigned to a subflow at least once.
    pub fn sent(&self) -> u64 {
        self.nxt.min(self.length())
    }

    /// The value of DATA_ACK.
    pub fn acknowledgement(&self) -> u64 {
        self.rcv_nxt + u64::from(self.fin_taken)
    }

    /// Accepts octets within the window. The first copy counts.
    pub fn receive(&mut self, offset: u64, mut bytes: Bytes) {
        let mut offset = offset;
        if offset < self.rcv_nxt {
            let known = (self.rcv_nxt - offset).min(bytes.len() as u64);
            let _ = bytes.split_to(known as usize);
            offset += known;
        }
        if bytes.is_empty() {
            return;
        }
        if offset > self.rcv_nxt {
            let longer = self.early.get(&offset).is_none_or(|known| known.len() < bytes.len());
            if longer {
                self.early.insert(offset, bytes);
            }
            return;
        }
        self.append(bytes);
        while let Some((start, mut early)) = self.early.pop_first() {
            if start > self.rcv_nxt {
                self.early.insert(start, early);
                break;
            }
            let known = (self.rcv_nxt - start).min(early.len() as u64);
            let _ = early.split_to(known as usize);
            self.append(early);
        }
    }

    fn append(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.rcv_nxt += bytes.len() as u64;
            self.unread_length += bytes.len() as u64;
            self.unread.push_back(bytes);
        }
    }

    /// The application closes: M_CLOSE.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Our DATA_FIN has been sent.
    pub fn sent_fin(&mut self) {
        self.fin_sent = true;
        self.nxt = self.length() + 1;
        self.state = match self.state {
            DataState::Established => DataState::FinWait1,
            DataState::CloseWait => DataState::LastAck,
            other => other,
        };
    }

    /// DATA_ACK covers our DATA_FIN.
    pub fn fin_acknowledged(&mut self) {
        self.state = match self.state {
            DataState::FinWait1 => DataState::FinWait2,
            DataState::Closing => DataState::TimeWait,
            DataState::LastAck => DataState::Closed,
            other => other,
        };
    }

    /// Processes the peer's DATA_FIN if everything before it has arrived.
    pub fn take_fin(&mut self) -> bool {
        if self.fin_taken || self.fin_at != Some(self.rcv_nxt) {
            return false;
        }
        self.fin_taken = true;
        self.state = match self.state {
            DataState::Established => DataState::CloseWait,
            DataState::FinWait1 => DataState::Closing,
            DataState::FinWait2 => DataState::TimeWait,
            other => other,
        };
        true
    }

    /// Whether both directions have ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, DataState::TimeWait | DataState::Closed)
    }
}
