//! A video in the lab: the schedule that is sent, and what a run made of it.

use crate::record::VideoRun;
use crate::scenario::Scenario;
use crate::scenario::model::{MessageUnit, Video};
use crate::statistics::quantile;
use anabranch_media::{Dependency, Frame, FrameType, Packetiser, Trace};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::FlowResult;
use anabranch_sim::application::{FrameToSend, Schedule, VideoReceived};
use std::sync::Arc;

/// What a video sends: messages, and of which frame each is.
#[derive(Clone, Debug)]
pub struct Sent {
    /// All passes, in coding order.
    pub trace: Trace,
    /// The messages.
    pub schedule: Schedule,
    /// The first message of each frame, and one more entry behind the last.
    pub first: Vec<usize>,
}

/// What `video` sends.
pub fn sent(video: &Video) -> Sent {
    let trace = video.trace.repeat(video.repeats).unwrap_or_else(|_| video.trace.as_ref().clone());
    let (mut messages, mut first) = (Vec::new(), Vec::new());
    for frame in trace.frames() {
        first.push(messages.len());
        let size = (f64::from(frame.size) * video.load).round().clamp(1.0, f64::from(1 << 24)) as u32;
        let message = |bytes: u32| FrameToSend {
            at: frame.at,
            // A frame is needed when it is decoded, not when it is shown: others are predicted from it.
            play_out: frame.at,
            importance: importance(frame),
            lifetime: Some(video.deadline),
            bytes,
        };
        match video.messages {
            MessageUnit::Frames => messages.push(message(size)),
            MessageUnit::Packets => {
                let whole = Frame { size, ..*frame };
                messages.extend(Packetiser::default().packets(0, &whole).map(|packet| message(packet.length)));
            }
        }
    }
    first.push(messages.len());
    Sent { trace, schedule: messages.into(), first }
}

/// The classes of frames spread over what a header can say: I frames are never given up for lack of room, B frames first.
fn importance(frame: &Frame) -> u8 {
    [0, 128, 255][usize::from(frame.importance()).min(2)]
}

/// What became of the frames; none if no video was sent.
///
/// # Errors
/// If the receiver read something that was not sent.
pub fn outcome(scenario: &Scenario, flow: &FlowResult) -> Result<Option<VideoRun>, String> {
    let Some(video) = &scenario.video else { return Ok(None) };
    let Some(received) = &flow.receiver().video else { return Ok(None) };
    if let Some(number) = received.wrong {
        return Err(format!("message {number} of the video was delivered different from what was sent, or twice"));
    }
    let sent = sent(video);
    let start = flow.client.established.unwrap_or(Instant::ZERO);
    let in_time = received.on_time(&sent.schedule, video.deadline);
    let messages = |frame: usize| sent.first[frame]..sent.first[frame + 1];
    let frames = 0..sent.trace.frames().len();
    let delay = |frame: usize| delay(received, &sent.schedule, messages(frame), start);
    let delays = frames.clone().map(delay).collect();
    let on_time = frames.map(|frame| messages(frame).all(|message| in_time[message])).collect();
    let pass = video.trace.frames().len();
    Ok(Some(VideoRun { trace: Arc::new(sent.trace), pass, delays, on_time }))
}

/// From when a frame was there until the last of its messages could be read.
fn delay(
    received: &VideoReceived,
    schedule: &[FrameToSend],
    mut messages: std::ops::Range<usize>,
    start: Instant,
) -> Option<Duration> {
    let there = start + schedule.get(messages.start)?.at;
    let read = |message: usize| received.messages.get(message)?.map(|seen| seen.read);
    let last = messages.try_fold(Instant::ZERO, |last, message| Some(last.max(read(message)?)));
    last.map(|last| last - there)
}

