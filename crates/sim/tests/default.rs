//! The default combination in the lab: a path that dies while its interface stays up, and one that comes back; what it
//! takes of a bottleneck that it shares; how soon it has found what a path carries.
//!
//! *Evidence* of a death is a silence of three smoothed round trips with data outstanding. A path *carries its share
//! again* when in some half second it has more than 80 % of the data acknowledged that it had per half second before.
//! A *stall* is a time in which the receiver's stream does not advance.

mod default {
    mod dead_path;
    mod fairness;
    mod live;
    mod start;
    mod young;
}
