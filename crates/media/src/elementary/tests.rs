use super::*;
use crate::clip;
use proptest::prelude::*;

fn thirty() -> FrameRate {
    FrameRate::new(30, 1).expect("a rate")
}

/// The first so many bytes of the clip, and of its original in H.264.
fn mpeg4(bytes: usize) -> &'static [u8] {
    &clip::MPEG4[..bytes]
}

fn h264(bytes: usize) -> &'static [u8] {
    &clip::ORIGINAL[..bytes]
}

fn message(bytes: &[u8]) -> String {
    ElementaryStream::read(bytes).expect_err("it is refused").to_string()
}

#[test]
fn times_of_mpeg4_are_those_of_its_pictures() {
    let stream = clip::stream();
    let times: Vec<u64> =
        stream.pictures.iter().take(8).map(|picture| picture.time.unwrap_or_default().as_micros()).collect();
    // I0 P3 B1 B2 P6 B4 B5 I9, in thirtieths of a second.
    assert_eq!(times, [0, 100_000, 33_333, 66_666, 200_000, 133_333, 166_666, 300_000]);
    // B pictures behind the turn of a second count from the second before it.
    let shown = stream.display();
    let off = |(picture, place): (&Picture, &u32)| {
        picture.time.unwrap_or_default().as_micros().abs_diff(u64::from(*place) * 1_000_000 / 30)
    };
    assert_eq!(stream.pictures.iter().zip(&shown).map(off).max(), Some(0));
    let last = stream.pictures.last().and_then(|picture| picture.time).unwrap_or_default();
    assert_eq!(last.as_micros(), 66_633_333, "frame 1999: the seconds of groups add up");
}

#[test]
fn h264_with_b_frames_in_a_pyramid_is_ordered_as_a_decoder_shows_it() {
    let original = ElementaryStream::read(clip::ORIGINAL).expect("H.264");
    let trace = original.trace(thirty()).expect("a trace");
    // ffprobe's coded_picture_number of the first frames as shown.
    assert_eq!(trace.display_order()[..12], [0, 3, 2, 4, 1, 6, 7, 5, 8, 10, 11, 9]);
    let shown: String =
        trace.display_order()[..12].iter().map(|&index| trace.frames()[index].frame_type.letter()).collect();
    assert_eq!(shown, "IBBBPBBPPBBP", "ffprobe's pict_type");
    assert!(trace.frames()[2].referenced && !trace.frames()[3].referenced, "the middle of the pyramid is needed");
    let bytes: usize = original.pictures.iter().map(|picture| picture.data.len()).sum();
    assert_eq!(bytes + 1, clip::ORIGINAL.len(), "no byte is lost but the zero before the first start code");
}

#[test]
fn pictures_come_as_soon_as_the_next_one_begins() {
    let mut reader = Reader::new();
    reader.handle_bytes(mpeg4(2_000)).expect("the beginning");
    let sizes: Vec<usize> = core::iter::from_fn(|| reader.poll_picture()).map(|picture| picture.data.len()).collect();
    assert_eq!(sizes[..3], [31 + 287, 343, 20]);
    assert_eq!(reader.format().map(|format| (format.codec, format.width)), Some((Codec::Mpeg4, 176)));
}

#[test]
fn a_picture_that_is_not_coded_is_none_and_its_bytes_go_with_the_next() {
    // The start of the first P picture of the clip, 01 0 1 00011 1 1: its type, no seconds, a marker, the increment in five
    // bits (of 30), a marker, coded. With the last bit 0 it is not.
    let p = &clip::MPEG4[31 + 287..31 + 287 + 343];
    assert_eq!(p[4..6], [0b0101_0001, 0b1111_0000]);
    let not_coded = [0, 0, 1, 0xB6, 0b0101_0001, 0b1101_1111];
    let stream = ElementaryStream::read(&[mpeg4(31 + 287), &not_coded, p].concat()).expect("two pictures");
    let sizes: Vec<_> = stream.pictures.iter().map(|picture| picture.payload().len()).collect();
    assert_eq!(sizes, [287, 6 + 343]);
}

#[test]
fn a_stream_that_repeats_its_header_sends_it_once() {
    let head = &clip::MPEG4[..31];
    let once = mpeg4(31 + 287);
    let twice = [once, head, &once[31..]].concat();
    let stream = ElementaryStream::read(&twice).expect("two pictures");
    let sizes: Vec<_> = stream.pictures.iter().map(|picture| (picture.data.len(), picture.payload().len())).collect();
    assert_eq!(sizes, [(318, 287), (318, 287)]);
}

