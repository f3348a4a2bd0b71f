//! How much of a stream with pauses the default sends twice over paths that lose nothing.

use super::start::scene;
use anabranch_mptcp::{ConnectionConfig, Framing};
use anabranch_policy::reliability::ESSENTIAL;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::FrameToSend;
use anabranch_sim::reference::{Bottleneck, upload};
use anabranch_sim::{Application, FlowConfig};

/// Five seconds of messages of so many bytes at such intervals, over two paths of 10 Mbit/s with this delay: the share
/// that is duplicated.
fn duplicated(bytes: u32, every_ms: u64, delay_ms: u64) -> f64 {
    let path = Bottleneck::new(10, delay_ms, 100);
    let (mut world, client, paths) = scene(&[path, path]);
    let frame = |number: u64| {
        let at = Duration::from_millis(number * every_ms);
        FrameToSend { at, play_out: at, importance: ESSENTIAL, lifetime: None, bytes }
    };
    let frames: Vec<FrameToSend> = (0..5_000 / every_ms).map(frame).collect();
    let all = frames.len() as u64 * u64::from(bytes);
    let config = ConnectionConfig { framing: Framing::Messages, ..ConnectionConfig::default() };
    let flow = upload("messages", (client, paths[0].client), paths[0].server, Instant::ZERO, &config);
    world.add_flow(FlowConfig { application: Application::video(frames.into()), ..flow });
    assert!(world.run_until_finished(Instant::ZERO + Duration::from_secs(30)));
    world.results().flows[0].client.stats.bytes_duplicated as f64 / all as f64
}

/// An idle path was taken for a silent one, and each path was now and then a little earlier than the other: 7 % to 97 %
/// were sent twice, and the largest messages took 9 % to 15 % longer.
#[test]
fn over_like_paths_that_lose_nothing_little_is_sent_twice() {
    for delay_ms in [1, 10, 25] {
        for (bytes, every_ms) in [(9_200, 33), (60_000, 150), (200_000, 300)] {
            let share = duplicated(bytes, every_ms, delay_ms);
            assert!(share < 0.1, "{bytes} bytes each {every_ms} ms over paths of {delay_ms} ms: {share}");
        }
    }
}
