use super::*;
use crate::frame::FrameType::{self, B, I, P};
use anabranch_policy::Duration;
use anabranch_policy::reliability::{DEPENDED_ON, ESSENTIAL};
use proptest::prelude::*;

/// Cuts `bytes`, which arrive `at_a_time` at a time.
fn cut(bytes: &[u8], at_a_time: usize) -> Result<(Vec<Piece>, CutCounters), CutError> {
    let mut cutter = Cutter::new(None);
    let mut pieces = Vec::new();
    for chunk in bytes.chunks(at_a_time) {
        pieces.extend(cutter.push(chunk)?);
    }
    pieces.extend(cutter.finish()?);
    Ok((pieces, cutter.counters()))
}

fn pictures(pieces: &[Piece]) -> Vec<Option<FrameType>> {
    pieces.iter().map(|piece| piece.picture).collect()
}

/// A unit of H.264 after a start code of four bytes.
fn unit(head: u8, first: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, head, first];
    bytes.resize(length, 0x55);
    bytes
}

/// Parameters and an I picture of two slices; a P picture; a B picture that is not referenced.
fn h264() -> [Vec<u8>; 3] {
    let i = [unit(0x67, 0x42, 20), unit(0x68, 0xce, 8), unit(0x65, 0b1000_1000, 300), unit(0x65, 0b0100_0100, 200)];
    [i.concat(), unit(0x41, 0b1001_1000, 90), unit(0x01, 0b1001_1100, 40)]
}

#[test]
fn pictures_of_h264_are_cut_with_the_parameters_before_them() {
    let parts = h264();
    for at_a_time in [1, 7, 10_000] {
        let (pieces, counters) = cut(&parts.concat(), at_a_time).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.bytes.clone()).collect::<Vec<_>>(), parts, "{at_a_time}");
        assert_eq!(pictures(&pieces), [Some(I), Some(P), Some(B)]);
        assert_eq!(pieces.iter().map(|piece| piece.importance).collect::<Vec<_>>(), [0, 128, 255]);
        assert_eq!(counters, CutCounters::default());
    }
}

#[test]
fn planes_of_mpeg_4_are_cut_with_the_headers_before_them() {
    let plane = |kind: u8, length: usize| {
        let mut bytes = vec![0, 0, 1, 0xb6, kind << 6 | 0x10];
        bytes.resize(length, 0x33);
        bytes
    };
    let headers = [[0, 0, 1, 0xb0, 1].as_slice(), &[0, 0, 1, 0xb5, 9], &[0, 0, 1, 0, 0, 0, 1, 0x20, 0, 0xc8]].concat();
    let group = [0, 0, 1, 0xb3, 0, 0x10, 7];
    let parts = [[headers, plane(0, 50)].concat(), plane(1, 40), plane(2, 30), [group.to_vec(), plane(0, 60)].concat()];
    for at_a_time in [1, 11, 10_000] {
        let (pieces, _) = cut(&parts.concat(), at_a_time).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.bytes.clone()).collect::<Vec<_>>(), parts, "{at_a_time}");
        assert_eq!(pictures(&pieces), [Some(I), Some(P), Some(B), Some(I)]);
    }
}

/// A packet of a transport stream with this payload, padded by its adaptation field.
fn packet(pid: u16, starts: bool, payload: &[u8]) -> Vec<u8> {
    let [high, low] = pid.to_be_bytes();
    let mut bytes = vec![0x47, high | u8::from(starts) << 6, low, 0x10];
    let stuffing = 184 - payload.len();
    if stuffing > 0 {
        bytes[3] = 0x30;
        bytes.push(stuffing as u8 - 1);
        bytes.extend([0].iter().take(stuffing - 1));
        bytes.resize(4 + stuffing, 0xff);
    }
    bytes.extend(payload);
    bytes
}

/// A section in a packet, without its checksum.
fn table(pid: u16, id: u8, content: &[u8]) -> Vec<u8> {
    let mut payload = vec![0, id, 0xb0, content.len() as u8 + 9, 0, 1, 0xc1, 0, 0];
    payload.extend(content);
    payload.extend([0; 4]);
    packet(pid, true, &payload)
}

/// The packets of a PES packet with a time stamp in ticks.
fn pes(pid: u16, id: u8, ticks: u64, content: &[u8]) -> Vec<u8> {
    let stamp = [
        0x21 | ((ticks >> 29) as u8 & 0x0e),
        (ticks >> 22) as u8,
        (ticks >> 14) as u8 | 1,
        (ticks >> 7) as u8,
        (ticks << 1) as u8 | 1,
    ];
    // Sound states its length.
    let length = if id == 0xc0 { content.len() as u16 + 8 } else { 0 };
    let mut bytes = vec![0, 0, 1, id];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0x80, 0x80, 5]);
    bytes.extend(stamp);
    bytes.extend(content);
    let packets = bytes.chunks(184).enumerate();
    packets.flat_map(|(at, payload)| packet(pid, at == 0, payload)).collect()
}

