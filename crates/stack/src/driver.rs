//! The event loop of a stack: one future that moves packets between devices and engine.

use super::state::{Handle, State};
use crate::device::Received;
use anabranch_system::Timer;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Limit of packets read from one device before other devices and the applications have their turn.
const BATCH: usize = 64;

/// The same for a gateway's device, where datagrams wait behind segments in the kernel's queue: if thousands of connections end at
/// once, that queue must be read soon. A packet of 64 kB counts as sixteen.
const GATEWAY_BATCH: usize = 1_024;

/// The event loop of a [`super::Stack`]; completes after [`super::Stack::shutdown`]. If it is dropped before, all
/// connections end with [`anabranch_mptcp::CloseCause::Aborted`], and no new ones can be opened.
#[must_use = "nothing moves until it is polled"]
pub struct Driver {
    shared: Handle,
    timer: Timer,
    /// Packets for other stacks of the same host.
    strays: Vec<Received>,
}

impl Driver {
    pub(super) fn new(shared: Handle) -> io::Result<Self> {
        Ok(Self { shared, timer: Timer::new()?, strays: Vec::new() })
    }
}

/// Without an event loop nothing moves: if it panicked, or its runtime ended, all waiting tasks get an error.
impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.lock().driver_ended();
    }
}

/// Reads what arrived on one device, at most a batch. Packets that may belong to another stack of the host are strays.
/// Returns whether there may be more.
fn receive(state: &mut State, index: usize, context: &mut Context<'_>, mut strays: Option<&mut Vec<Received>>) -> bool {
    let gateway = state.gate.device == Some(index);
    let mut left = if gateway { GATEWAY_BATCH } else { BATCH };
    while left > 0 {
        let Some(device) = state.devices.get_mut(index).and_then(Option::as_mut) else { return false };
        match device.poll_receive(context) {
            Poll::Ready(Ok(received)) => {
                left = left.saturating_sub(if gateway { cost(&received) } else { 1 });
                match strays.as_mut().filter(|_| !state.claims(&received)) {
                    Some(strays) => strays.push(received),
                    None => {
                        state.receive(received);
                        let now = state.now();
                        state.drain(now);
                    }
                }
            }
            Poll::Ready(Err(_gone)) => {
                state.device_failed(index);
                return false;
            }
            Poll::Pending => return false,
        }
    }
    true
}

/// How much of [`GATEWAY_BATCH`] a packet uses up.
fn cost(received: &Received) -> usize {
    match received {
        Received::Packet(packet) => 1 + packet.segment.payload.len() / 4_096,
        Received::Error(_) | Received::Foreign(_) => 1,
    }
}

impl Future for Driver {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let mut state = this.shared.lock();
        let mut more = false;
        let has_others = this.shared.has_others();
        for index in 0..state.devices.len() {
            more |= receive(&mut state, index, context, has_others.then_some(&mut this.strays));
        }
        loop {
            let now = state.now();
            // Operations of streams are inputs, too, and may have output.
            state.drain(now);
            let due = state.poll_timeout();
            if due <= now {
                state.handle_timeout(now);
                continue;
            }
            let clock = state.clock;
            this.timer.set(&clock, due)?;
            if this.timer.poll_expired(context)?.is_pending() {
                break;
            }
        }
        state.flush();
        more |= state.wake_tasks();
        if state.shut_down {
            return Poll::Ready(Ok(()));
        }
        state.driver_waits(context);
        if more {
            context.waker().wake_by_ref();
        }
        drop(state);
        if !this.strays.is_empty() {
            this.shared.hand_over(&mut this.strays);
        }
        Poll::Pending
    }
}
