//! Linux at both ends: two network namespaces, one TUN device per path at the client and one at the server, and the
//! kernel's TCP or MPTCP.

use super::linux_end::{self, Settings, counter, set_up_client, set_up_server, within};
use super::trial::{Done, Trial, failed, start_links};
use crate::calibrate::meter::Meter;
use anabranch_lab::scenario::Scenario;
use anabranch_system::Namespace;
use socket2::Socket;
use std::io;
use std::time::Instant;

pub fn run(trial: &Trial<'_>, scenario: &Scenario) -> Result<Done, String> {
    let paths = trial.case.paths.len();
    let client = Namespace::new().map_err(failed("make a namespace"))?;
    let server = Namespace::new().map_err(failed("make a namespace"))?;
    let clients = within(&client, || set_up_client(paths))?;
    let end = within(&server, || set_up_server(paths))?;
    let relay = start_links(scenario, trial.seed, clients, end)?;
    let case = trial.case;
    let congestion = if case.congestion == "new_reno" { "reno" } else { case.congestion };
    let sender = Settings { multipath: case.multipath(), receive_buffer: None, congestion };
    let receiver = Settings { receive_buffer: case.receive_buffer, ..sender };
    let listener = within(&server, || receiver.listen()).map_err(failed("listen"))?;
    let socket = within(&client, || sender.client()).map_err(failed("make a socket"))?;
    let measured = transfer(socket, &listener, trial).map_err(failed("carry data"));
    let discarded = within(&server, || counter("MPTcpExt", "NoDSSInWindow"))?;
    let report = relay.stop().map_err(failed("stop the links"))?;
    Ok(Done { reading: measured?.reading(), report, discarded })
}

/// The client sends as much as it can; the server counts.
fn transfer(socket: Socket, listener: &Socket, trial: &Trial<'_>) -> io::Result<Meter> {
    let mut meter = Meter::new(Instant::now(), trial.span);
    let end = meter.end();
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| linux_end::connect(&socket, end).and_then(|()| linux_end::write_until(&socket, end)));
        if let Some(stream) = linux_end::accept(listener, end)? {
            linux_end::read_until(&stream, &mut meter)?;
        }
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(meter)
    })
}