/// Tables, two pictures and a packet of sound between them.
fn transport() -> [Vec<u8>; 4] {
    let [i, p, _] = h264();
    let map = [0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0, 0];
    let tables = [table(0, 0, &[0, 1, 0xf0, 0]), table(0x1000, 2, &map)].concat();
    [tables, pes(0x100, 0xe0, 90_000, &i), pes(0x101, 0xc0, 90_900, &[7; 50]), pes(0x100, 0xe0, 93_000, &p)]
}

#[test]
fn a_transport_stream_is_cut_into_its_pes_packets_with_types_and_times() {
    let [tables, i, sound, p] = transport();
    let null = packet(0x1fff, false, &[0; 184]);
    let stream = [tables.clone(), i.clone(), null, sound.clone(), p.clone()].concat();
    for at_a_time in [1, 100, 188, 10_000] {
        let (pieces, counters) = cut(&stream, at_a_time).unwrap();
        let expected = [(&tables, None, 0), (&sound, None, 0), (&i, Some(I), 0), (&p, Some(P), 128)];
        let got: Vec<_> = pieces.iter().map(|piece| (&piece.bytes, piece.picture, piece.importance)).collect();
        assert_eq!(got, expected, "{at_a_time}");
        // Sound is complete before the picture, and so defines time zero.
        let times: Vec<_> = pieces.iter().map(|piece| piece.time).collect();
        assert_eq!(times, [None, Some(Duration::ZERO), Some(Duration::ZERO), Some(Duration::from_nanos(23_333_333))]);
        assert_eq!(counters, CutCounters { null_packets: 1, ..CutCounters::default() });
    }
}

#[test]
fn a_transport_stream_out_of_step_is_found_again_and_what_was_between_is_counted() {
    let [tables, i, sound, p] = transport();
    let stream = [tables, i, vec![1; 100], sound, p].concat();
    let (pieces, counters) = cut(&stream, 64).unwrap();
    assert_eq!(pieces.len(), 4);
    assert_eq!(counters.skipped_bytes, 100);
}

#[test]
fn a_map_with_descriptors_says_what_each_stream_is() {
    let [i, ..] = h264();
    // A descriptor of the program, one of the sound's (its language), one of the pictures'.
    let language = [0x0a, 4, b'e', b'n', b'g', 0];
    let sound = [&[0x0f, 0xe1, 1, 0xf0, 6][..], &language].concat();
    let map = [&[0xe1, 0, 0xf0, 3, 0x05, 1, 7][..], &sound, &[0x1b, 0xe1, 0, 0xf0, 2, 0x28, 0]].concat();
    let tables = [table(0, 0, &[0, 1, 0xf0, 0]), table(0x1000, 2, &map)].concat();
    let (pieces, _) = cut(&[tables, pes(0x100, 0xe0, 90_000, &i)].concat(), 10_000).unwrap();
    assert_eq!(pictures(&pieces), [None, Some(I)]);
}

#[test]
fn the_time_of_a_picture_is_when_it_is_decoded_and_not_when_it_is_shown() {
    let [tables, i, _, p] = transport();
    // Decoded a second after the I picture, shown two seconds after: 180,000 and 270,000 ticks.
    let stamp = |mark: u8, ticks: u32| {
        [
            mark | (ticks >> 29) as u8 & 0x0e,
            (ticks >> 22) as u8,
            (ticks >> 14) as u8 | 1,
            (ticks >> 7) as u8,
            (ticks << 1) as u8 | 1,
        ]
    };
    let header = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10][..], &stamp(0x31, 270_000), &stamp(0x11, 180_000)].concat();
    let both = packet(0x100, true, &[&header[..], &h264()[1]].concat());
    let (pieces, _) = cut(&[tables, i, both, p].concat(), 10_000).unwrap();
    let times: Vec<_> = pieces.iter().filter_map(|piece| piece.time).map(|time| time.as_millis()).collect();
    assert_eq!(times, [0, 1_000, 33]);
}

#[test]
fn a_picture_that_says_nothing_of_itself_is_essential_where_its_packet_can_be_begun_at() {
    let [tables, ..] = transport();
    let importances = [0x00, 0x40].map(|flag| {
        let mut unknown = packet(0x100, true, &[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0, 1, 2, 3]);
        unknown[5] = flag;
        let (pieces, counters) = cut(&[tables.clone(), unknown].concat(), 10_000).unwrap();
        assert_eq!(counters.unknown_pictures, 1);
        pieces.last().map(|piece| piece.importance)
    });
    assert_eq!(importances, [Some(DEPENDED_ON), Some(ESSENTIAL)]);
}

#[test]
fn a_packet_without_end_is_cut_before_it_fills_the_memory() {
    let [tables, ..] = transport();
    let more = packet(0x100, false, &[7; 184]).repeat(MOST / PACKET + 10);
    let (pieces, _) = cut(&[tables, pes(0x100, 0xe0, 90_000, &h264()[0]), more].concat(), 1 << 20).unwrap();
    assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.bytes.len() <= MOST));
}

