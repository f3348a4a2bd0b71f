//! `stream receive`: receives a stream and writes it to standard output.

use super::channel::{Channel, is_hello};
use super::connection::{self, Opened};
use super::options::ReceiveOptions;
use super::output::{Output, Written};
use super::paths::{End, Paths};
use super::reception::Reception;
use crate::console::remark;
use crate::ending::{asked_to_end, block_on};
use anabranch_media::cut::Format;
use anabranch_media::mend::{Continuity, Mender};
use anabranch_mptcp::Record;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Instant;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_wire::message::{HEADER, MessageHeader};
use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Polling interval of paths: counters of a subflow are lost when it closes.
const LOOK: Duration = Duration::from_millis(100);
/// Polls per line of `--live`.
const LOOKS: u64 = 10;

/// How a stream ended.
enum Ending {
    /// The sender ended it.
    Ended,
    /// The program was told to end.
    Asked,
    /// The reader of the output has closed it.
    Closed,
    /// An error.
    Broken(String),
}

/// Receives a stream; returns whether it ended regularly or on request.
pub fn receive(options: &ReceiveOptions) -> Result<bool, Diagnostic> {
    if io::stdout().is_terminal() && !options.end.stack.dry_run {
        let message =
            "standard output is a terminal: put a player or a file behind it, e.g. `| ffplay -i -` or `> video.ts`";
        return Err(Diagnostic::plain(message));
    }
    block_on(async {
        let Some(mut opened) = connection::open(&options.end, options.from.as_deref()).await? else { return Ok(true) };
        let outcome = run(options, &mut opened).await;
        opened.detach().await?;
        outcome
    })
}

async fn run(options: &ReceiveOptions, opened: &mut Opened) -> Result<bool, Diagnostic> {
    let Some(mut channel) = opened.meet(&options.end, false).await? else { return Ok(true) };
    if !options.end.json {
        let messages = channel.messages();
        let (protocol, _) = messages.protocol();
        remark(&format!("a stream from {} over {}", opened.peer(messages), protocol.to_uppercase()));
    }
    let output = Output::start(io::stdout()).map_err(|error| Diagnostic::plain(format!("no thread: {error}")))?;
    let mut receiver = Receiver::new(options, output);
    let ending = receiver.run(&mut channel, options.end.live).await;
    let messages = channel.messages();
    receiver.paths.look(messages);
    let abandoned = messages.stats().map(|stats| stats.abandoned);
    let protocol = messages.protocol();
    // A sender may be waiting for the end of our direction.
    match ending {
        Ending::Ended => messages.close(),
        _ => messages.abort(),
    }
    let Receiver { reception, paths, output, .. } = receiver;
    let ending = match output.finish().await {
        Written::All => ending,
        Written::Closed => Ending::Closed,
        Written::Unread => Ending::Asked,
        Written::Failed(error) => Ending::Broken(format!("cannot write standard output: {error}")),
    };
    let report = reception.report(protocol, paths.report(), abandoned);
    if options.end.json {
        remark(&serde_json::to_string(&report).unwrap_or_else(|error| error.to_string()));
    } else {
        remark(report.text().trim_end());
    }
    // Time for the last segments to reach the peer.
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(match ending {
        Ending::Ended if !report.anything() => {
            remark("error: the stream ended before anything of it came");
            false
        }
        Ending::Ended | Ending::Asked | Ending::Closed => true,
        Ending::Broken(reason) => {
            remark(&format!("error: the stream was interrupted: {reason}"));
            false
        }
    })
}

/// The stages of a received stream.
struct Receiver {
    reception: Reception,
    paths: Paths,
    output: Output,
    mender: Mender,
    continuity: Option<Continuity>,
    /// The stream is bytes, not messages.
    raw: bool,
    /// Whether the sender frames messages for certain: it has proved the key, or something of its stream was a message
    /// or is missing.
    framed: bool,
    /// Whether the beginning of the stream has been examined.
    looked: bool,
}

impl Receiver {
    fn new(options: &ReceiveOptions, output: Output) -> Self {
        Self {
            reception: Reception::new(options.end.latency),
            paths: Paths::new(End::Receiver),
            output,
            mender: Mender::default(),
            continuity: None,
            raw: options.end.raw,
            framed: options.end.key.is_some() || options.end.keys.is_some(),
            looked: false,
        }
    }

    async fn run(&mut self, channel: &mut Channel, live: bool) -> Ending {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut count = 0_u64;
        let end = asked_to_end();
        tokio::pin!(end);
        loop {
            let record = tokio::select! {
                () = &mut end => return Ending::Asked,
                _ = looks.tick() => {
                    self.paths.look(channel.messages());
                    if self.output.is_closed() {
                        return Ending::Closed;
                    }
                    count += 1;
                    if live && count.is_multiple_of(LOOKS) {
                        remark(&self.reception.line(&self.paths.report()));
                    }
                    continue;
                }
                record = channel.read() => record,
            };
            // The reader of the output may be blocked; ending on request must not wait for it.
            let outcome = tokio::select! {
                () = &mut end => return Ending::Asked,
                outcome = self.handle(record, channel.messages().now()) => outcome,
            };
            if let Err(ending) = outcome {
                return ending;
            }
        }
    }

    async fn handle(&mut self, record: io::Result<Option<Record>>, now: Instant) -> Result<(), Ending> {
        match record {
            Ok(Some(record)) => self.take(record, now).await,
            Ok(None) => {
                let rest = self.mender.finish();
                self.reception.torn(self.mender.counters().torn_bytes);
                self.put(rest).await?;
                Err(Ending::Ended)
            }
            Err(error) => Err(Ending::Broken(of(&error))),
        }
    }

