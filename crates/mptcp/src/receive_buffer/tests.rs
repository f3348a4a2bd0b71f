use super::*;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;
const SIZE: u64 = 100_000;

fn fixed(size: u64) -> ReceiveBuffer {
    ReceiveBuffer::new(BufferSize::Fixed(size))
}

/// The stream's byte at an offset.
fn pattern(at: u64) -> u8 {
    (at % 251) as u8
}

fn range(from: u64, len: u64) -> Bytes {
    (from..from + len).map(pattern).collect()
}

fn insert(buffer: &mut ReceiveBuffer, from: u64, len: u64) -> Inserted {
    buffer.insert(NOW, from, range(from, len))
}

fn read_all(buffer: &mut ReceiveBuffer, now: Instant) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = buffer.read(now, usize::MAX) {
        all.extend_from_slice(&bytes);
    }
    all
}

#[test]
fn bytes_in_order_come_out_as_they_came_without_a_copy() {
    let mut buffer = fixed(SIZE);
    let packet = range(0, 1_400);
    let address = packet.as_ptr();
    let inserted = buffer.insert(NOW, 0, packet);
    assert_eq!(inserted, Inserted { in_order_advance: 1_400, ..Inserted::default() });
    assert_eq!((buffer.next(), buffer.readable(), buffer.out_of_order()), (1_400, 1_400, 0));
    let first = buffer.read(NOW, 1_000).unwrap();
    assert_eq!((first.as_ptr(), first.len()), (address, 1_000));
    assert_eq!(buffer.read(NOW, 1_000).unwrap(), range(1_000, 400));
    assert_eq!(buffer.read(NOW, 1_000), None);
}

#[test]
fn reading_nothing_returns_nothing_and_loses_nothing() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 0, 10);
    assert_eq!(buffer.read(NOW, 0), None);
    assert_eq!(buffer.readable(), 10);
}

#[test]
fn bytes_out_of_order_take_from_the_window_where_they_are_charged_and_its_edge_never_goes_back() {
    for (charged, later) in [(false, 110_000), (true, 100_000)] {
        let mut buffer = fixed(SIZE).charging_out_of_order(charged);
        insert(&mut buffer, 20_000, 30_000);
        assert_eq!(buffer.right_edge(), SIZE);
        // 10000 bytes are read, 30000 wait: the edge could be at 110000 or at 80000.
        insert(&mut buffer, 0, 10_000);
        read_all(&mut buffer, NOW);
        assert_eq!(buffer.right_edge(), later);
        insert(&mut buffer, 10_000, 10_000);
        read_all(&mut buffer, NOW);
        assert_eq!(buffer.right_edge(), 50_000 + SIZE);
    }
}

#[test]
fn a_filled_gap_makes_everything_behind_it_readable() {
    let mut buffer = fixed(SIZE);
    assert_eq!(insert(&mut buffer, 1_000, 1_000).out_of_order, 1_000);
    assert_eq!(insert(&mut buffer, 3_000, 1_000).out_of_order, 1_000);
    assert_eq!(insert(&mut buffer, 2_000, 1_000).out_of_order, 1_000);
    assert_eq!(insert(&mut buffer, 5_000, 1_000).out_of_order, 1_000);
    assert_eq!(buffer.first_gap(), Some((0, 1_000)));
    assert_eq!(insert(&mut buffer, 0, 1_000).in_order_advance, 4_000);
    assert_eq!(buffer.first_gap(), Some((4_000, 5_000)));
    assert_eq!((buffer.readable(), buffer.out_of_order()), (4_000, 1_000));
    assert_eq!(read_all(&mut buffer, NOW), range(0, 4_000));
}

#[test]
fn no_more_is_abandoned_than_lies_before_received_data() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 100, 50);
    insert(&mut buffer, 300, 50);
    assert_eq!((buffer.skip_to(40), buffer.next()), (40, 40));
    assert_eq!((buffer.skip_to(1_000), buffer.next()), (60, 150));
    assert_eq!((buffer.skip_to(u64::MAX), buffer.next()), (150, 350));
    assert_eq!((buffer.skip_to(u64::MAX), buffer.next()), (0, 350));
}

