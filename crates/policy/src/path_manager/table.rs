//! The path managers.

use super::api::PathManager;
use super::{anabranch, full_mesh, goodput_trial, lm3, one_way_delay, predictive, pu2m2, same_subnet};
use crate::table::Member;

/// The path managers.
pub const TABLE: &[Member<dyn PathManager>] = &[
    Member {
        name: "anabranch",
        summary: "Our own: full_mesh, and paths that are silent or carry nothing are probed",
        source: "docs/default-policy.md",
        build: anabranch::Anabranch::build,
    },
    Member {
        name: "full_mesh",
        summary: "Every local address to every address of the peer's; lost subflows are opened again",
        source: "RFC 8684, section 3.4; limits as Linux has them",
        build: full_mesh::FullMesh::build,
    },
    Member {
        name: "goodput_trial",
        summary: "full_mesh, and a path without which a blocked connection carries more, by trial, is suspended",
        source: "ours; for a daemon that steers an operating system's connections",
        build: goodput_trial::GoodputTrial::build,
    },
    Member {
        name: "lm3",
        summary: "full_mesh, and a blocked receive buffer halves the number of active paths",
        source: "Cao et al., Applied Sciences 10(1), 2020",
        build: lm3::build,
    },
    Member {
        name: "one_way_delay",
        summary: "full_mesh, and the receiver names the path of the largest forward delay when its buffer blocks",
        source: "Cao et al., IEEE Access 7, 2019 (recPR-MPTCP)",
        build: one_way_delay::build,
    },
    Member {
        name: "predictive",
        summary: "full_mesh, and a path that is forecast to be down is left while another is forecast to be up",
        source: "ours; the idea for next hops: Zhang, Zhao, Cheng, IEEE Access 8, 2020",
        build: predictive::build,
    },
    Member {
        name: "pu2m2",
        summary: "full_mesh, and a path whose delay leaves its band, or that times out, is suspended (a reading)",
        source: "Cao et al., Concurrency and Computation 30(3), 2018, as its authors describe it later",
        build: pu2m2::build,
    },
    Member {
        name: "same_subnet",
        summary: "full_mesh, but only between addresses of the same subnet",
        source: "Zhang, Zhao, Cheng, IEEE Access 8, 2020, section V-A-3",
        build: same_subnet::SameSubnet::build,
    },
];
