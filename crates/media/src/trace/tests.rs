use super::*;
use proptest::prelude::*;

fn thirty() -> FrameRate {
    FrameRate::new(30, 1).expect("a rate")
}

/// I P B B in coding order.
fn four() -> Trace {
    let coded = [(FrameType::I, 3100), (FrameType::P, 900), (FrameType::B, 120), (FrameType::B, 130)];
    Trace::at_rate(&coded, thirty()).expect("a trace")
}

fn message(text: &str) -> String {
    Trace::from_text(text).expect_err("it is refused").to_string()
}

#[test]
fn b_frames_are_shown_at_once_and_references_when_the_next_one_comes() {
    let order: Vec<u32> = four().frames().iter().map(|frame| frame.display).collect();
    assert_eq!(order, [0, 3, 1, 2]);
    assert_eq!(four().display_order(), [0, 2, 3, 1]);
}

#[test]
fn display_lags_by_the_one_frame_that_b_frames_cost() {
    let times: Vec<(u64, u64)> =
        four().frames().iter().map(|frame| (frame.at.as_micros(), frame.play_out.as_micros())).collect();
    // Coded at 0, 1, 2, 3 thirtieths; shown at display place + 1.
    assert_eq!(times, [(0, 33_333), (33_333, 133_333), (66_667, 66_667), (100_000, 100_000)]);
    let plain = Trace::at_rate(&[(FrameType::I, 1), (FrameType::P, 1)], thirty()).expect("a trace");
    assert_eq!(plain.frames()[1].play_out, plain.frames()[1].at, "without B frames there is no lag");
}

#[test]
fn times_do_not_drift_over_a_million_frames() {
    let ntsc = FrameRate::new(30_000, 1_001).expect("a rate");
    assert_eq!(ntsc.time(30_000).as_micros(), 1_001_000_000);
    assert_eq!(ntsc.time(1_000_000).as_micros(), 33_366_666_667);
    assert_eq!(FrameRate::new(0, 1), None);
    assert_eq!(FrameRate::new(1, 0), None);
    assert_eq!(FrameRate::new(1_001, 1), None);
}

#[test]
fn a_rate_is_at_least_a_frame_in_a_thousand_seconds_and_times_are_whole_microseconds_up_to_the_last() {
    assert_eq!(FrameRate::new(1, 1_001), None);
    assert_eq!(FrameRate::new(1, u32::MAX), None);
    let slowest = FrameRate::new(1, 1_000).expect("a rate");
    assert_eq!(slowest.time(2).as_micros(), 2_000_000_000);
    // 2^64 ns are 18,446,744,073,709,551.616 us.
    assert_eq!(slowest.time(u64::MAX).as_nanos(), 18_446_744_073_709_551_000);
}

#[test]
fn a_repetition_begins_where_the_next_frame_would_be_shown() {
    let twice = four().repeat(2).expect("eight frames");
    let fifth = twice.frames()[4];
    assert_eq!((fifth.display, fifth.frame_type), (4, FrameType::I));
    assert_eq!(fifth.at.as_micros(), 133_334, "length 166,667 less the lag of 33,333");
    assert_eq!(twice.counts(), ByType { i: 2, p: 2, b: 4 });
    assert_eq!(twice.bytes(), ByType { i: 6200, p: 1800, b: 500 });
    assert_eq!(four().repeat(0), Err(TraceError::Empty));
    assert_eq!(four().repeat(u32::MAX), Err(TraceError::TooLong));
}

#[test]
fn the_bit_rate_counts_the_time_in_which_it_is_shown() {
    // 4,250 bytes in 4 frames of 1/30 s.
    assert!((four().bit_rate() - 255_000.0).abs() < 5.0, "{}", four().bit_rate());
}

#[test]
fn a_head_ends_where_no_b_frame_misses_its_reference() {
    let twice = four().repeat(2).expect("eight frames");
    assert_eq!(twice.head(4).expect("four"), four());
    assert_eq!(twice.head(7).expect("five").frames().len(), 5, "I P B B I");
    assert_eq!(twice.head(3).expect("one").frames().len(), 1);
    assert_eq!(twice.head(0), Err(TraceError::Empty));
    assert_eq!(twice.head(100).expect("all"), twice);
}

#[test]
fn the_text_reads_back_as_the_same_trace() {
    let trace = four().repeat(3).expect("twelve frames");
    assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
}

