//! Subflow acknowledgements that skip abandoned data, and their guards.

use crate::bench::{Bench, LARGE, SEGMENT, at, latency, message, message_bench, put, spe};
use crate::pair::{Fate, config, pattern};
use anabranch_mptcp::{ConnectionConfig, TraceRecord, event::SendKind};
use anabranch_policy::table::Settings;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::DataSequence;
use anabranch_wire::{Flags, Packet, TcpOptions};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;

fn subflow(millis: u64) -> Settings {
    latency(millis).with("level", "subflow").with("most_skipped", 0.5)
}

/// Transfers this many segments before any loss.
fn warmed_up(mut bench: Bench, segments: u64) -> Bench {
    bench.write(&pattern((segments * SEGMENT) as usize));
    bench.run(1_000);
    bench.records.clear();
    bench
}

fn ssthresh(bench: &Bench) -> u64 {
    bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0].ssthresh
}

/// Retransmissions counted by the client.
fn retransmitted(bench: &Bench) -> u64 {
    bench.pair.hosts[0].stats(bench.id).unwrap().bytes_retransmitted
}

#[test]
fn the_subflow_skips_abandoned_data_and_the_sender_which_has_seen_the_loss_goes_on_at_its_rate() {
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), subflow(150))), 40);
    bench.lost.borrow_mut().push(at(42));
    let before = ssthresh(&bench);
    bench.stream(40);
    bench.run(1_000);
    assert!(ssthresh(&bench) < before, "{} {before}", ssthresh(&bench));
    let stats = bench.stats();
    assert_eq!((stats.skipped_bytes, stats.abandoned.expired.bytes), (SEGMENT, SEGMENT));
    // The sender has nothing left to retransmit, and retransmits nothing later.
    let view = &bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0];
    assert_eq!(view.in_flight, 0);
    let so_far = retransmitted(&bench);
    bench.write(&pattern(100 * SEGMENT as usize));
    bench.run(2_000);
    assert_eq!(retransmitted(&bench), so_far);
    assert_eq!(bench.stats().bytes_delivered, 100 + (40 + 4 * 40 + 100 - 1) * SEGMENT);
    assert!(!bench.stats().skipping_is_off);
}

#[test]
fn at_data_level_the_same_loss_keeps_the_subflow_until_its_bytes_come() {
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), latency(150))), 40);
    bench.lost.borrow_mut().push(at(42));
    bench.write(&pattern(20 * SEGMENT as usize));
    bench.run(3_000);
    assert_eq!(bench.stats().skipped_bytes, 0);
    assert!(retransmitted(&bench) >= 3 * SEGMENT, "{}", retransmitted(&bench));
}

/// When the server's acknowledgement first passed the segment of a data sequence number, and the SACK blocks before.
fn acknowledgements(bench: &Bench) -> Vec<(Duration, u32, bool)> {
    let zero = bench.pair.sent[1][0].0;
    let of = |packet: &Packet| (packet.segment.ack.0, !packet.segment.options.sack.is_empty());
    bench.pair.sent[1].iter().map(|(at, packet)| (at.since(zero), of(packet).0, of(packet).1)).collect()
}

#[test]
fn that_the_sender_has_acted_on_one_loss_does_not_let_the_next_be_skipped() {
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), subflow(1))), 100);
    let deaf = Rc::new(Cell::new(false));
    let (hears, lost) = (Rc::clone(&deaf), [at(102), at(104)]);
    let mut initial = None;
    // Two segments are lost with all retransmissions, and everything from the server after the first skip.
    bench.pair.judge = Box::new(move |from, _, packet| {
        let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
        let Some(DataSequence::Long(number)) = mapping.map(|mapping| mapping.data_seq).filter(|_| from == 0) else {
            return if from == 1 && hears.get() { Fate::Drop } else { Fate::Deliver };
        };
        let offset = number.wrapping_sub(*initial.get_or_insert(number)) + at(100);
        if lost.contains(&offset) { Fate::Drop } else { Fate::Deliver }
    });
    for _ in 0..1_000 {
        bench.write(&pattern(SEGMENT as usize));
        bench.run(1);
        if bench.stats().skipped_bytes > 0 {
            break;
        }
    }
    deaf.set(true);
    bench.stream(40);
    bench.run(1_500);
    assert_eq!((bench.stats().abandoned.expired.bytes, bench.stats().skipped_bytes), (2 * SEGMENT, SEGMENT));
}

#[test]
fn before_a_gap_is_skipped_the_sender_was_told_of_it_by_selective_acknowledgements_for_a_round_trip() {
    // Without timestamps each segment has twelve more bytes.
    for (timestamps, skipped) in [(true, SEGMENT), (false, SEGMENT + 12)] {
        let mut client = config();
        client.tcp.options.timestamps = timestamps;
        // The lifetime expires at once.
        let mut bench = warmed_up(Bench::new(1, client, spe(config(), subflow(1))), 40);
        bench.lost.borrow_mut().push(at(42));
        bench.pair.sent[1].clear();
        bench.stream(40);
        bench.run(1_000);
        let told = acknowledgements(&bench);
        let first_sack = told.iter().find(|(_, _, sack)| *sack).unwrap();
        let duplicates = told.iter().filter(|(_, ack, sack)| *sack && *ack == first_sack.1).count();
        let over = told.iter().find(|(at, ack, _)| *at > first_sack.0 && *ack != first_sack.1).unwrap();
        assert!(duplicates >= 3, "{duplicates}");
        assert!(over.0.as_millis() - first_sack.0.as_millis() >= 20, "{over:?} {first_sack:?}");
        assert_eq!(bench.stats().skipped_bytes, skipped);
    }
}