    async fn take(&mut self, record: Record, now: Instant) -> Result<(), Ending> {
        match record {
            Record::Message { payload, .. } if !self.looked && is_hello(&payload) => {
                Err(Ending::Broken(ENCRYPTED.to_owned()))
            }
            Record::Message { header, payload, arrived, .. } => {
                self.reception.message(&header, payload.len(), arrived, now);
                let bytes = self.framed(payload.to_vec());
                self.put(bytes).await
            }
            Record::Bytes { bytes, .. }
                if !self.looked
                    && let Some(framed) = framing_of(&bytes) =>
            {
                Err(Ending::Broken(framed.to_owned()))
            }
            Record::Bytes { bytes, .. } => {
                self.looked = true;
                self.reception.bytes(bytes.len(), now);
                let bytes = self.mender.bytes(&bytes);
                self.put(bytes).await
            }
            Record::Gap { reason: Reason::Unframed, .. } if !self.raw && !self.framed => {
                let message = "what comes in is not framed in messages: say --raw for a sender that is not `anabranch stream send`";
                Err(Ending::Broken(message.to_owned()))
            }
            Record::Gap { length, reason, .. } => {
                self.reception.gap(length, reason);
                self.framed = true;
                // Messages are complete, so nothing is truncated next to a gap.
                if !self.raw {
                    return Ok(());
                }
                self.mender.gap(length).map_err(|error| Ending::Broken(error.to_string()))?;
                self.reception.torn(self.mender.counters().torn_bytes);
                Ok(())
            }
        }
    }

    /// Handles whole messages: continuity counters of a transport stream are rewritten, so that missing messages leave
    /// no discontinuity.
    fn framed(&mut self, mut payload: Vec<u8>) -> Vec<u8> {
        if !self.looked {
            (self.looked, self.framed) = (true, true);
            self.continuity = (Format::detect(&payload) == Some(Format::TransportStream)
                || payload.first() == Some(&0x47) && payload.len().is_multiple_of(anabranch_media::cut::PACKET))
            .then(Continuity::default);
        }
        self.continuity.iter_mut().for_each(|continuity| continuity.renumber(&mut payload));
        payload
    }

    async fn put(&mut self, bytes: Vec<u8>) -> Result<(), Ending> {
        if bytes.is_empty() || self.output.write(bytes).await { Ok(()) } else { Err(Ending::Closed) }
    }
}

/// Why a stream that is encrypted is not received without a key.
const ENCRYPTED: &str = "the sender encrypts the stream: give its key with --key FILE";

/// Why bytes are not a plain stream: they begin with a message of `stream send`. None if they do not.
fn framing_of(bytes: &[u8]) -> Option<&'static str> {
    let header = MessageHeader::decode(bytes).ok()?;
    let payload = bytes.get(HEADER..).and_then(|rest| rest.get(..header.length as usize));
    let framed = "the sender is `anabranch stream send`, which frames its stream in messages: say --unencrypted instead of --raw";
    Some(if payload.is_some_and(is_hello) { ENCRYPTED } else { framed })
}

/// Text of an error.
fn of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the sender is gone".to_owned(),
        io::ErrorKind::InvalidData => format!("{error}; say --raw for a sender that is not `anabranch stream send`"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamCommand;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: StreamCommand,
    }

    /// Whether a receiver takes these records of its stream.
    fn takes(words: &str, records: &[Record]) -> bool {
        let line = format!("stream receive --listen 5004 {words}");
        let StreamCommand::Receive { options } = Line::parse_from(line.split_whitespace()).command else {
            unreachable!("it receives")
        };
        let nowhere = std::fs::File::options().write(true).open("/dev/null").expect("there is one");
        let mut receiver = Receiver::new(&options, Output::start(nowhere).expect("a thread"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut take = |record: &Record| runtime.block_on(receiver.take(record.clone(), Instant::ZERO));
        records.iter().all(|record| take(record).is_ok())
    }

    #[test]
    fn a_stream_goes_on_though_its_first_message_is_missing() {
        let gap = |reason| Record::Gap { offset: 0, length: 1_000, reason };
        let message = Record::Message {
            offset: 1_000,
            header: Default::default(),
            payload: vec![0x47; anabranch_media::cut::PACKET].into(),
            arrived: Instant::ZERO,
        };
        for reason in [Reason::Withdrawn, Reason::Expired, Reason::Overtaken] {
            // What follows a missing header belongs to no message.
            let records = [gap(reason), gap(Reason::Unframed), message.clone()];
            assert!(takes("--unencrypted", &records) && takes("--key FILE", &records), "{reason:?}");
        }
        let unframed = [gap(Reason::Unframed), message];
        assert!(!takes("--unencrypted", &unframed) && takes("--key FILE", &unframed));
        assert!(!takes("--raw", &[gap(Reason::Expired)]), "nothing tells what the bytes around it are");
    }

    #[test]
    fn messages_are_not_taken_for_a_plain_stream() {
        let message = MessageHeader { length: 4, ..MessageHeader::default() }.encode().expect("it is short");
        let record = |bytes: Vec<u8>| Record::Bytes { offset: 0, bytes: bytes.into() };
        let framed = record([message.as_slice(), &[0x47; 4]].concat());
        assert!(!takes("--raw", std::slice::from_ref(&framed)));
        assert!(takes("--raw", &[record(vec![0x47; 188]), framed]), "only the beginning tells");
    }
}
