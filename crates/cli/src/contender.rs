//! A contender of a comparison: a combination of policies, multipath or plain TCP, and the paths it may use.

mod check;
mod choices;
mod family;
mod model;
mod option;
mod scheme;

pub use check::check;
pub use choices::Choices;
pub use family::{MemberInfo, datagram_members, decides, members};
pub use model::{Contender, MeshRoutes, ON_NETWORKS, RECOMMENDED, Route};
pub use option::{Surroundings, all_from_option, from_option};
pub use scheme::{Scheme, contenders};