#[test]
fn of_two_different_copies_the_first_is_kept() {
    let mut buffer = fixed(SIZE);
    buffer.insert(NOW, 10, Bytes::from_static(b"KLMNO"));
    // Covers 5..20: data before, within and after the pieces stored.
    let inserted = buffer.insert(NOW, 5, Bytes::from_static(b"fghijklmnopqrst"));
    assert_eq!(inserted, Inserted { out_of_order: 10, duplicate: 5, ..Inserted::default() });
    let inserted = buffer.insert(NOW, 0, Bytes::from_static(b"0123456789"));
    assert_eq!(inserted, Inserted { in_order_advance: 20, duplicate: 5, ..Inserted::default() });
    assert_eq!(read_all(&mut buffer, NOW), b"01234fghijKLMNOpqrst");
    let inserted = buffer.insert(NOW, 15, Bytes::from_static(b"PQRSTUV"));
    assert_eq!(inserted, Inserted { in_order_advance: 2, duplicate: 5, ..Inserted::default() });
    assert_eq!(read_all(&mut buffer, NOW), b"UV");
}

#[test]
fn data_in_order_that_runs_over_several_pieces_counts_only_what_is_new() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 100, 50);
    insert(&mut buffer, 150, 600);
    insert(&mut buffer, 900, 100);
    let inserted = insert(&mut buffer, 0, 950);
    assert_eq!(inserted, Inserted { in_order_advance: 1_000, duplicate: 700, ..Inserted::default() });
    assert_eq!(read_all(&mut buffer, NOW), range(0, 1_000));
    assert_eq!((buffer.out_of_order(), buffer.first_gap()), (0, None));
}

#[test]
fn what_lies_beyond_the_window_is_cut_off_and_counted() {
    let mut buffer = fixed(1_000);
    let inserted = insert(&mut buffer, 900, 300);
    assert_eq!(inserted, Inserted { out_of_order: 100, dropped: 200, ..Inserted::default() });
    let far = buffer.insert(NOW, u64::MAX - 1_000, Bytes::from_static(&[1; 100]));
    assert_eq!(far.dropped, 100);
    assert_eq!(
        insert(&mut buffer, 0, 2_000),
        Inserted { in_order_advance: 1_000, duplicate: 100, dropped: 1_000, out_of_order: 0 }
    );
    assert_eq!(buffer.dropped(), Dropped { beyond_window: 1_300, ..Dropped::default() });
    assert_eq!(buffer.window(), 0);
}

#[test]
fn the_window_is_the_size_less_what_waits_to_be_read() {
    let mut buffer = fixed(10_000);
    assert_eq!(buffer.window(), 10_000);
    insert(&mut buffer, 0, 3_000);
    assert_eq!(buffer.window(), 7_000);
    insert(&mut buffer, 5_000, 3_000);
    assert_eq!(buffer.window(), 7_000);
    buffer.read(NOW, 2_000);
    assert_eq!(buffer.window(), 9_000);
}

#[test]
fn the_right_edge_moves_by_whole_segments() {
    let mut buffer = fixed(10_000);
    buffer.set_segment_size(1_000);
    insert(&mut buffer, 0, 10_000);
    assert_eq!(buffer.window(), 0);
    buffer.read(NOW, 999);
    assert_eq!((buffer.window(), buffer.right_edge()), (0, 10_000));
    buffer.read(NOW, 1);
    assert_eq!((buffer.window(), buffer.right_edge()), (1_000, 11_000));
}

#[test]
fn the_right_edge_of_a_buffer_under_two_segments_moves_by_halves() {
    let mut buffer = fixed(1_000);
    buffer.set_segment_size(1_000);
    insert(&mut buffer, 0, 1_000);
    buffer.read(NOW, 499);
    assert_eq!(buffer.window(), 0);
    buffer.read(NOW, 1);
    assert_eq!(buffer.window(), 500);
}

#[test]
fn a_buffer_of_one_byte_still_moves() {
    let mut buffer = fixed(0);
    for at in 0..5 {
        assert_eq!(insert(&mut buffer, at, 3), Inserted { in_order_advance: 1, dropped: 2, ..Inserted::default() });
        assert_eq!(read_all(&mut buffer, NOW), [pattern(at)]);
    }
}

