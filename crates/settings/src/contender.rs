//! A contender of a comparison: a combination of policies, multipath or plain TCP, and the paths it may use.

mod check;
mod choices;
mod datagram;
mod description;
mod family;
mod model;
mod option;
mod scheme;
mod steered;

pub use check::check;
pub use choices::Choices;
pub use datagram::{DATAGRAM, DATAGRAM_DECIDES, build_datagram, datagram_default, datagram_members};
pub use family::{MemberInfo, decides, members};
pub use model::{Contender, LAB_DEFAULT, MeshRoutes, ON_NETWORKS, Route};
pub use option::{Surroundings, all_from_option, from_option};
pub use scheme::{Scheme, contenders};
pub use steered::{STEER, STEERED_END, Steered, SteeredEnd};
