use super::*;
use crate::elementary::{Codec, ElementaryStream, Reader};

/// Writes bit fields, the inverse of [`super::super::bits::Bits`].
#[derive(Default)]
struct Writer(Vec<bool>);

impl Writer {
    fn bits(mut self, count: u32, value: u32) -> Self {
        self.0.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    /// ue(v): the number plus one in binary, after as many zeros as it has bits but one.
    fn unsigned(self, value: u32) -> Self {
        let length = (value + 1).ilog2();
        self.bits(length, 0).bits(length + 1, value + 1)
    }

    /// se(v), table 9-3.
    fn signed(self, value: i32) -> Self {
        self.unsigned(if value > 0 { 2 * value as u32 - 1 } else { 2 * value.unsigned_abs() })
    }

    /// A unit with start code, this byte, and the stop bit. The bits must not need emulation prevention.
    fn unit(self, first: u8) -> Vec<u8> {
        let mut bits = self.bits(1, 1).0;
        bits.resize(bits.len().next_multiple_of(8), false);
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        [vec![0, 0, 1, first], bits.chunks(8).map(byte).collect()].concat()
    }
}

/// A sequence of 176x144 in the baseline profile, with frame numbers of 4 bits, an ordering type, and optionally
/// fields.
fn sequence(order: impl FnOnce(Writer) -> Writer, fields: bool) -> Vec<u8> {
    let head = Writer::default().bits(24, 0x42_FF_1E).unsigned(0).unsigned(0);
    let size = order(head).unsigned(1).bits(1, 0).unsigned(10).unsigned(if fields { 4 } else { 8 });
    let flags = if fields { size.bits(2, 0b00) } else { size.bits(1, 1) };
    // Direct inference; with fields the height, 160, is cropped by 4 units of 4 lines; no usability information.
    let cropped =
        if fields { flags.bits(2, 0b11).unsigned(0).unsigned(0).unsigned(0).unsigned(4) } else { flags.bits(2, 0) };
    cropped.bits(1, 0).unit(0x67)
}

fn parameters() -> Vec<u8> {
    Writer::default().unsigned(0).unsigned(0).bits(2, 0).unit(0x68)
}

/// The head of a slice up to the frame number: type 7 is I, 5 P, 6 B.
fn slice(kind: u32, number: u32) -> Writer {
    Writer::default().unsigned(0).unsigned(kind).unsigned(0).bits(4, number)
}

fn read(units: &[Vec<u8>]) -> ElementaryStream {
    ElementaryStream::read(&units.concat()).expect("a stream")
}

#[test]
fn type_2_shows_pictures_as_they_are_coded() {
    let units = [
        sequence(|bits| bits.unsigned(2), false),
        parameters(),
        slice(7, 0).unsigned(0).unit(0x65),
        slice(5, 1).unit(0x61),
        slice(5, 2).unit(0x01),
        slice(5, 2).bits(3, 0b101).unit(0x61),
    ];
    let stream = read(&units);
    assert_eq!((stream.format.width, stream.format.height, stream.format.rate), (176, 144, None));
    // 8.2.1.3: twice the frame number, less one for unreferenced pictures.
    assert_eq!(
        stream.pictures.iter().map(|picture| picture.order).collect::<Vec<_>>(),
        [(1, 0), (1, 2), (1, 3), (1, 4)]
    );
    assert_eq!(stream.pictures.iter().map(|picture| picture.referenced).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(stream.format.header.len(), units[0].len() + units[1].len());
}

#[test]
fn type_1_counts_steps_and_differences() {
    // Steps of 4 in a cycle of one; unreferenced pictures are 2 before; no difference of a bottom field.
    let order = |bits: Writer| bits.unsigned(1).bits(1, 0).signed(-2).signed(0).unsigned(1).signed(4);
    let units = [
        sequence(order, false),
        parameters(),
        slice(7, 0).unsigned(0).signed(0).unit(0x65),
        slice(5, 1).signed(0).unit(0x61),
        slice(6, 2).signed(0).unit(0x01),
        slice(5, 2).signed(1).unit(0x61),
    ];
    // 8.2.1.2: 0; 4; frame number 2 counts as 1 if not referenced: 4 - 2; 8 and the slice's own 1.
    let counts: Vec<i64> = read(&units).pictures.iter().map(|picture| picture.order.1).collect();
    assert_eq!(counts, [0, 4, 2, 9]);
}

#[test]
fn low_bits_wrap_and_frame_numbers_do_too() {
    let order = |bits: Writer| bits.unsigned(0).unsigned(0);
    let mut units = vec![sequence(order, false), parameters(), slice(7, 0).unsigned(0).bits(4, 0).unit(0x65)];
    units
        .extend([6, 12, 2, 8].into_iter().enumerate().map(|(at, low)| slice(5, at as u32 + 1).bits(4, low).unit(0x61)));
    let counts: Vec<i64> = read(&units).pictures.iter().map(|picture| picture.order.1).collect();
    assert_eq!(counts, [0, 6, 12, 18, 24]);
    // 8.2.1.1: the low bits of an unreferenced B picture do not affect wrapping. P 8, B 2, P 16.
    let [i, p, b, next] = [
        slice(7, 0).unsigned(0).bits(4, 0).unit(0x65),
        slice(5, 1).bits(4, 7).unit(0x61),
        slice(6, 2).bits(4, 2).unit(0x01),
        slice(5, 2).bits(4, 14).unit(0x61),
    ];
    let last = slice(6, 3).bits(4, 9).unit(0x01);
    let units_with_b = [sequence(order, false), parameters(), i, p, b, next, last, slice(5, 3).bits(4, 4).unit(0x61)];
    let counts: Vec<i64> = read(&units_with_b).pictures.iter().map(|picture| picture.order.1).collect();
    assert_eq!(counts, [0, 7, 2, 14, 9, 20]);
    let mut units = vec![sequence(|bits| bits.unsigned(2), false), parameters(), slice(7, 0).unsigned(0).unit(0x65)];
    units.extend((1..20).map(|number| slice(5, number % 16).unit(0x61)));
    let counts: Vec<i64> = read(&units).pictures.iter().map(|picture| picture.order.1).collect();
    assert_eq!(counts, (0..20).map(|number| 2 * number).collect::<Vec<i64>>());
}

#[test]
fn a_frame_whose_bottom_field_is_shown_first_is_ordered_by_that() {
    // bottom_field_pic_order_in_frame_present_flag: the second of the two bits.
    let parameters = Writer::default().unsigned(0).unsigned(0).bits(2, 0b01).unit(0x68);
    let units = [
        sequence(|bits| bits.unsigned(0).unsigned(0), false),
        parameters,
        slice(7, 0).unsigned(0).bits(4, 0).signed(1).unit(0x65),
        slice(5, 1).bits(4, 6).signed(-3).unit(0x61),
    ];
    let counts: Vec<i64> = read(&units).pictures.iter().map(|picture| picture.order.1).collect();
    assert_eq!(counts, [0, 3]);
}

#[test]
fn two_fields_are_one_picture_and_slices_too() {
    let order = |bits: Writer| bits.unsigned(0).unsigned(0);
    let field = |kind, number, bottom: u32| slice(kind, number).bits(2, 0b10 | bottom);
    let units = [
        sequence(order, true),
        parameters(),
        field(7, 0, 0).unsigned(0).bits(4, 0).unit(0x65),
        field(5, 0, 1).bits(4, 1).unit(0x61),
        field(5, 1, 0).bits(4, 2).unit(0x61),
        field(5, 1, 0).bits(4, 2).bits(2, 0b11).unit(0x61),
        field(5, 1, 1).bits(4, 3).unit(0x61),
    ];
    let stream = read(&units);
    assert_eq!((stream.format.width, stream.format.height), (176, 144), "cropped");
    let sizes: Vec<usize> = stream.pictures.iter().map(|picture| picture.data.len()).collect();
    let length = |units: &[Vec<u8>]| units.iter().map(Vec::len).sum::<usize>();
    assert_eq!(sizes, [length(&units[..4]), length(&units[4..])]);
    assert_eq!(stream.pictures[0].frame_type, FrameType::P, "with its second field it needs what P needs");
    assert_eq!(stream.pictures.iter().map(|picture| picture.order).collect::<Vec<_>>(), [(1, 0), (1, 2)]);
}

#[test]
fn a_slice_that_no_parameters_explain_is_dropped_before_and_refused_after_the_first() {
    let order = |bits: Writer| bits.unsigned(2);
    let unknown = Writer::default().unsigned(0).unsigned(5).unsigned(3).bits(4, 1).unit(0x61);
    let mut reader = Reader::of(Codec::H264);
    let start = [unknown.clone(), sequence(order, false), parameters(), slice(7, 0).unsigned(0).unit(0x65)];
    reader.handle_bytes(&start.concat()).expect("the first is dropped");
    reader.handle_bytes(&unknown).expect("not whole yet");
    assert_eq!(reader.handle_end(), Err(StreamError::Picture(1)));
    assert_eq!(reader.dropped(), 1);
}

#[test]
fn emulation_prevention_is_taken_out() {
    assert_eq!(without_emulation(&[1, 0, 0, 3, 1, 0, 0, 3, 0, 0, 3, 3]), [1, 0, 0, 1, 0, 0, 0, 0, 3]);
}