#[test]
fn single_bytes_with_gaps_fill_the_budget_and_data_in_order_is_still_taken() {
    let mut buffer = fixed(64 * 1024);
    let mut held = 0;
    for at in (1..64 * 1024).step_by(2) {
        held += insert(&mut buffer, at, 1).out_of_order;
    }
    assert_eq!((held, buffer.out_of_order()), (510, 510));
    assert_eq!(buffer.dropped().too_scattered, 32 * 1024 - 510);
    assert_eq!(insert(&mut buffer, 0, 1).in_order_advance, 2);
    assert_eq!(insert(&mut buffer, 2, 64 * 1024 - 2).in_order_advance, 64 * 1024 - 2);
    assert_eq!(read_all(&mut buffer, NOW), range(0, 64 * 1024));
}

#[test]
fn single_bytes_that_continue_each_other_are_held_together() {
    let mut buffer = fixed(64 * 1024);
    for at in 1..64 * 1024 {
        assert_eq!(insert(&mut buffer, at, 1).out_of_order, 1);
    }
    assert_eq!(insert(&mut buffer, 0, 1).in_order_advance, 64 * 1024);
    assert_eq!(read_all(&mut buffer, NOW), range(0, 64 * 1024));
}

#[test]
fn single_bytes_in_order_take_few_places_in_the_queue() {
    let mut buffer = fixed(64 * 1024);
    for at in 0..64 * 1024 {
        insert(&mut buffer, at, 1);
    }
    // 8 as they came, then 65 528 / 16 384 rounded up.
    assert_eq!(buffer.queue.places(), 8 + 4);
    assert_eq!(read_all(&mut buffer, NOW), range(0, 64 * 1024));
}

#[test]
fn nothing_is_taken_beyond_the_end_of_the_stream() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 0, 100);
    assert_eq!(buffer.set_end(150), Ok(()));
    assert!(!buffer.at_end());
    assert_eq!(insert(&mut buffer, 140, 20), Inserted { out_of_order: 10, dropped: 10, ..Inserted::default() });
    assert_eq!(insert(&mut buffer, 150, 20).dropped, 20);
    assert_eq!(buffer.dropped(), Dropped { beyond_end: 30, ..Dropped::default() });
    insert(&mut buffer, 100, 50);
    assert!(buffer.at_end());
    assert_eq!((buffer.end(), buffer.readable()), (Some(150), 150));
}

#[test]
fn data_beyond_both_end_and_window_is_counted_once_for_each_byte() {
    let mut buffer = fixed(1_000);
    buffer.set_end(1_200).unwrap();
    assert_eq!(insert(&mut buffer, 900, 500).dropped, 400);
    assert_eq!(buffer.dropped(), Dropped { beyond_window: 200, beyond_end: 200, ..Dropped::default() });
}

#[test]
fn an_end_that_contradicts_data_or_an_earlier_end_is_refused() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 0, 100);
    insert(&mut buffer, 200, 100);
    assert_eq!(buffer.set_end(299), Err(EndConflict));
    assert_eq!(buffer.end(), None);
    assert_eq!(buffer.set_end(300), Ok(()));
    assert_eq!(buffer.set_end(300), Ok(()));
    assert_eq!(buffer.set_end(301), Err(EndConflict));
}

#[test]
fn an_empty_stream_ends_at_once() {
    let mut buffer = fixed(SIZE);
    assert!(!buffer.at_end());
    buffer.set_end(0).unwrap();
    assert!(buffer.at_end());
}

/// Plays `rounds` round trips of 100 ms; in each tenth of one, `per_tenth(round, window)` bytes arrive and are read.
fn play(buffer: &mut ReceiveBuffer, rounds: u64, per_tenth: impl Fn(u64, u64) -> u64) {
    for tenth in 0..rounds * 10 {
        let now = Instant::ZERO + Duration::from_millis(10) * tenth;
        let mut left = per_tenth(tenth / 10, buffer.window());
        while left > 0 {
            let len = left.min(1_460);
            let at = buffer.next();
            assert_eq!(buffer.insert(now, at, range(at, len)).in_order_advance, len);
            left -= len;
        }
        read_all(buffer, now);
    }
}

