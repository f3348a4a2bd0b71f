//! A video in the lab: the schedule of messages, and the results of a run.

use crate::record::VideoRun;
use crate::scenario::Scenario;
use crate::scenario::model::{MessageUnit, Video};
use anabranch_media::metrics::delivery::{Arrival, Delivery};
use anabranch_media::{Frame, FrameType, Packetiser, Trace};
use anabranch_policy::reliability::DeadlineOf;
use anabranch_policy::time::Instant;
use anabranch_sim::FlowResult;
use anabranch_sim::application::{FrameToSend, Schedule, VideoReceived};
use std::ops::Range;

/// Maximum bytes of a message; longer frames are several messages, since several messages must fit into the receive
/// buffer.
const LONGEST_MESSAGE: u32 = 16_000;

/// The messages of a video, with the frame of each.
#[derive(Clone, Debug)]
pub struct Sent {
    /// All passes, in coding order.
    pub trace: Trace,
    pub schedule: Schedule,
    /// Index of the first message of each frame, followed by the number of messages.
    pub first: Vec<usize>,
}

/// The messages of `video`.
pub fn sent(video: &Video) -> Sent {
    let trace = video.trace.repeat(video.repeats).unwrap_or_else(|_| video.trace.as_ref().clone());
    let (mut messages, mut first) = (Vec::new(), Vec::new());
    for (frame, group) in trace.frames().iter().zip(trace.group_times()) {
        first.push(messages.len());
        let size = (f64::from(frame.size) * video.load).round().clamp(1.0, f64::from(1 << 24)) as u32;
        let message = |bytes: u32| FrameToSend {
            at: frame.at,
            // The deadline of a frame is its decoding, not its display: other frames are predicted from it.
            play_out: video.deadline.play_out(frame.at, group),
            importance: frame.importance(),
            // Lifetimes that are equal for all frames come from the sender's reliability policy.
            lifetime: match video.deadline.of {
                DeadlineOf::Frame => None,
                DeadlineOf::Group => Some(video.deadline.lifetime(frame.at, group)),
            },
            bytes,
        };
        let cut = match video.messages {
            MessageUnit::Frames => Packetiser::new(LONGEST_MESSAGE),
            MessageUnit::Packets => Packetiser::default(),
        };
        let whole = Frame { size, ..*frame };
        messages.extend(cut.packets(0, &whole).map(|packet| message(packet.length)));
    }
    first.push(messages.len());
    Sent { trace, schedule: messages.into(), first }
}

/// Delivery of the frames; none without a video.
///
/// # Errors
/// The receiver read data that was not sent.
pub fn outcome(scenario: &Scenario, flow: &FlowResult) -> Result<Option<VideoRun>, String> {
    let Some(video) = &scenario.video else { return Ok(None) };
    let Some(received) = &flow.receiver().video else { return Ok(None) };
    if let Some(number) = received.wrong {
        return Err(format!(
            "message {number} of the video was delivered different from what was sent, or as a duplicate"
        ));
    }
    let sent = sent(video);
    let arrival = |frame: usize| arrival(received, sent.first[frame]..sent.first[frame + 1]);
    let arrivals: Vec<Option<Arrival>> = (0..sent.trace.frames().len()).map(arrival).collect();
    let start = flow.client.established.unwrap_or(Instant::ZERO);
    let delivery = Delivery::judge(&sent.trace, &arrivals, video.deadline, start);
    Ok(Some(VideoRun { pass: video.trace.frames().len(), delivery }))
}

/// When the first byte of a frame arrived, and when the application could read all of it.
fn arrival(received: &VideoReceived, messages: Range<usize>) -> Option<Arrival> {
    let mut seen = messages.map(|message| received.messages.get(message).copied().flatten());
    let begun = seen.next()??;
    let whole = seen.try_fold(begun.read, |last, next| Some(last.max(next?.read)));
    Some(Arrival { first: begun.arrived, whole })
}