/// The numbers of a run that need no pictures: shares of frames in per cent, times in s, delays in ms.
pub fn metrics(run: &VideoRun) -> Vec<(String, f64)> {
    let frames = run.trace.frames();
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let count = |wanted: &dyn Fn(usize) -> bool| (0..frames.len()).filter(|at| wanted(*at)).count();
    let on_time = share(count(&|at| run.on_time[at]), frames.len());
    let given_up = share(count(&|at| run.delays[at].is_none()), frames.len());
    let mut metrics = vec![
        ("on_time", on_time),
        ("frame_loss", 100.0 - on_time),
        ("frames_given_up", given_up),
        ("frames_late", (100.0 - on_time - given_up).max(0.0)),
    ];
    for (kind, name) in FrameType::ALL.into_iter().zip(["frame_loss_i", "frame_loss_p", "frame_loss_b"]) {
        let all = count(&|at| frames[at].frame_type == kind);
        if all > 0 {
            metrics.push((name, share(count(&|at| frames[at].frame_type == kind && !run.on_time[at]), all)));
        }
    }
    let decodable = Dependency::new(&run.trace).decodable(&run.on_time);
    metrics.push(("decodable", share(count(&|at| decodable[at]), frames.len())));
    let (stalls, stalled, longest) = stalls(run, &decodable);
    metrics.extend([("stalls", stalls as f64), ("stalled", stalled), ("longest_stall", longest)]);
    let delays: Vec<f64> = run.delays.iter().flatten().map(|delay| delay.as_secs_f64() * 1e3).collect();
    if !delays.is_empty() {
        metrics.push(("frame_delay", delays.iter().sum::<f64>() / delays.len() as f64));
        let parts = [("frame_delay_p50", 0.5), ("frame_delay_p95", 0.95), ("frame_delay_p99", 0.99)];
        metrics.extend(parts.map(|(name, part)| (name, quantile(&delays, part))));
    }
    metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// How often the picture stands still since one frame or more in a row do not decode, for how long in all, and for how long
/// at most; seconds.
fn stalls(run: &VideoRun, decodable: &[bool]) -> (usize, f64, f64) {
    let shown: Vec<bool> = run.trace.display_order().iter().map(|place| decodable[*place]).collect();
    let stalls: Vec<usize> = shown.split(|shown| *shown).map(<[bool]>::len).filter(|length| *length > 0).collect();
    let frame = run.trace.length().as_secs_f64() / shown.len().max(1) as f64;
    let (all, longest) = (stalls.iter().sum::<usize>(), stalls.iter().max().copied().unwrap_or(0));
    (stalls.len(), all as f64 * frame, longest as f64 * frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_media::clip;

    fn video(repeats: u32, load: f64, messages: MessageUnit) -> Video {
        Video {
            name: "bbb_qcif".to_owned(),
            built_in: true,
            trace: Arc::new(clip::trace()),
            repeats,
            quick_repeats: 1,
            load,
            deadline: Duration::from_millis(500),
            messages,
        }
    }

    fn metric(run: &VideoRun, name: &str) -> f64 {
        metrics(run).into_iter().find(|(known, _)| known == name).expect("it is measured").1
    }

    #[test]
    fn five_passes_in_packets_are_the_papers_11250() {
        let sent = sent(&video(5, 1.0, MessageUnit::Packets));
        assert_eq!((sent.trace.frames().len(), sent.schedule.len()), (10_000, 11_250));
        assert_eq!((sent.first.len(), sent.first[10_000]), (10_001, 11_250));
    }

    #[test]
    fn load_makes_frames_longer_and_sends_no_more_of_them() {
        let (once, ten) = (sent(&video(1, 1.0, MessageUnit::Frames)), sent(&video(1, 10.0, MessageUnit::Frames)));
        assert_eq!(once.schedule.len(), ten.schedule.len());
        assert!(once.schedule.iter().zip(ten.schedule.iter()).all(|(one, ten)| ten.bytes == 10 * one.bytes));
    }

    #[test]
    fn a_lost_p_frame_costs_those_that_need_it_and_the_picture_stands_still() {
        let trace = clip::trace();
        let place = trace.frames().iter().position(|frame| frame.display == 93).expect("a P frame");
        let mut on_time = vec![true; 2000];
        on_time[place] = false;
        let delays = (0..2000).map(|at| (at != place).then(|| Duration::from_millis(at as u64 % 100))).collect();
        let run = VideoRun { trace: Arc::new(trace), pass: 2000, delays, on_time };
        // Of 445 P frames one is lost. Display places 91 to 98 do not decode: two B, it, two B, the next P, two B.
        assert!((metric(&run, "frame_loss_p") - 100.0 / 445.0).abs() < 1e-9);
        assert_eq!((metric(&run, "frame_loss_i"), metric(&run, "frame_loss_b")), (0.0, 0.0));
        assert!((metric(&run, "decodable") - 100.0 * 1992.0 / 2000.0).abs() < 1e-9);
        assert_eq!((metric(&run, "frames_given_up"), metric(&run, "frames_late")), (0.05, 0.0));
        assert_eq!(metric(&run, "stalls"), 1.0);
        assert!((metric(&run, "longest_stall") - 8.0 / 30.0).abs() < 1e-3);
        assert_eq!(metric(&run, "frame_delay_p99"), 98.0);
    }
}