fn auto(initial: u64, max: u64) -> ReceiveBuffer {
    let mut buffer = ReceiveBuffer::new(BufferSize::Auto { initial, max });
    buffer.set_round_trip(Duration::from_millis(100));
    buffer
}

#[test]
fn an_automatic_buffer_grows_ahead_of_a_sender_that_doubles_each_round() {
    let mut buffer = auto(128 * 1024, 6 * 1024 * 1024);
    for round in 0..9 {
        // 14 600 bytes in the first round, 3.7 MB in the ninth. At its end twice as much is in flight.
        let bytes = 14_600u64 << round;
        assert!(buffer.window() >= bytes, "round {round}: {bytes} come, window {}", buffer.window());
        for tenth in 0..10 {
            let now = Instant::ZERO + Duration::from_millis(10) * (round * 10 + tenth);
            let at = buffer.next();
            buffer.insert(now, at, range(at, bytes / 10));
            read_all(&mut buffer, now);
        }
    }
    assert_eq!((buffer.next(), buffer.dropped()), (14_600 * 511, Dropped::default()));
    assert!(buffer.size() <= 6 * 1024 * 1024);
}

#[test]
fn an_automatic_buffer_stays_as_it_is_for_a_slow_sender() {
    let mut buffer = auto(128 * 1024, 6 * 1024 * 1024);
    // In the first round 11 * 2_200 bytes: 4 * 24_200 + 16 * 1_460 = 120_160 fit.
    play(&mut buffer, 20, |_, _| 2_200);
    assert_eq!(buffer.size(), 128 * 1024);
}

#[test]
fn an_automatic_buffer_settles_within_four_times_what_a_round_brings() {
    let mut buffer = auto(128 * 1024, 60 * 1024 * 1024);
    play(&mut buffer, 50, |_, window| window.min(100_000));
    let size = buffer.size();
    // A round ends with a read, so a chunk may count for the previous round.
    assert!((2_000_000..=4 * (1_000_000 + 1_460) + 16 * 1_460).contains(&size), "{size}");
}

#[test]
fn an_automatic_buffer_stops_at_its_largest_size_and_a_fixed_one_stays() {
    let mut buffer = auto(128 * 1024, 300_000);
    play(&mut buffer, 50, |_, window| window);
    assert_eq!(buffer.size(), 300_000);
    let mut buffer = fixed(50_000);
    buffer.set_round_trip(Duration::from_millis(100));
    play(&mut buffer, 50, |_, window| window);
    assert_eq!(buffer.size(), 50_000);
}

#[test]
fn room_for_a_message_makes_an_automatic_buffer_larger_and_never_smaller() {
    let mut buffer = auto(128 * 1024, 300_000);
    buffer.make_room_for(100);
    assert_eq!(buffer.size(), 128 * 1024);
    buffer.make_room_for(200_000);
    assert!((200_000..300_000).contains(&buffer.size()), "{}", buffer.size());
    buffer.make_room_for(400_000);
    assert_eq!(buffer.size(), 300_000);
    let mut buffer = fixed(50_000);
    buffer.make_room_for(60_000);
    assert_eq!(buffer.size(), 50_000);
}

#[test]
fn whoever_sends_a_message_is_told_of_the_room_for_it_if_that_is_new() {
    let mut buffer = auto(128 * 1024, 300_000);
    let edges =
        [100, 200_000, 200_000, 400_000, 400_000].map(|bytes| (buffer.make_room_for(bytes), buffer.right_edge()));
    // The buffer has room for a message and 16 segments of 1,460 bytes more.
    let (none, grown, most) = (128 * 1024, 223_360, 300_000);
    assert_eq!(edges, [(false, none), (true, grown), (false, grown), (true, most), (false, most)]);
}

#[test]
fn what_is_held_around_a_range_begins_behind_the_last_hole_before_its_end() {
    let mut buffer = fixed(SIZE);
    insert(&mut buffer, 5, 5);
    insert(&mut buffer, 12, 8);
    assert_eq!(buffer.held_around(6, 14, 4), (12, range(12, 6).to_vec()));
    assert_eq!(buffer.held_around(6, 9, 4), (5, range(5, 5).to_vec()));
}

