//! Airtimes and saturated links against the formulas.

use super::super::airtime::{ANSWER_BYTES, DATA_OVERHEAD, RTS_BYTES, airtime};
use super::*;

#[test]
fn airtimes_are_those_of_the_standard() {
    // 1500 bytes and 36 more at 11 Mbit/s: 192 + 1117.1, rounded up.
    let data = |rate| airtime(1500 + DATA_OVERHEAD, megabits(rate), Preamble::Long);
    assert_eq!(data(11.0), micros(192 + 1118));
    assert_eq!(data(5.5), micros(192 + 2235));
    assert_eq!(data(2.0), micros(192 + 6144));
    assert_eq!(data(1.0), micros(192 + 12288));
    assert_eq!(airtime(ANSWER_BYTES, megabits(1.0), Preamble::Long), micros(304));
    assert_eq!(airtime(RTS_BYTES, megabits(1.0), Preamble::Long), micros(352));
    assert_eq!(airtime(ANSWER_BYTES, megabits(11.0), Preamble::Short), micros(96 + 11));
    // A short preamble cannot precede the lowest rate.
    assert_eq!(airtime(ANSWER_BYTES, megabits(1.0), Preamble::Short), micros(304));
}

#[test]
fn the_spaces_are_those_of_802_11b() {
    let times = Times::new(&MediumConfig::default());
    assert_eq!(times.distributed_space, micros(50));
    assert_eq!(times.extended_space, micros(10 + 304 + 50));
    assert_eq!(times.answer_timeout, micros(10 + 20 + 192));
}

/// DIFS 50, half of 31 slots 310, preamble 192, 1536 bytes 1117, SIFS 10, ACK 202 microseconds: 1881 in all, and two
/// more since the parts behind the preambles are rounded up.
#[test]
fn a_packet_of_1500_bytes_takes_1881_microseconds() {
    let config = MediumConfig { acknowledgment_rate: AnswerRate::Data, ..MediumConfig::default() };
    let times = Times::new(&config);
    let back_off = times.slot * 31 / 2;
    let all = times.distributed_space + back_off + times.data(1500, false) + times.short_space + times.acknowledgment;
    assert_eq!(all, micros(1881 + 2));

    let mut medium = chain(config, 2);
    let packets = saturate(&mut medium, &[(0, 1)], 1500, 10.0);
    let cycle = 10e6 / packets[0] as f64;
    assert!((cycle / 1883.0 - 1.0).abs() < 0.01, "{cycle}");
}
