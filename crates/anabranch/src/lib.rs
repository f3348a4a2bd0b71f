//! Multipath TCP (RFC 8684) in user space: the interface for programs, re-exported from the crates that implement it.
//!
//! A [`Stack`] has addresses on devices; programs use its [`Stream`]s and [`Listener`]s. With the feature `host`, the default, it is
//! attached to this machine; [`blocking`] has the same without an asynchronous runtime. As root, over all uplinks:
//!
//! ```no_run
//! # #[cfg(feature = "host")]
//! use anabranch::{Attachment, ConnectionConfig, StackConfig, attach};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # #[cfg(feature = "host")]
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = attach(&Attachment::default(), StackConfig::default()).await?;
//!     let mut stream = host.stack().connect(None, "192.0.2.1:80".parse()?, ConnectionConfig::default()).await?;
//!     stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     println!("{} over {:?}", answer.len(), stream.protocol());
//!     host.detach().await?;
//!     Ok(())
//! }
//! # #[cfg(not(feature = "host"))]
//! # fn main() {}
//! ```
//!
//! The defaults are those of the command `anabranch proxy`: the policies of [`Combination::RECOMMENDED`], and a dead
//! peer is detected within a minute. Other policies are chosen by name:
//!
//! ```
//! use anabranch::{Combination, ConnectionConfig, StackConfig};
//!
//! let policies: Combination = "anabranch,congestion=olia".parse()?;
//! let config = StackConfig::of(&policies)?;
//! let connection = ConnectionConfig { priority: 2, ..ConnectionConfig::of(&policies)? };
//! # Ok::<(), anabranch::CombinationError>(())
//! ```

#![warn(missing_docs)]

#[cfg(feature = "host")]
pub use anabranch_attach::{
    Attached, AttachedPath, Attachment, HostError, HostOptions, Local, ServerAddresses, Tunnels, Uplinks, attach,
    blocking, plan,
};
pub use anabranch_mptcp::{
    BufferMemory, BufferSize, CloseCause, ConnectionConfig, ConnectionInfo, EcnMode, FallbackCause, Framing,
    InitialPath, MessageOptions, OperationError, Policies, Protocol, Record, SubflowInfo, TcpConfig,
};
pub use anabranch_policy::combination::{Combination, CombinationError};
pub use anabranch_policy::ids::{AddressId, SubflowId};
/// The type of times in configurations.
pub use anabranch_policy::time::Duration;
pub use anabranch_stack::{
    AttachError, ConnectError, ConnectionReport, Device, DeviceId, Driver, ListenError, Listener, PathChange,
    PathReport, ReadHalf, Stack, StackConfig, Stream, WriteHalf,
};

/// The examples of `docs/library.md`, included so that they are compiled.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
