//! Owns what a gateway's device has brought and the application has not taken yet.

use crate::connection::{wait, wake};
use crate::device::Foreign;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// Limit of waiting packets other than TCP; further ones are dropped and counted.
const MAX_FOREIGN: usize = 4_096;

/// What a gateway's device has brought.
#[derive(Default)]
pub(super) struct Gate {
    /// Index of the device; none if there is no gateway.
    pub(super) device: Option<usize>,
    /// Connections to be decided: no more than the engine holds SYNs.
    asked: VecDeque<(SocketAddr, SocketAddr)>,
    foreign: VecDeque<Foreign>,
    pub(super) dropped_foreign: u64,
    asked_waker: Option<Waker>,
    foreign_waker: Option<Waker>,
}

impl Gate {
    /// For the device with this index.
    pub(super) fn of(device: usize) -> Self {
        Self { device: Some(device), ..Self::default() }
    }

    pub(super) fn push_asked(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.asked.push_back((local, remote));
        wake(&mut self.asked_waker);
    }

    pub(super) fn push_foreign(&mut self, packet: Foreign) {
        if self.foreign.len() >= MAX_FOREIGN {
            self.dropped_foreign += 1;
            return;
        }
        self.foreign.push_back(packet);
        wake(&mut self.foreign_waker);
    }

    /// The next connection to be decided; none when the device is gone.
    pub(super) fn poll_asked(&mut self, context: &Context<'_>) -> Poll<Option<(SocketAddr, SocketAddr)>> {
        poll(&mut self.asked, &mut self.asked_waker, self.device.is_some(), context)
    }

    /// The next packet that is not the engine's; none when the device is gone.
    pub(super) fn poll_foreign(&mut self, context: &Context<'_>) -> Poll<Option<Foreign>> {
        poll(&mut self.foreign, &mut self.foreign_waker, self.device.is_some(), context)
    }

    /// The device is gone.
    pub(super) fn close(&mut self) {
        self.device = None;
        wake(&mut self.asked_waker);
        wake(&mut self.foreign_waker);
    }
}

fn poll<T>(queue: &mut VecDeque<T>, waker: &mut Option<Waker>, open: bool, context: &Context<'_>) -> Poll<Option<T>> {
    match queue.pop_front() {
        Some(next) => Poll::Ready(Some(next)),
        None if !open => Poll::Ready(None),
        None => {
            wait(waker, context);
            Poll::Pending
        }
    }
}