/// Metrics that need no pictures: shares of frames in per cent, times in s, delays in ms.
pub fn metrics(run: &VideoRun) -> Vec<(String, f64)> {
    let delivery = &run.delivery;
    let all = delivery.sent.total();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let mut metrics = vec![
        ("on_time", 100.0 * delivery.on_time_ratio()),
        ("frame_loss", 100.0 * delivery.loss_rate()),
        ("frames_late", share(delivery.late.total(), all)),
        ("frames_given_up", share(delivery.lost.total(), all)),
        ("decodable", 100.0 * delivery.decodable_ratio()),
        ("stalls", delivery.stalls.count as f64),
        ("stalled", delivery.stalls.total.as_secs_f64()),
        ("longest_stall", delivery.stalls.longest.as_secs_f64()),
    ];
    for (kind, name) in FrameType::ALL.into_iter().zip(["frame_loss_i", "frame_loss_p", "frame_loss_b"]) {
        if delivery.sent[kind] > 0 {
            metrics.push((name, share(delivery.lost[kind] + delivery.late[kind], delivery.sent[kind])));
        }
    }
    for (name, part) in [("frame_delay_p50", 0.5), ("frame_delay_p95", 0.95), ("frame_delay_p99", 0.99)] {
        metrics.extend(delivery.delay(part).map(|delay| (name, delay.as_secs_f64() * 1e3)));
    }
    metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::model::Footage;
    use anabranch_media::clip;
    use anabranch_policy::time::Duration;
    use anabranch_sim::application::MessageRead;
    use std::sync::Arc;

    fn video(repeats: u32, load: f64, messages: MessageUnit) -> Video {
        Video {
            name: "bbb_qcif".to_owned(),
            footage: Footage::Clip,
            trace: Arc::new(clip::trace()),
            repeats,
            quick_repeats: 1,
            sweep_repeats: 1,
            load,
            deadline: Duration::from_millis(500).into(),
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
    fn with_a_deadline_per_group_sender_and_receiver_are_told_of_the_groups_time() {
        let mut of_group = video(2, 1.0, MessageUnit::Frames);
        of_group.deadline.of = DeadlineOf::Group;
        let sent = sent(&of_group);
        // I0 and six more, then nine from the I frame that is available after seven frames: 233,333 us.
        let micros = Duration::from_micros;
        let told = |frame: usize| (sent.schedule[frame].play_out, sent.schedule[frame].lifetime);
        assert_eq!(told(0), (micros(0), Some(micros(500_000))));
        assert_eq!(told(6), (micros(0), Some(micros(300_000))));
        assert_eq!(told(7), (micros(233_333), Some(micros(500_000))));
        assert_eq!(told(15), (micros(233_333), Some(micros(233_333))));
        // A repetition starts its own group.
        assert_eq!(sent.schedule[2_000].play_out, sent.schedule[2_000].at);
    }

    #[test]
    fn load_makes_frames_longer_and_sends_no_more_of_them() {
        let (once, hundred) = (sent(&video(1, 1.0, MessageUnit::Frames)), sent(&video(1, 100.0, MessageUnit::Frames)));
        let bytes = |sent: &Sent, frame: usize| {
            sent.schedule[sent.first[frame]..sent.first[frame + 1]].iter().map(|message| message.bytes).sum::<u32>()
        };
        assert_eq!((once.first.len(), hundred.first.len()), (2001, 2001));
        assert!((0..2000).all(|frame| bytes(&hundred, frame) == 100 * bytes(&once, frame)));
        // The first frame has 287 bytes, 28,700 at this load: more than one message of 16,000.
        assert_eq!((once.first[1], hundred.first[1]), (1, 2));
    }

    #[test]
    fn a_lost_p_frame_is_told_by_its_type_and_by_what_needs_it() {
        let trace = clip::trace();
        let place = trace.frames().iter().position(|frame| frame.display == 93).expect("a P frame");
        let at = |frame: usize| Instant::ZERO + trace.frames()[frame].at + Duration::from_millis(20);
        let arrival = |frame: usize| (frame != place).then(|| Arrival { first: at(frame), whole: Some(at(frame)) });
        let arrivals: Vec<_> = (0..2000).map(arrival).collect();
        let delivery = Delivery::judge(&trace, &arrivals, Duration::from_millis(500), Instant::ZERO);
        let run = VideoRun { pass: 2000, delivery };
        // One of 445 P frames is lost. Frames 91 to 98 in display order are not decodable: two B, it, two B, the next
        // P, two B.
        assert!((metric(&run, "frame_loss_p") - 100.0 / 445.0).abs() < 1e-9);
        assert_eq!((metric(&run, "frame_loss_i"), metric(&run, "frame_loss_b")), (0.0, 0.0));
        assert!((metric(&run, "decodable") - 100.0 * 1992.0 / 2000.0).abs() < 1e-9);
        assert_eq!((metric(&run, "frames_given_up"), metric(&run, "frames_late")), (0.05, 0.0));
        assert_eq!(metric(&run, "stalls"), 1.0);
        assert!((metric(&run, "longest_stall") - 8.0 / 30.0).abs() < 1e-3);
        assert!((metric(&run, "frame_delay_p99") - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_frame_of_several_messages_is_whole_with_the_last_of_them() {
        let time = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let read = |arrived: u64, read: u64| Some(MessageRead { arrived: time(arrived), read: time(read) });
        let messages = vec![read(10, 30), read(11, 31), None, read(20, 40)];
        let received = VideoReceived { messages, ..VideoReceived::default() };
        assert_eq!(arrival(&received, 0..2), Some(Arrival { first: time(10), whole: Some(time(31)) }));
        assert_eq!(arrival(&received, 1..3), Some(Arrival { first: time(11), whole: None }));
        assert_eq!(arrival(&received, 2..4), None);
    }
}
