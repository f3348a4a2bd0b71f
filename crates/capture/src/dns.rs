//! DNS queries of programs over TCP (RFC 7766). They go to the server's resolver like those over UDP.

use crate::counters::Shared;
use anabranch_datagram::{Datagram, Kind, Way};
use anabranch_mptcp::ConnectionConfig;
use anabranch_stack::{Asked, Stream};
use bytes::Bytes;
use core::net::SocketAddr;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;

/// Most DNS connections at a time; further ones are reset.
const MOST: usize = 256;

/// Most queued answers of a connection.
const ANSWERS: usize = 16;

/// Idle timeout of a connection (RFC 7766, section 6.2.3).
const IDLE: Duration = Duration::from_secs(10);

/// The addresses of the program and of the resolver that it queries.
type Ends = (SocketAddr, SocketAddr);

/// The DNS connections, each with the queue of its answers.
#[derive(Default)]
pub(crate) struct Questions(Mutex<HashMap<Ends, Sender<Bytes>>>);

impl Questions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ends, Sender<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the answer to a query over TCP; returns other datagrams.
    pub(crate) fn answered(&self, datagram: Datagram) -> Option<Datagram> {
        if datagram.kind != Kind::DnsOverTcp {
            return Some(datagram);
        }
        // Unread answers are dropped: the program repeats the query.
        if let Some(connection) = self.lock().get(&(datagram.inside, datagram.outside)) {
            let _ = connection.try_send(datagram.payload);
        }
        None
    }

    fn begin(&self, ends: Ends) -> Option<Receiver<Bytes>> {
        let mut connections = self.lock();
        if connections.len() >= MOST {
            return None;
        }
        let (sender, receiver) = mpsc::channel(ANSWERS);
        connections.insert(ends, sender);
        Some(receiver)
    }
}

/// Serves a DNS connection to any resolver.
pub(crate) fn serve(asked: Asked, near: &ConnectionConfig, way: &Way, questions: &Arc<Questions>, shared: &Shared) {
    let ends = (asked.from(), asked.to());
    let Some(answers) = questions.begin(ends) else {
        shared.count(|counters| counters.refused += 1);
        return asked.refuse();
    };
    let (way, questions) = (way.clone(), Arc::clone(questions));
    let accepted = asked.accept(near.clone());
    tokio::spawn(async move {
        if let Ok(stream) = accepted {
            // The stream closes in any case, which the program sees.
            let _ = carry(stream, ends, &way, answers).await;
        }
        questions.lock().remove(&ends);
    });
}

async fn carry(stream: Stream, ends: Ends, way: &Way, mut answers: Receiver<Bytes>) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let ask = async {
        loop {
            let length = reader.read_u16().await?;
            let mut question = vec![0; usize::from(length)];
            reader.read_exact(&mut question).await?;
            let (inside, outside) = ends;
            // If it is dropped the program repeats the query.
            way.send(Datagram { kind: Kind::DnsOverTcp, inside, outside, payload: question.into() });
        }
    };
    let tell = async {
        while let Ok(Some(answer)) = timeout(IDLE, answers.recv()).await {
            let Ok(length) = u16::try_from(answer.len()) else { continue };
            writer.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await?;
        }
        writer.shutdown().await
    };
    tokio::select! {
        ended = ask => ended,
        ended = tell => ended,
    }
}
