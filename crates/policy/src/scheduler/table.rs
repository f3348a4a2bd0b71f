//! The schedulers, each in a file of its own below this one.

use super::api::Scheduler;
use super::{
    anabranch, blest, daps, deadline_reinjection, ecf, learned, linux, lowest_rtt, maps, message_head, ns2, otias,
    primary_overflow, qoe, redundant, round_robin, sttf, weighted,
};
use crate::table::Member;

/// The schedulers.
pub const TABLE: &[Member<dyn Scheduler>] = &[
    Member {
        name: "anabranch",
        summary: "Our own: fastest first, a slower path only for what it delivers in time, duplicates of what is overdue",
        source: "docs/default-policy.md, after BLEST, ECF and the NSDI 2012 mechanisms",
        build: anabranch::Anabranch::build,
    },
    Member {
        name: "lowest_rtt",
        summary: "The fastest subflow with room; retransmits and penalises when the window closes on a hole",
        source: "Raiciu et al., NSDI 2012, mechanisms 1 and 2",
        build: lowest_rtt::LowestRtt::build,
    },
    Member {
        name: "linux",
        summary: "Least queued bytes per pacing rate, in bursts: what upstream Linux does",
        source: "Linux 5.13 to 6.18, net/mptcp (replica of the rule)",
        build: linux::Linux::build,
    },
    Member {
        name: "ns2",
        summary: "Each window is filled before the next is looked at, in order of attachment: what the module of ns-2 does",
        source: "\"multipath-tcp\" for ns-2.35 (Nishida, WIDE project), MptcpAgent::send_control()",
        build: ns2::Ns2::build,
    },
    Member {
        name: "round_robin",
        summary: "Segment by segment in turn among the subflows with room",
        source: "Paasch et al., CSWS 2014",
        build: round_robin::RoundRobin::build,
    },
    Member {
        name: "redundant",
        summary: "Every subflow carries the whole stream; the first copy wins",
        source: "Froemmgen et al., ReMP TCP, ICC 2016",
        build: redundant::Redundant::build,
    },
    Member {
        name: "weighted",
        summary: "In proportion to given weights, exact to a segment",
        source: "Adiseshu, Parulkar, Varghese, SIGCOMM 1996 (striping by credit)",
        build: weighted::Weighted::build,
    },
    Member {
        name: "primary_overflow",
        summary: "A path is used only when those before it, in a given order, are full",
        source: "The rule of bonding routers; none published",
        build: primary_overflow::PrimaryOverflow::build,
    },
    Member {
        name: "blest",
        summary: "Uses a slower path only if the send window then still holds all that the fastest can send",
        source: "Ferlin et al., IFIP Networking 2016, and the out-of-tree kernel v0.95",
        build: blest::Blest::build,
    },
    Member {
        name: "ecf",
        summary: "Waits for the fastest path where all data would be delivered earlier that way",
        source: "Lim et al., CoNEXT 2017, and the out-of-tree kernel v0.95",
        build: ecf::Ecf::build,
    },
    Member {
        name: "daps",
        summary: "By a schedule over the forward delays, so that segments arrive in order",
        source: "Kuhn et al., ICC 2014",
        build: daps::Daps::build,
    },
    Member {
        name: "otias",
        summary: "To where each segment is expected to arrive first, queueing beyond the window included",
        source: "Yang et al., AINA workshops 2014",
        build: otias::Otias::build,
    },
    Member {
        name: "sttf",
        summary: "To where each segment is delivered first, by simulation of the rounds of each window",
        source: "Hurtig et al., IEEE/ACM Transactions on Networking 2019",
        build: sttf::Sttf::build,
    },
    Member {
        name: "maps",
        summary: "The path with the best mixture of round-trip time and loss that has room",
        source: "Zeng et al., Journal of Internet Services and Information Security 7(1), 2017 (MAPS)",
        build: maps::Maps::build,
    },
    Member {
        name: "qoe",
        summary: "Applications of low priority are slowed down on interfaces that lose; the fastest subflow first",
        source: "Zhang, Zhao, Cheng, IEEE Access, 2020, section IV.B and Appendix B",
        build: qoe::Qoe::build,
    },
    Member {
        name: "deadline_reinjection",
        summary: "The lowest RTT first; outstanding data is duplicated on another path when the player's buffer runs low",
        source: "Zheng et al., XLINK, SIGCOMM 2021",
        build: deadline_reinjection::DeadlineReinjection::build,
    },
    Member {
        name: "message_head",
        summary: "The lowest RTT first; the head of each message goes on a second subflow as well",
        source: "Our own, between redundant (ICC 2016) and lowest_rtt",
        build: message_head::MessageHead::build,
    },
    Member {
        name: "learned",
        summary: "In proportion to weights that a trained network chooses after each interval",
        source: "Our own; trained by PPO (Schulman et al., 2017) in the lab's environment, docs/python.md",
        build: learned::Learned::build,
    },
];