#[test]
fn while_the_sender_cannot_have_acted_on_the_loss_nothing_is_skipped() {
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), subflow(1))), 100);
    let deaf = Rc::new(Cell::new(true));
    let (hears, lost) = (Rc::clone(&deaf), at(102));
    let mut initial = None;
    // Everything from the server is lost, and one segment with all its retransmissions.
    bench.pair.judge = Box::new(move |from, _, packet| {
        let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
        let Some(DataSequence::Long(number)) = mapping.map(|mapping| mapping.data_seq).filter(|_| from == 0) else {
            return if from == 1 && hears.get() { Fate::Drop } else { Fate::Deliver };
        };
        let offset = number.wrapping_sub(*initial.get_or_insert(number)) + at(100);
        if offset == lost { Fate::Drop } else { Fate::Deliver }
    });
    // Seven duplicates, and more than a round trip as the receiver measures it, including the pause before.
    bench.stream(40);
    bench.run(1_500);
    assert_eq!((bench.stats().abandoned.expired.bytes, bench.stats().skipped_bytes), (SEGMENT, 0));
    assert!(bench.stats().bytes_delivered > 105 * SEGMENT, "{:?}", bench.stats());
    deaf.set(false);
    bench.stream(40);
    bench.run(10_000);
    assert_eq!(bench.stats().skipped_bytes, SEGMENT);
}

#[test]
fn a_gap_is_skipped_only_if_the_share_of_what_came_covers_it() {
    // 1 % of 40 and 40 segments is less than one.
    for (share, skipped) in [(0.02, SEGMENT), (0.01, 0)] {
        let settings = latency(1).with("level", "subflow").with("most_skipped", share);
        let mut bench = warmed_up(Bench::new(1, config(), spe(config(), settings)), 40);
        bench.lost.borrow_mut().push(at(42));
        bench.stream(10);
        assert_eq!((bench.stats().abandoned.expired.bytes, bench.stats().skipped_bytes), (SEGMENT, skipped));
    }
}

#[test]
fn no_more_is_skipped_than_the_share_of_what_came() {
    let settings = latency(1).with("level", "subflow").with("most_skipped", 0.05);
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), settings)), 40);
    // 5 % of 100 + 40 segments is 2.
    bench.lost.borrow_mut().extend([at(42), at(44), at(46), at(48)]);
    bench.stream(40);
    let skipped = bench.stats().skipped_bytes;
    assert!((SEGMENT..=2 * SEGMENT).contains(&skipped), "{skipped}");
    assert_eq!(bench.stats().abandoned.expired.bytes, 4 * SEGMENT);
    // The others arrive in the end, and only abandoned data is missing.
    bench.lost.borrow_mut().clear();
    bench.run(30_000);
    assert_eq!(bench.pair.hosts[0].subflow_views(bench.now(), bench.id)[0].in_flight, 0);
}

#[test]
fn what_was_skipped_before_counts_towards_the_share() {
    let settings = latency(1).with("level", "subflow").with("most_skipped", 0.01);
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), settings)), 200);
    // One of every 40 segments is lost with all retransmissions, each less than 1 % of the received data. Together they
    // are more: the fourth if fewer than 361 segments arrived.
    for nth in 0..4 {
        bench.lost.borrow_mut().push(at(200 + 40 * nth + 10));
        bench.stream(10);
        bench.run(500);
    }
    let stats = bench.stats();
    assert_eq!((stats.abandoned.expired.bytes, stats.skipped_bytes), (4 * SEGMENT, 3 * SEGMENT));
}

#[test]
fn a_gap_of_which_a_part_is_still_waited_for_is_not_skipped() {
    let mut bench = message_bench(subflow(300), LARGE);
    for _ in 0..40 {
        message(&mut bench, 1_000, 9, 0);
        bench.run(10);
    }
    bench.run(600);
    let (began, start) = (bench.now().since(Instant::ZERO).as_millis(), 100 + 40 * 1_024);
    // The base is 60. Of the two messages in the lost segment the first expires 200 ms before the second.
    let play_out = began - 50;
    bench.lost.borrow_mut().push(start + 2_000);
    put(&mut bench, 2_000, 9, play_out - 200);
    put(&mut bench, 2_000, 9, play_out);
    bench.pair.settle();
    let abandoned = |bench: &Bench| (bench.stats().abandoned.total().bytes, bench.stats().skipped_bytes);
    let mut seen = Vec::new();
    for step in 0..60 {
        message(&mut bench, 1_000, 9, play_out + 10 * step);
        bench.run(10);
        seen.push(abandoned(&bench));
    }
    // From 110 ms on the first is abandoned. Until the second is too, its bytes are waited for.
    assert!(seen[12..28].iter().all(|seen| seen.0 == 2_024 && seen.1 == 0), "{seen:?}");
    assert_eq!(seen.last(), Some(&(2 * 2_024, SEGMENT)), "{seen:?}");
}