#[test]
fn what_is_no_stream_is_refused_in_a_sentence() {
    assert_eq!(cut(&[], 1).unwrap_err(), CutError::Empty);
    assert_eq!(cut(b"GET / HTTP/1.1\r\n\r\n", 4).unwrap_err(), CutError::Unknown);
    assert_eq!(cut(&vec![b'x'; 100_000], 4_096).unwrap_err(), CutError::Unknown);
    let mut cutter = Cutter::new(Some(Format::TransportStream));
    assert_eq!(cutter.push(&vec![b'x'; MOST + 188]).unwrap_err(), CutError::NotThat(Format::TransportStream));
    let mut cutter = Cutter::new(Some(Format::H264));
    assert_eq!(cutter.push(b"x"), Ok(Vec::new()));
    assert_eq!(cutter.finish().unwrap_err(), CutError::NotThat(Format::H264));
}

/// Where a packet may begin, and how many bytes are left at the end.
fn tried(mut rest: &[u8], skipped: impl Fn(&[u8]) -> usize) -> (Vec<usize>, usize) {
    let mut found = Vec::new();
    while rest.len() >= PACKET {
        found.extend((rest[0] == 0x47).then_some(rest.len()));
        rest = rest.get(skipped(rest)..).unwrap_or_default();
    }
    (found, rest.len())
}

proptest! {
    #[test]
    fn noise_is_skipped_as_if_byte_by_byte(noise in proptest::collection::vec(prop_oneof![2 => Just(0x47), 1 => 0..9_u8], 0..1_500)) {
        let slowly = |rest: &[u8]| match rest[0] {
            0x47 => PACKET,
            _ => transport::aligned(&rest[PACKET..]).map_or(1, |at| at + PACKET),
        };
        prop_assert_eq!(tried(&noise, transport::skipped), tried(&noise, slowly));
    }

    #[test]
    fn no_byte_is_lost_or_made_up(
        noise in proptest::collection::vec((0..2_000_usize, any::<u8>()), 0..20),
        ends in 0..3_000_usize,
        at_a_time in 1..500_usize,
        which in 0..2,
    ) {
        let mut stream = if which == 0 { h264().concat() } else { transport().concat() };
        let length = stream.len();
        for (at, byte) in noise {
            stream[at % length] = byte;
        }
        stream.truncate(ends);
        if let Ok((pieces, counters)) = cut(&stream, at_a_time) {
            let kept: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
            let other = counters.skipped_bytes + 188 * counters.null_packets;
            prop_assert_eq!(kept + other as usize, stream.len());
        }
    }

    #[test]
    fn any_bytes_are_pieces_or_an_error(
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0x47), any::<u8>()], 0..2_000),
        format in prop_oneof![
            Just(None), Just(Some(Format::H264)), Just(Some(Format::Mpeg4)), Just(Some(Format::TransportStream)),
        ],
    ) {
        let mut cutter = Cutter::new(format);
        if cutter.push(&bytes).is_ok() {
            let _ = cutter.finish();
        }
    }
}

#[test]
fn h265_and_mpeg_2_which_share_codes_with_known_formats_are_not_taken_for_them() {
    // A delimiter and parameters of H.265 (ISO 23008-2, table 7-1).
    let h265 = [[0, 0, 0, 1, 0x46, 1, 0x10], [0, 0, 0, 1, 0x40, 1, 0x0c]].concat();
    // A sequence header of MPEG-2 and its extension (ISO 13818-2, table 6-1).
    let mpeg2 = [[0, 0, 1, 0xb3, 0x14, 0, 0xb4, 0x15], [0, 0, 1, 0xb5, 0x14, 0x8a, 0, 1]].concat();
    for bytes in [&h265[..], &mpeg2, &mpeg2[..8]] {
        assert_eq!(Format::detect(bytes), None, "{bytes:x?}");
    }
    let delimiter = [0, 0, 0, 1, 0x09, 0xf0];
    assert_eq!(Format::detect(&delimiter), Some(Format::H264));
    let group = [0, 0, 1, 0xb3, 0, 0x10, 7, 0, 0, 1, 0xb6, 0x10];
    assert_eq!(Format::detect(&group), Some(Format::Mpeg4));
}

#[test]
fn a_short_transport_stream_that_is_sent_twice_does_not_go_back_in_time() {
    let [tables, i, _, _] = transport();
    let late = pes(0x100, 0xe0, 90_000 + 4 * 90_000, &h264()[1]);
    let once = [tables, i, late].concat();
    let (pieces, _) = cut(&once.repeat(2), 1_000).unwrap();
    let times: Vec<_> = pieces.iter().filter(|piece| piece.picture.is_some()).filter_map(|piece| piece.time).collect();
    assert_eq!(times, [0, 4, 4, 8].map(Duration::from_secs));
}
