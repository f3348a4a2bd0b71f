//! Multipath TCP as in RFC 8684, section by section; `docs/rfc8684.md` maps sentences to tests.

mod multipath {
    mod addresses;
    mod backups;
    mod bare_segments;
    mod closing;
    mod data;
    mod data_reinjection;
    mod fallback;
    mod fallback_behind_hole;
    mod joining;
    mod manners;
    mod opening;
    mod orders;
    mod path_mtu;
    mod peer;
    mod race;
    mod random_fallbacks;
    mod restart;
    mod shared_mapping;
    mod shut_windows;
    mod silence;
    mod subflow_order;
    mod table;
    mod told_fallback;
    mod untold_fallback;
    mod user_timeout;
}
mod pair;