#[test]
fn an_automatic_buffer_does_not_grow_when_nobody_reads_or_the_round_trip_is_unknown() {
    let mut buffer = auto(128 * 1024, 6 * 1024 * 1024);
    insert(&mut buffer, 0, 128 * 1024);
    assert_eq!((buffer.size(), buffer.window()), (128 * 1024, 0));
    let mut buffer = ReceiveBuffer::new(BufferSize::Auto { initial: 128 * 1024, max: 6 * 1024 * 1024 });
    play(&mut buffer, 20, |_, window| window);
    assert_eq!(buffer.size(), 128 * 1024);
}

#[test]
fn a_buffer_that_begins_smaller_takes_no_more_until_it_is_enlarged_and_its_edge_never_goes_back() {
    let mut buffer = auto(50_000, 100_000).beginning_with(4_000);
    assert_eq!((buffer.size(), buffer.window()), (4_000, 4_000));
    assert_eq!(insert(&mut buffer, 1, 5_000), Inserted { out_of_order: 3_999, dropped: 1_001, ..Inserted::default() });
    buffer.enlarge(50_000);
    assert_eq!((buffer.size(), buffer.right_edge()), (50_000, 50_000));
    assert_eq!(insert(&mut buffer, 0, 1).in_order_advance, 4_000);
    buffer.enlarge(10_000);
    assert_eq!((buffer.size(), buffer.right_edge()), (50_000, 50_000), "not smaller");
    buffer.enlarge(1_000_000);
    assert_eq!(buffer.size(), 100_000, "not beyond its limit");
    assert_eq!(auto(50_000, 100_000).beginning_with(0).window(), 50_000);
    assert_eq!(fixed(1_000).beginning_with(4_000).window(), 1_000, "nor larger than it is");
}

#[test]
fn what_a_small_buffer_holds_out_of_order_does_not_keep_packets_alive() {
    for (size, kept) in [(8_192, false), (8_193, true)] {
        let (mut buffer, packet) = (fixed(size), range(1, 1_000));
        buffer.insert(Instant::ZERO, 1, packet.clone());
        assert_eq!(packet.is_unique(), !kept, "{size}");
    }
}

#[test]
fn an_empty_buffer_is_small() {
    assert!(size_of::<ReceiveBuffer>() <= 216, "{}", size_of::<ReceiveBuffer>());
}

/// The stream as the receiver should see it: the first byte received for each offset.
struct Model {
    bytes: Vec<Option<u8>>,
    read: usize,
}

impl Model {
    fn next(&self) -> usize {
        self.bytes.iter().position(Option::is_none).unwrap_or(self.bytes.len())
    }

