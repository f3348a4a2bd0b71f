//! Captures packets to and from the server into a file, with one interface for all paths.

use super::network::Lines;
use crate::scenario::Scenario;
use anabranch_settings::contender::{Contender, Route};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_sim::World;
use anabranch_sim::address::InterfaceId;
use anabranch_sim::network::Tapped;
use anabranch_wire::ip::{Ecn, IpHeader};
use anabranch_wire::pcapng::{Direction, PacketNote, Writer};
use anabranch_wire::udp::UdpPacket;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A capture in progress, shared with the world's tap.
pub struct Capture {
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

struct State {
    /// None once it is finished.
    writer: Option<Writer<BufWriter<File>>>,
    /// The first error.
    error: Option<io::Error>,
}

/// `lm3_motivation-case_2.pcapng`; with the path if the contender runs on each alone.
pub fn file_name(scenario: &Scenario, contender: &Contender, paths: &[usize]) -> String {
    let path = match contender.route {
        Route::Best => paths.first().and_then(|place| scenario.paths.get(*place)).map(|path| format!("-{}", path.name)),
        _ => None,
    };
    let name = format!("{}-{}{}", scenario.name, contender.name, path.unwrap_or_default());
    let harmless = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
    name.chars().map(harmless).collect::<String>() + ".pcapng"
}

/// Starts the capture: all packets delivered by the server's links from now on are written to `path`.
pub fn start(world: &mut World, path: &Path, lines: &Lines) -> Result<Capture, Diagnostic> {
    let fail = |error: io::Error| Diagnostic::file(path, "write the capture", &error);
    let file = File::create(path).map_err(fail)?;
    let mut writer = Writer::new(BufWriter::new(file), "Anabranch").map_err(fail)?;
    let interface = writer.add_interface("server", "packets to and from the server").map_err(fail)?;
    let state = Arc::new(Mutex::new(State { writer: Some(writer), error: None }));
    let shared = Arc::clone(&state);
    let (arrive, leave) = lines.server_links;
    let mut bytes = Vec::new();
    let tap = move |now: anabranch_policy::time::Instant, link, tapped: Tapped| {
        let inbound = link == arrive;
        bytes.clear();
        // A packet that cannot be encoded is a fault of the engine, which --wire detects.
        let written = match tapped {
            Tapped::Tcp(packet) => packet.emit(&mut bytes),
            Tapped::Udp { source, destination, session: Some((session, payload)), .. } => {
                of_session((source, destination), session, inbound, payload).emit(&mut bytes)
            }
            Tapped::Udp { session: None, .. } => return,
        };
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let Some(writer) = &mut state.writer else { return };
        let written = written.map_err(|error| io::Error::other(error.to_string()));
        let direction = Some(if inbound { Direction::Inbound } else { Direction::Outbound });
        let note = PacketNote { direction, comment: None };
        let written = written.and_then(|()| writer.write_packet(interface, now.as_nanos(), &bytes, note));
        if let Err(error) = written {
            state.error.get_or_insert(error);
        }
    };
    world.tap(&[arrive, leave], Box::new(tap));
    Ok(Capture { path: path.to_owned(), state })
}

/// Ports of a session's ends, which the lab does not model: a session is a port of the client.
const SERVER_PORT: u16 = 4433;
const FIRST_CLIENT_PORT: u16 = 49_152;

/// A packet of a session of datagrams, as it would be on the wire.
fn of_session(ends: (InterfaceId, InterfaceId), session: u16, inbound: bool, payload: Bytes) -> UdpPacket {
    let client = FIRST_CLIENT_PORT.saturating_add(session);
    let (source_port, destination_port) = if inbound { (client, SERVER_PORT) } else { (SERVER_PORT, client) };
    let (source, destination) = (ends.0.ipv4(), ends.1.ipv4());
    let ip = IpHeader { source, destination, ecn: Ecn::NotCapable, dscp: 0, hop_limit: 64 };
    UdpPacket { ip, source_port, destination_port, payload }
}

impl Capture {
    /// Closes the file.
    pub fn finish(self) -> Result<(), Diagnostic> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = state.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop));
        let outcome = state.error.take().map_or(ended, Err);
        outcome.map_err(|error| Diagnostic::file(&self.path, "write the capture", &error))
    }
}

#[cfg(test)]
mod tests {
    use crate::library::SCENARIOS;
    use crate::simulation::{self, Extras};
    use anabranch_wire::udp::UdpPacket;
    use bytes::Bytes;

    /// IP packets of a capture, in order: enhanced packet blocks (type 6) hold them behind 28 octets.
    fn packets(file: &[u8]) -> Vec<Bytes> {
        let number = |at: usize| file.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().unwrap()));
        let (mut at, mut found) = (0, Vec::new());
        while at + 12 <= file.len() {
            if number(at) == 6 {
                found.push(Bytes::copy_from_slice(&file[at + 28..at + 28 + number(at + 20) as usize]));
            }
            at += number(at + 4) as usize;
        }
        found
    }

    #[test]
    fn a_capture_has_the_datagrams_of_a_call() {
        let known = SCENARIOS.iter().find(|known| known.name == "call_wifi_lte").unwrap();
        let scenario = known.document(&["duration=\"5 s\"".to_owned()]).scenario().unwrap();
        let directory = std::env::temp_dir().join(format!("anabranch-call-capture-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of the test's own");
        let extras = Extras { pcap: Some(directory.clone()), ..Extras::default() };
        let contender = &scenario.policies[0];
        let record = simulation::run(&scenario, contender, &[0, 1], 1, &extras).unwrap();
        let name = super::file_name(&scenario, contender, &[0, 1]);
        let file = std::fs::read(directory.join(name)).expect("the capture");
        std::fs::remove_dir_all(&directory).expect("it is the test's own");
        let sessions: Vec<UdpPacket> =
            packets(&file).iter().map(|packet| UdpPacket::parse(packet).expect("a datagram of the session")).collect();
        let of_port =
            |of: fn(&UdpPacket) -> u16| sessions.iter().filter(|packet| of(packet) == super::SERVER_PORT).count();
        let (arrive, leave) = (of_port(|packet| packet.destination_port), of_port(|packet| packet.source_port));
        // What programs send is not all of it, and not all of that arrives.
        let sent = record.metric("datagrams").unwrap();
        assert!(arrive > 100 && arrive + leave == sessions.len(), "{arrive} and {leave} of {sent}");
        assert!(sessions.iter().all(|packet| !packet.payload.is_empty()));
    }
}
