//! Data with a deadline is duplicated at once on its own subflow if the scheduler requests it.

use crate::pair::{Fate, Pair, config, pattern};
use anabranch_mptcp::{ConnectionConfig, Framing, MessageOptions, Record};
use anabranch_policy::ids::ConnectionId;
use anabranch_policy::reliability;
use anabranch_policy::scheduler::{Answer, Chunk, Decision, Needs, Scheduler, Work, again, unsent};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, SubflowView};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// The scheduler's queries: first byte, and milliseconds left.
type Asked = Arc<Mutex<Vec<(u64, u64)>>>;

/// Sends on the first subflow, with a duplicate there if `wants`.
struct Duplicating {
    wants: bool,
    asked: Asked,
}

impl Scheduler for Duplicating {
    fn schedule(&mut self, _: &ConnectionView, _: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::Send(subflows[0].id)
    }
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        let first = again(self, connection, work, subflows).or_else(|| unsent(self, connection, work, subflows));
        if let Some(answer) = first {
            return answer;
        }
        while work.is_shut()
            && let Some((held, left)) = work.recent()
        {
            self.asked.lock().unwrap().push((held.data_seq, left.as_millis()));
            if self.wants {
                return Answer::Copy(held, held.sender);
            }
        }
        Answer::Wait
    }
    fn needs(&self) -> Needs {
        Needs { outstanding: true, ..Needs::default() }
    }
}

struct Bench {
    pair: Pair,
    ids: [ConnectionId; 2],
    asked: Asked,
    /// The client's next data segment is lost.
    loses: Rc<Cell<bool>>,
}

/// A path of 50 ms in each direction, and a latency of 400 ms.
fn bench(wants: bool, reliability: &'static str) -> Bench {
    let asked = Asked::default();
    let mut config = ConnectionConfig { framing: Framing::Messages, ..config() };
    let seen = Arc::clone(&asked);
    config.policies.scheduler = Arc::new(move || Box::new(Duplicating { wants, asked: Arc::clone(&seen) }));
    let settings = if reliability == "full" { Settings::new() } else { Settings::new().with("latency", 400) };
    config.policies.reliability =
        Arc::new(move || table::build(reliability::TABLE, reliability, &settings).expect("in the table"));
    let mut pair = Pair::new(1);
    pair.delay = vec![Duration::from_millis(50)];
    pair.reading = [false, false];
    let loses = Rc::new(Cell::new(false));
    let losing = Rc::clone(&loses);
    pair.judge = Box::new(move |from, _, packet| {
        let lost = from == 0 && !packet.segment.payload.is_empty() && losing.take();
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    let client = pair.connect(config.clone(), config);
    pair.run(Duration::from_millis(500));
    let server = pair.accepted().unwrap();
    let mut bench = Bench { pair, ids: [client, server], asked, loses };
    bench.write(1_000);
    bench.pair.run(Duration::from_millis(1_000));
    bench.asked.lock().unwrap().clear();
    assert_eq!(bench.messages(), 1);
    bench
}

impl Bench {
    fn write(&mut self, length: usize) {
        let options = MessageOptions { importance: 0, play_out: self.pair.now.since(Instant::ZERO), lifetime: None };
        let taken =
            self.pair.hosts[0].write_message(self.pair.now, self.ids[0], Bytes::from(pattern(length)), &options);
        assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
        self.pair.settle();
    }
    fn messages(&mut self) -> usize {
        let now = self.pair.now;
        let records: Vec<Record> = std::iter::from_fn(|| self.pair.hosts[1].read_record(now, self.ids[1])).collect();
        assert!(records.iter().all(|record| matches!(record, Record::Message { .. })), "{records:?}");
        records.len()
    }
    /// Writes three segments of which the first is lost; returns the milliseconds until the message is readable.
    fn three_segments(&mut self) -> u64 {
        let began = self.pair.now;
        self.loses.set(true);
        self.write(3 * 1_200);
        while self.messages() == 0 {
            self.pair.run(Duration::from_millis(1));
            assert!(self.pair.now.since(began) < Duration::from_secs(2), "it never came");
        }
        self.pair.now.since(began).as_millis()
    }
}

#[test]
fn what_is_lost_once_comes_with_its_copy_a_way_after_it_was_written() {
    let mut bench = bench(true, "both_ends");
    let before = bench.pair.sent[0].len();
    assert_eq!(bench.three_segments(), 50);
    let data = bench.pair.sent[0][before..].iter().filter(|(_, packet)| !packet.segment.payload.is_empty());
    let mappings: Vec<_> = data
        .map(|(_, packet)| {
            let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping).expect("a mapping");
            (mapping.data_seq, mapping.length, packet.segment.seq)
        })
        .collect();
    let (first, second) = mappings.split_at(3);
    assert_eq!(second.len(), 3, "{mappings:?}");
    for ((data_seq, length, seq), (copied, copied_length, copied_seq)) in first.iter().zip(second) {
        assert_eq!((data_seq, length), (copied, copied_length), "the same data");
        assert!(seq.before(*copied_seq), "with a place of its own on the subflow");
    }
    bench.pair.run(Duration::from_secs(1));
    let stats = bench.pair.hosts[0].stats(bench.ids[0]).unwrap();
    assert_eq!((stats.bytes_duplicated, stats.bytes_reinjected), (1_024 + 3 * 1_200 + 24, 0));
    assert_eq!(bench.messages(), 0, "each is read once");
}

#[test]
fn each_segment_is_asked_for_once_with_the_time_that_it_has() {
    let mut bench = bench(false, "both_ends");
    assert!(bench.three_segments() > 100, "after a round trip and more");
    bench.pair.run(Duration::from_secs(1));
    let asked = bench.asked.lock().unwrap().clone();
    let places: Vec<u64> = asked.iter().map(|(data_seq, _)| *data_seq).collect();
    assert_eq!(places.len(), 3, "{asked:?}");
    assert!(places.is_sorted() && places[0] == 1_024, "{asked:?}");
    assert!(asked.iter().all(|(_, left)| *left == 400), "{asked:?}");
    assert_eq!(bench.pair.hosts[0].stats(bench.ids[0]).unwrap().bytes_duplicated, 0);
}

#[test]
fn what_has_no_deadline_goes_once() {
    for reliability in ["full", "spe"] {
        let mut bench = bench(true, reliability);
        assert!(bench.three_segments() > 100, "{reliability}");
        assert_eq!(*bench.asked.lock().unwrap(), [], "{reliability}");
    }
}
