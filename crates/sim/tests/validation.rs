//! Whether the lab is right: against ns-3, against the known laws of throughput, and against what the authors of coupled
//! congestion control promise.
//!
//! The lab is deterministic, so its results are compared exactly with the tables in `tests/golden`;
//! `ANABRANCH_BLESS=1` writes them anew. What ns-3 measured stands beside it there, and how far the two may differ is
//! asserted here, with the reason where that is more than 5 %.

mod validation {
    mod coexistence;
    mod exploration;
    mod fairness;
    mod golden;
    mod grid;
    mod model_based;
    mod random_loss;
}