#[test]
fn joined_in_the_middle_pictures_before_the_header_are_dropped_and_counted() {
    let middle = [&clip::MPEG4[318..2_000], clip::MPEG4].concat();
    let mut reader = Reader::new();
    reader.handle_bytes(&middle).expect("read");
    reader.handle_end().expect("the end");
    assert!(reader.dropped() > 3, "{}", reader.dropped());
    assert_eq!(core::iter::from_fn(|| reader.poll_picture()).count(), 2_000);
}

#[test]
fn each_fault_of_a_stream_is_one_clear_sentence() {
    assert_eq!(message(b""), "the stream is empty");
    let neither =
        "the stream is neither MPEG-4 part 2 nor H.264: it has no header with a start code that either would have";
    assert_eq!(message(b"hello"), neither);
    assert_eq!(message(&vec![7; 3 << 20]), neither);
    assert_eq!(message(mpeg4(20)), "the header of the stream (VOL) is cut off or damaged");
    assert_eq!(message(mpeg4(31)), "the stream has a header but no picture: it is cut off or has no frame types");
    assert_eq!(message(mpeg4(31 + 7 + 4)), "the header of picture 0 is cut off or damaged");
    assert_eq!(message(h264(10)), "the sequence parameter set is cut off or damaged");
    assert_eq!(message(&clip::MPEG4[318..2_000]), "the header of the stream (VOL) is cut off or damaged");
    let packets: Vec<u8> =
        clip::MPEG4[..920].chunks(184).flat_map(|part| [&[0x47, 1, 0, 0x10], part].concat()).collect();
    assert_eq!(message(&packets), "the stream is an MPEG transport stream, which is not read here");
    let mut unknown = h264(100).to_vec();
    let at = unknown.windows(3).position(|window| window == [0, 0, 1]).unwrap_or_default();
    unknown[at + 4] = 1;
    assert!(message(&unknown).starts_with("the stream is neither"), "{}", message(&unknown));
}

#[test]
fn a_stream_that_begins_with_p_is_no_trace() {
    let stream = clip::stream();
    let cut = ElementaryStream { pictures: stream.pictures[1..].to_vec(), ..stream };
    let error = cut.trace(thirty()).expect_err("nothing decodes").to_string();
    assert_eq!(error, "frame 0 of the trace: the first frame must be an I frame, nothing can be predicted yet");
}

proptest! {
    #[test]
    fn a_damaged_stream_is_read_or_refused(
        which in any::<bool>(),
        cut in 0..6_000_usize,
        damage in prop::collection::vec((0..6_000_usize, any::<u8>()), 0..12),
    ) {
        let mut bytes = if which { mpeg4(cut).to_vec() } else { h264(cut).to_vec() };
        for (at, with) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = with;
            }
        }
        if let Ok(stream) = ElementaryStream::read(&bytes) {
            let kept: usize = stream.pictures.iter().map(|picture| picture.data.len()).sum();
            prop_assert!(kept <= bytes.len());
            let _ = stream.trace(thirty());
        }
    }

    #[test]
    fn garbage_with_start_codes_is_read_or_refused(
        units in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..30)), 0..30),
        codec in 0..3_u8,
    ) {
        let mut reader = match codec {
            0 => Reader::new(),
            1 => Reader::of(Codec::Mpeg4),
            _ => Reader::of(Codec::H264),
        };
        // After valid headers, so that the garbage is parsed.
        let head: &[u8] = match codec {
            0 => &[],
            1 => mpeg4(31),
            _ => h264(60),
        };
        let mut result = reader.handle_bytes(head);
        for (kind, body) in units {
            result = result.and_then(|()| reader.handle_bytes(&[0, 0, 1, kind])).and_then(|()| reader.handle_bytes(&body));
        }
        let _ = result.and_then(|()| reader.handle_end());
        while reader.poll_picture().is_some() {}
    }

    #[test]
    fn how_a_stream_is_cut_up_does_not_matter(piece in 1..700_usize, which in any::<bool>()) {
        let bytes = if which { mpeg4(8_000) } else { h264(8_000) };
        let whole = ElementaryStream::read(bytes).expect("a stream");
        let mut reader = Reader::new();
        for piece in bytes.chunks(piece) {
            reader.handle_bytes(piece).expect("read");
        }
        reader.handle_end().expect("the end");
        let pictures: Vec<Picture> = core::iter::from_fn(|| reader.poll_picture()).collect();
        prop_assert_eq!(pictures, whole.pictures);
    }
}
