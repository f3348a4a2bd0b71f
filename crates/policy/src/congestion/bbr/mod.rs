//! BBR, version 3: sends at the measured delivery rate, with about one bandwidth-delay product in flight, and regularly
//! probes for more.
//!
//! Source: draft-ietf-ccwg-bbr (working copy of July 2026, after revision 06); names are the draft's. Rates are bits per
//! second, volumes bytes of payload.
//!
//! The model of a path: max_bw, the largest delivery rate of the present and the previous cycle; min_rtt, the least
//! round-trip time of 10 s; bdp = bw min_rtt. Its bounds from losses: inflight_longterm, above which more than 2 % were
//! lost; bw_shortterm and inflight_shortterm, set by losses in this cycle. bw = min(max_bw, bw_shortterm).
//!
//! pacing_rate = 0.99 pacing_gain bw; cwnd = cwnd_gain bdp + extra_acked, within those limits. States:
//!
//! | state | pacing_gain | cwnd_gain | until |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | three rounds without 25 % more, or a round in recovery with over 2 % lost in 6 places |
//! | Drain | 0.5 | 2 | in flight is at most bdp, or three rounds |
//! | ProbeBW_DOWN | 0.9 | 2 | in flight is at most bdp and 0.85 inflight_longterm |
//! | ProbeBW_CRUISE | 1 | 2 | 2 to 3 s since the last DOWN, or after min(bdp, cwnd) in segments or 62 to 63 rounds |
//! | ProbeBW_REFILL | 1 | 2 | one round |
//! | ProbeBW_UP | 1.25 | 2.25 | full pipe as in Startup, or over 2 % lost |
//! | ProbeRTT | 1 | 0.5 | 200 ms and a round; entered when min_rtt was not seen for 5 s |
//!
//! Decisions, where the draft leaves a choice:
//!
//! - offload_budget is three segments, not three quanta, where a quantum is two segments (below 22 Mbit/s): those are
//!   released one by one, and a late wake-up catches up by one.
//! - The "6 discontiguous sequence ranges lost" that end Startup are counted as acknowledgements that show a loss, as in
//!   Linux.
//! - The state that a spurious loss detection restores is saved once, before the first loss of a recovery. (By the
//!   letter of the draft the first loss of each round saves it again, and a loss after the one that ended a probe would
//!   discard that fact.)
//! - An acknowledgement without a rate sample does not count as a round without growth.
//! - The random numbers come from a generator seeded with the moment when the subflow began and its first round trip.
//! - If the handshake gave no round-trip time, pacing restarts with the first sample, as in Linux.
//! - A product of bandwidth and delay below four segments counts as four for the time between probes: otherwise the
//!   cycle would consist of probes only.
//! - Pacing never falls below one segment per second.
//! - A penalty of the scheduler halves the window, which then grows back by what is delivered.
//!
//! Left out: the response to ECN of BBR version 3 in Linux (the draft has none); a congestion mark counts as a loss in
//! its round, since RFC 3168 requires a response. The rule for connections without SACK (one loss is too many): the
//! family does not know what was negotiated.

mod control;
mod loss;
mod machine;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
mod state;

use super::CongestionControl;
use super::uncoupled::Uncoupled;
use crate::table::{Member, Reader, SettingError};
use machine::Bbr;

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn CongestionControl> = Member {
    name: "bbr",
    summary: "Model of the path on each subflow by itself: sends at the rate delivered, version 3.",
    source: "draft-ietf-ccwg-bbr-06",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn CongestionControl>, SettingError> {
    Ok(Box::new(Uncoupled::<Bbr>::new(())))
}