#[test]
fn what_came_by_another_path_leaves_a_gap_that_is_not_skipped() {
    let mut bench = warmed_up(Bench::new(2, config(), spe(config(), subflow(20_000))), 40);
    let (missing, mut initial, mut on) = (at(42), None, None);
    // All retransmissions on its first subflow are lost.
    bench.pair.judge = Box::new(move |from, _, packet| {
        let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
        let (Some(mapping), 0, false) = (mapping, from, packet.segment.payload.is_empty()) else {
            return Fate::Deliver;
        };
        let DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
        let offset = number.wrapping_sub(*initial.get_or_insert(number)) + at(40);
        let is_it = (offset..offset + packet.segment.payload.len() as u64).contains(&missing);
        if is_it && *on.get_or_insert(packet.segment.source_port) == packet.segment.source_port {
            return Fate::Drop;
        }
        Fate::Deliver
    });
    for _ in 0..40 {
        bench.stream(10);
    }
    let stats = bench.stats();
    assert_eq!((stats.abandoned.total().bytes, stats.skipped_bytes), (0, 0));
    assert_eq!(stats.bytes_delivered, 100 + (40 + 4 * 400) * SEGMENT);
}

#[test]
fn what_was_skipped_and_comes_late_is_not_reported_as_a_duplicate() {
    let mut bench = warmed_up(Bench::new(1, config(), spe(config(), subflow(1))), 40);
    let mut first = true;
    let missing = at(42);
    let mut initial = None;
    // The segment arrives 300 ms late, and all its retransmissions are lost.
    bench.pair.judge = Box::new(move |from, _, packet| {
        let mapping = packet.segment.options.dss.as_ref().and_then(|dss| dss.mapping);
        let (Some(mapping), 0) = (mapping, from) else { return Fate::Deliver };
        let DataSequence::Long(number) = mapping.data_seq else { return Fate::Deliver };
        let offset = number.wrapping_sub(*initial.get_or_insert(number)) + at(40);
        match offset == missing && !packet.segment.payload.is_empty() {
            true if std::mem::take(&mut first) => Fate::Late(Duration::from_millis(300)),
            true => Fate::Drop,
            false => Fate::Deliver,
        }
    });
    bench.pair.sent[1].clear();
    bench.stream(40);
    bench.run(2_000);
    let stats = bench.stats();
    assert_eq!((stats.skipped_bytes, stats.late_bytes_received), (SEGMENT, SEGMENT));
    for (_, packet) in &bench.pair.sent[1] {
        let blocks = packet.segment.options.sack;
        assert!(blocks.as_slice().iter().all(|block| block.start.after(packet.segment.ack)), "{packet:?}");
    }
}

#[test]
fn after_a_reset_that_follows_a_skip_nothing_is_skipped_any_more() {
    let mut bench = warmed_up(Bench::new(2, config(), spe(config(), subflow(1))), 40);
    bench.lost.borrow_mut().push(at(42));
    bench.stream(50);
    assert!(bench.stats().skipped_bytes > 0);
    assert!(!bench.stats().skipping_is_off);
    // A middlebox resets its subflow.
    let number = |packet: &Packet| match packet.segment.options.dss.as_ref()?.mapping?.data_seq {
        DataSequence::Long(number) => Some(number),
        DataSequence::Short(_) => None,
    };
    let first = bench.pair.sent[0].iter().find_map(|(_, packet)| number(packet)).unwrap();
    let lost = |packet: &Packet| number(packet) == Some(first + at(42) - at(0));
    let mut reset = bench.pair.sent[0].iter().find(|(_, packet)| lost(packet)).unwrap().1.clone();
    let answers = |packet: &&(_, Packet)| packet.1.segment.destination_port == reset.segment.source_port;
    let ack = bench.pair.sent[1].iter().rev().find(answers).unwrap().1.segment.ack;
    reset.segment.payload = Bytes::new();
    reset.segment.options = TcpOptions::default();
    reset.segment.flags = Flags::RST;
    reset.segment.seq = ack;
    bench.pair.inject(1, reset);
    bench.run(10);
    assert!(bench.stats().skipping_is_off);
}

#[test]
fn a_trace_shows_no_retransmission_after_the_skip() {
    let client = ConnectionConfig { trace: true, ..config() };
    let mut bench = warmed_up(Bench::new(1, client, spe(config(), subflow(1))), 40);
    bench.lost.borrow_mut().push(at(42));
    bench.stream(40);
    let copies = |bench: &mut Bench| {
        let mut count = 0;
        while let Some(record) = bench.pair.hosts[0].poll_trace() {
            count += u32::from(matches!(record, TraceRecord::Sent { kind: SendKind::Retransmission, .. }));
        }
        count
    };
    copies(&mut bench);
    bench.run(2_000);
    assert_eq!(copies(&mut bench), 0);
}
