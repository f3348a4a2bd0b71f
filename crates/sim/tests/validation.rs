//! Validation of the lab: against ns-3, against known laws of throughput, and against the goals of the authors of
//! coupled congestion control.
//!
//! The lab is deterministic, so its results are compared exactly with the tables in `tests/golden`; `ANABRANCH_BLESS=1`
//! rewrites them. ns-3's results are in the same tables, and the tolerated difference is asserted here, with the reason
//! where it exceeds 5 %.

mod validation {
    mod coexistence;
    mod exploration;
    mod fairness;
    mod golden;
    mod grid;
    mod model_based;
    mod random_loss;
}
