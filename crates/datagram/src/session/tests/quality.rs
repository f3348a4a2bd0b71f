//! Streams of a video call's size and more over emulated links: what arrives, in which order, how evenly.

use super::*;

/// A stream of datagrams of 1,250 bytes with all headers, one each `pause`. Returns the share that arrived, the share
/// that arrived out of order, and the highest jitter (RFC 3550) in milliseconds, without the first second.
fn quality(delays: &[u64], megabits: &[u64], name: &str, pause: Duration) -> (f64, f64, f64) {
    let mut net = Net::new(delays, name);
    for (link, megabits) in net.links.iter_mut().zip(megabits) {
        link.per_byte = Duration::from_nanos(8_000 / megabits);
    }
    net.run(millis(500));
    let payload = 1_250 - 28 - 34 - 23;
    let (begun, mut sent) = (net.now, Vec::new());
    while net.now < begun + Duration::from_secs(6) {
        let mut bytes = vec![0; payload];
        bytes[..4].copy_from_slice(&(sent.len() as u32).to_be_bytes());
        sent.push(net.now);
        net.client.send(net.now, &Datagram { payload: bytes.into(), ..datagram(0) });
        net.seen.clear();
        net.run(pause);
    }
    net.run(millis(300));
    let number =
        |datagram: &Datagram| u32::from_be_bytes(datagram.payload[..4].try_into().expect("four bytes")) as usize;
    let first = sent.iter().position(|at| *at >= begun + Duration::from_secs(1)).expect("it took longer");
    let came: Vec<(usize, Instant)> = net.to_server.iter().map(number).zip(net.came.iter().copied()).collect();
    let came: Vec<_> = came.into_iter().filter(|(number, _)| *number >= first).collect();
    let (mut jitter, mut worst, mut highest, mut late) = (0.0, 0.0_f64, 0, 0);
    for pair in came.windows(2) {
        let transit = |(number, at): (usize, Instant)| at.since(sent[number]).as_secs_f64() * 1e3;
        jitter += ((transit(pair[1]) - transit(pair[0])).abs() - jitter) / 16.0;
        worst = worst.max(jitter);
        highest = highest.max(pair[0].0);
        late += usize::from(pair[1].0 < highest);
    }
    let all = (sent.len() - first) as f64;
    (came.len() as f64 / all, late as f64 / all, worst)
}

#[test]
fn a_stream_of_105_mbit_over_twice_100_comes_whole_and_even() {
    // 1,250 bytes each 95.2 us.
    let (came, late, jitter) = quality(&[25, 25], &[100, 100], "lowest_delay", Duration::from_nanos(95_238));
    assert!(came == 1.0 && late == 0.0 && jitter < 0.5, "{came} came, {late} late, jitter {jitter} ms");
}

#[test]
fn a_stream_of_180_mbit_over_twice_100_comes_whole_and_even() {
    let (came, late, jitter) = quality(&[25, 25], &[100, 100], "lowest_delay", Duration::from_nanos(55_556));
    assert!(came == 1.0 && late == 0.0 && jitter < 0.5, "{came} came, {late} late, jitter {jitter} ms");
}

#[test]
fn a_stream_of_105_mbit_over_300_and_80_stays_on_the_first() {
    let (came, late, jitter) = quality(&[10, 30], &[300, 80], "lowest_delay", Duration::from_nanos(95_238));
    assert!(came == 1.0 && late == 0.0 && jitter < 0.1, "{came} came, {late} late, jitter {jitter} ms");
}