    /// Returns (new, duplicate) bytes.
    fn insert(&mut self, offset: usize, data: &[u8]) -> (u64, u64) {
        let (mut new, mut duplicate) = (0, 0);
        for (place, &byte) in self.bytes.iter_mut().skip(offset).zip(data) {
            match place {
                Some(_) => duplicate += 1,
                None => {
                    *place = Some(byte);
                    new += 1;
                }
            }
        }
        (new, duplicate)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Distance from 3 000 bytes before the next expected one; length; a byte that identifies this copy.
    Insert(usize, usize, u8),
    /// The next bytes in order.
    InOrder(usize, u8),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let len = || prop_oneof![1..8usize, 200..600usize, 1_000..1_500usize, 1_000..6_000usize];
    prop_oneof![
        5 => (0..30_000usize, len(), any::<u8>()).prop_map(|(at, len, salt)| Step::Insert(at, len, salt)),
        2 => (len(), any::<u8>()).prop_map(|(len, salt)| Step::InOrder(len, salt)),
        2 => (0..8_000usize).prop_map(Step::Read),
    ]
}

proptest! {
    #[test]
    fn bytes_come_out_once_in_order_and_as_first_received(steps in proptest::collection::vec(step(), 1..150)) {
        let size = 20_000;
        let mut buffer = fixed(size as u64);
        let mut model = Model { bytes: Vec::new(), read: 0 };
        // Moves by the rules of RFC 9293, computed separately here.
        let mut right_edge = size;
        let mut scattered = 0;
        for step in steps {
            model.bytes.resize(right_edge, None);
            let (at, len, salt) = match step {
                Step::Insert(ahead, len, salt) => ((model.next() + ahead).saturating_sub(3_000), len, salt),
                Step::InOrder(len, salt) => (model.next(), len, salt),
                Step::Read(max) => {
                    let got = buffer.read(NOW, max).unwrap_or_default();
                    let expected: Vec<_> = got.iter().map(|&byte| Some(byte)).collect();
                    prop_assert_eq!(&model.bytes[model.read..model.read + got.len()], &expected[..]);
                    prop_assert!(!got.is_empty() || max == 0 || model.read == model.next());
                    model.read += got.len();
                    if model.read + size - right_edge >= 1_460 {
                        right_edge = model.read + size;
                    }
                    prop_assert_eq!(buffer.right_edge(), right_edge as u64);
                    continue;
                }
            };
            let data: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(7) ^ salt).collect();
            let before = (model.next() + buffer.out_of_order() as usize) as u64;
            let inserted = buffer.insert(NOW, at as u64, Bytes::from(data.clone()));
            let (new, duplicate) = model.insert(at, &data);
            let beyond = (at + len).saturating_sub(right_edge.max(at)) as u64;
            // Pieces of these sizes and number stay below the budget of 40 000.
            scattered += buffer.dropped().too_scattered;
            prop_assert_eq!(inserted.dropped, beyond);
            prop_assert_eq!(inserted.duplicate, duplicate);
            prop_assert_eq!(buffer.next() + buffer.out_of_order(), before + new);
            prop_assert_eq!(buffer.next(), model.next() as u64);
            prop_assert_eq!(buffer.window(), (right_edge - model.next()) as u64);
            prop_assert_eq!(buffer.readable(), (model.next() - model.read) as u64);
            let after_gap = model.bytes.iter().skip(model.next()).position(Option::is_some);
            let gap = after_gap.map(|gap| (model.next() as u64, (model.next() + gap) as u64));
            prop_assert_eq!(buffer.first_gap(), gap);
        }
        prop_assert_eq!(scattered, 0);
    }

    #[test]
    fn memory_stays_bounded_and_every_byte_is_accounted_for_whatever_comes(
        inserts in proptest::collection::vec((0..9_000u64, 1..40u64), 1..800),
        reads in proptest::collection::vec(0..800usize, 0..20),
    ) {
        let size = 8_000;
        let mut buffer = fixed(size);
        let (mut given, mut duplicate, mut dropped) = (0, 0, 0);
        let mut received = Vec::new();
        for (turn, (at, len)) in inserts.into_iter().enumerate() {
            let inserted = insert(&mut buffer, received.len() as u64 + at, len);
            given += len;
            duplicate += inserted.duplicate;
            dropped += inserted.dropped;
            if reads.contains(&turn) && let Some(bytes) = buffer.read(NOW, 1_000) {
                received.extend_from_slice(&bytes);
            }
            prop_assert!(buffer.readable() + buffer.out_of_order() <= size);
            prop_assert!(buffer.out_of_order.charge() <= 2 * size);
            prop_assert!(buffer.queue.places() as u64 <= 8 + 2 * (size / 512 + 1));
            prop_assert_eq!(given, buffer.next() + buffer.out_of_order() + duplicate + dropped);
        }
        let counted = buffer.dropped();
        prop_assert_eq!(counted.beyond_window + counted.too_scattered, dropped);
        // In-order data is accepted even if the buffer is full, and the stream continues.
        while buffer.window() > 0 {
            let next = buffer.next();
            prop_assert!(insert(&mut buffer, next, 1).in_order_advance >= 1);
        }
        received.extend(read_all(&mut buffer, NOW));
        prop_assert_eq!(received.len() as u64, buffer.next());
        prop_assert!(received.iter().enumerate().all(|(at, &byte)| byte == pattern(at as u64)));
    }
}

#[test]
fn a_buffer_is_tight_when_more_than_seven_eighths_of_it_are_read_in_a_round_trip() {
    let mut buffer = fixed(80_000);
    let mut is_tight = |round_bytes: u64| {
        buffer.round_bytes = round_bytes;
        buffer.is_tight()
    };
    assert!(!is_tight(0) && !is_tight(70_000) && is_tight(70_001));
}