#[test]
fn marks_of_reference_survive_the_text() {
    let mut trace = four();
    trace.frames[1].referenced = false;
    trace.frames[2].referenced = true;
    trace.frames[0].referenced = false;
    let text = trace.to_text();
    assert!(text.contains(" P- ") && text.contains(" B+ ") && text.contains(" I- "), "{text}");
    assert_eq!(Trace::from_text(&text), Ok(trace));
}

#[test]
fn both_forms_of_evalvids_traces_are_read() {
    let wordy = "1 H 29 1 segm at 33 ms\n2 I 3100 4 segm at 66 ms\n3 P 900 1 segm at 99 ms\n4 B 120 1 segm at 132 ms\n5 B 130 1 segm at 165 ms\n";
    let bare = "# a comment\n0\tI\t3100\t4\t0.000\n1 P 900 1 0.033\n2 B 120 1 0.066\n\n3 B 130 1 0.100\n";
    assert_eq!(Trace::from_text(wordy), Ok(four()));
    assert_eq!(Trace::from_text(bare), Ok(four()));
    let film = "0 I 9 1 0\n1 P 9 1 0.0417\n2 P 9 1 0.0833\n3 P 9 1 0.125\n";
    assert_eq!(Trace::from_text(film).expect("24 per second").frames()[3].at.as_micros(), 125_000);
}

#[test]
fn each_fault_of_a_text_is_one_clear_sentence_with_its_line() {
    let good = four().to_text();
    let cut: String = good.lines().take(6).map(|line| format!("{line}\n")).collect();
    assert_eq!(message(&cut), "the trace is cut off: it announces 4 frames and has 2");
    assert_eq!(message(""), "the trace has no frames");
    assert_eq!(message("# nothing\n\n"), "the trace has no frames");
    assert_eq!(message(&good.replace(" P ", " Q ")), "line 6 of the trace: 'Q' is no type of frame: I, P or B");
    assert_eq!(message(&good.replace(" 900 ", " -900 ")), "line 6 of the trace: '-900' is no size in bytes");
    assert_eq!(message(&good.replace(" 900 ", " 0 ")), "frame 1 of the trace: it is empty");
    assert_eq!(
        message(&format!("{good}4 4 P 1 1 1\n")),
        "line 9 of the trace: there are more frames than the 4 announced"
    );
    assert_eq!(
        message(&good.replace("\n1 3 P", "\n1 2 P")),
        "frame 3 of the trace: its place in display order is taken"
    );
    assert_eq!(
        message(&good.replace("0 0 I", "0 0 P")),
        "frame 0 of the trace: the first frame must be an I frame, nothing can be predicted yet"
    );
    assert_eq!(message("1 H 29 1 segm at 33 ms\n"), "the trace has no frames");
    assert_eq!(message("0 I 100 1\n"), "line 1 of the trace: its time is missing");
    assert_eq!(message("0 100 1 0.1\n"), "line 1 of the trace: '100' is no type of frame: I, P or B");
    assert!(message("GIF89a").starts_with("line 1 of the trace: neither a trace of ours"), "{}", message("GIF89a"));
}

#[test]
fn a_head_that_announces_too_much_takes_no_memory() {
    let text = "anabranch video trace 1\nframes 18446744073709551615\nlength 1 us\n";
    assert_eq!(Trace::from_text(text), Err(TraceError::TooLong));
}

proptest! {
    #[test]
    fn any_plain_trace_survives_its_text(sizes in prop::collection::vec((0..3_u8, 1..u32::MAX), 1..60), rate in 1..1000_u32) {
        let coded: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(index, &(kind, size))| (if index == 0 { FrameType::I } else { FrameType::ALL[usize::from(kind)] }, size))
            .collect();
        let trace = Trace::at_rate(&coded, FrameRate::new(rate, 1).expect("a rate")).expect("a trace");
        prop_assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(anabranch video trace 1\n)?(frames [0-9]{1,3}\n)?(length [0-9]{1,9} us\n)?([0-9]{1,3} [0-9IPBH]{1,2} [IPB0-9.-]{1,5} [0-9]{1,6} [0-9]{1,8} [0-9ms]{1,8}\n){0,5}.{0,40}") {
        let _ = Trace::from_text(&text);
    }

    #[test]
    fn a_damaged_text_is_read_or_refused(at in 0..400_usize, with in any::<u8>()) {
        let mut text = four().to_text().into_bytes();
        let length = text.len();
        text[at % length] = with;
        let _ = Trace::from_text(&String::from_utf8_lossy(&text));
    }
}
