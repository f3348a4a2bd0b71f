//! The default combination in the lab: a path that fails while its interface stays up, and one that recovers; its share
//! of a shared bottleneck; how soon it has found a path's capacity; how much it sends twice.
//!
//! *Evidence* of a failure is a silence of three smoothed round-trip times with data outstanding. A path *carries its
//! share again* when more than 80 % of the data acknowledged per half second before the failure is acknowledged in some
//! half second. A *stall* is a time in which the receiver's stream does not advance.

mod default {
    mod copies;
    mod dead_path;
    mod fairness;
    mod live;
    mod receivers;
    mod start;
    mod young;
}
