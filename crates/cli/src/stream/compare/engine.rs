//! Anabranch as receiver, with Linux or Anabranch as sender.

use super::ends::{Lasts, PORT, failed};
use super::judge::Judge;
use super::schedule::{Frame, number_at};
use super::{kernel, message};
use crate::calibrate::emulated::{client_addresses, ours, server_address};
use anabranch_emulate::{Hosts, Network, Relay, Report};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::simulation;
use anabranch_mptcp::{ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_settings::contender::Contender;
use anabranch_stack::{Stack, Stream};
use bytes::Bytes;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout_at};

/// Timeout of connecting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Result of a run: the judge, and the report of the links.
pub type Carried = Result<(Judge, Report), String>;

/// Settings of a run.
pub struct Run<'a> {
    pub scenario: &'a Scenario,
    /// Policies of Anabranch.
    pub contender: &'a Contender,
    pub frames: &'a [Frame],
    pub lasts: Lasts,
}

impl Run<'_> {
    fn config(&self) -> ConnectionConfig {
        let mut config = simulation::connection(self.scenario, self.contender);
        config.framing = Framing::Messages;
        config
    }

    /// Anabranch at both ends.
    pub fn ours(&self, network: Network) -> Carried {
        self.within(async {
            let (client, mut ends) =
                ours::host(&self.contender.policies, &client_addresses(self.scenario.paths.len()))?;
            let (server, mut far) = ours::host(&self.contender.policies, &[server_address()])?;
            ends.append(&mut far);
            let relay = Relay::start(network, ends, None).map_err(failed("start the links"))?;
            let judge = self.between(&client, &server).await;
            client.shutdown();
            server.shutdown();
            Ok((judge?, relay.stop().map_err(failed("stop the links"))?))
        })
    }

    /// Linux sends, Anabranch receives.
    pub fn linux_to_ours(&self, network: Network, hosts: &Hosts, mut ends: Vec<OwnedFd>) -> Carried {
        self.within(async {
            let (server, mut far) = ours::host(&self.contender.policies, &[server_address()])?;
            // The kernel's server is not needed.
            drop(ends.pop());
            ends.append(&mut far);
            let relay = Relay::start(network, ends, None).map_err(failed("start the links"))?;
            let judge = self.socket_to_ours(hosts, &server).await;
            server.shutdown();
            Ok((judge?, relay.stop().map_err(failed("stop the links"))?))
        })
    }

    fn within(&self, work: impl Future<Output = Carried>) -> Carried {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(failed("make a runtime"))?.block_on(work)
    }

    async fn between(&self, client: &Stack, server: &Stack) -> Result<Judge, String> {
        let listener = server.listen(PORT, self.config()).map_err(|error| error.to_string())?;
        let target = SocketAddr::new(server_address(), PORT);
        let opened = async {
            let connecting = client.connect(client_addresses(1).pop(), target, self.config());
            let (sender, receiver) = tokio::join!(connecting, listener.accept());
            Ok((sender.map_err(|error| error.to_string())?, receiver.ok_or("the stack was shut down")?))
        };
        let opened = timeout_at((Instant::now() + PATIENCE).into(), opened).await;
        let (sender, receiver): (Stream, Stream) =
            opened.unwrap_or_else(|_| Err("no connection came about".to_owned()))?;
        let began = self.lasts.begins();
        let judge = Judge::new(began, self.frames);
        let end = self.lasts.end(began);
        tokio::select! {
            judge = read(&receiver, judge, end) => Ok(judge),
            Err(broken) = self.write(&sender, began) => Err(broken),
        }
    }

    async fn socket_to_ours(&self, hosts: &Hosts, server: &Stack) -> Result<Judge, String> {
        let listener = server.listen(PORT, self.config()).map_err(|error| error.to_string())?;
        let client = hosts.client().clone();
        let connecting = tokio::task::spawn_blocking(move || client.run(|| kernel::connect(true, 0, server_address())));
        let accepting = timeout_at((Instant::now() + PATIENCE).into(), listener.accept());
        let (socket, stream) = tokio::join!(connecting, accepting);
        let socket = socket.map_err(failed("connect"))?.and_then(|outcome| outcome).map_err(failed("connect"))?;
        let stream = stream.ok().flatten().ok_or("no connection came about")?;
        let began = self.lasts.begins();
        let judge = Judge::new(began, self.frames);
        let end = self.lasts.end(began);
        let frames = self.frames.to_vec();
        // The socket stays open until everything is read: closing it would reset the connection.
        let writer = std::thread::spawn(move || {
            let _ = kernel::write(&socket, &frames, began, end);
            socket
        });
        let judge = read(&stream, judge, end).await;
        stream.abort();
        // An abort unblocks the writer.
        let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        Ok(judge)
    }

    /// Writes each frame when it is due, or as soon as it is accepted. Never completes: the reader decides when the run
    /// is over.
    async fn write(&self, stream: &Stream, began: Instant) -> Result<(), String> {
        for frame in self.frames {
            let due = began + frame.at;
            sleep_until(due.into()).await;
            let nanos = u64::try_from(frame.at.as_nanos()).unwrap_or(u64::MAX);
            let play_out = anabranch_policy::time::Duration::from_nanos(nanos);
            let options = MessageOptions { importance: frame.kind.importance(), play_out, lifetime: None };
            stream.write_message(Bytes::from(message::payload(frame)), &options).await.map_err(failed("write"))?;
        }
        std::future::pending().await
    }
}

async fn read(stream: &Stream, mut judge: Judge, end: Instant) -> Judge {
    while !judge.is_complete() {
        match timeout_at(end.into(), stream.read_record()).await {
            Ok(Ok(Some(Record::Message { header, .. }))) => judge.frame(number_at(header.play_out), Instant::now()),
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    judge
}
