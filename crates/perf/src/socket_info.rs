//! The kernel's data on its connections: TCP_INFO, MPTCP_INFO and MPTCP_FULL_INFO. Older kernels return less of it.
//!
//! The structures of `linux/tcp.h` and `linux/mptcp.h` only ever grow, so fields are read at their offsets from as many
//! bytes as the kernel returned.

use super::reading::PathReading;
use anabranch_system::socket_option;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use nix::errno::Errno;
use nix::libc;
use socket2::{Domain, Protocol, Socket, Type};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_FULL_INFO: i32 = 4;

/// Bytes for a `struct tcp_info`.
const TCP_INFO: usize = 512;
/// Bytes of a `struct mptcp_subflow_info`: a number and two addresses of the largest size.
const SUBFLOW_INFO: usize = 264;
/// Most subflows read.
const SUBFLOWS: usize = 16;
/// Bytes of `struct mptcp_full_info` before the `struct mptcp_info` at its end.
const FULL_INFO_HEAD: usize = 40;

/// The kernel's data on an MPTCP connection.
pub(super) struct MptcpInfo {
    /// Fell back to plain TCP.
    pub fell_back: bool,
    /// Bytes acknowledged at data level; kernels before 6.5 do not count them.
    pub bytes_acked: Option<u64>,
    /// The first unacknowledged data sequence number.
    pub unacknowledged: u64,
}

/// Bytes with numbers at offsets; beyond the end they read as 0.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
    fn u8(&self, at: usize) -> u8 {
        u8::from_ne_bytes(self.bytes(at))
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(at))
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }

    /// Reads a `sockaddr` of either family.
    fn address(&self, at: usize) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.bytes(at + 2));
        match i32::from(self.u16(at)) {
            libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::from(self.bytes::<4>(at + 4)).into(), port)),
            libc::AF_INET6 => {
                let address = Ipv6Addr::from(self.bytes::<16>(at + 8));
                Some(SocketAddr::new(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4), port))
            }
            _ => None,
        }
    }
}

/// Whether the kernel tells of MPTCP connections: from 5.16 on. A socket without a connection shows it, as one that fell back
/// and any on an older kernel are refused alike.
pub(super) fn is_told() -> bool {
    static TOLD: OnceLock<bool> = OnceLock::new();
    *TOLD.get_or_init(|| {
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).is_ok_and(|new| mptcp(&new).is_ok())
    })
}

/// Reads the data of an MPTCP connection.
pub(super) fn mptcp(socket: &impl AsRawFd) -> Result<MptcpInfo, Errno> {
    let mut bytes = [0; 256];
    let length = socket_option(socket.as_raw_fd(), SOL_MPTCP, MPTCP_INFO, &mut bytes)?;
    let info = Fields(bytes.get(..length).unwrap_or_default());
    Ok(MptcpInfo {
        fell_back: info.u32(8) & 1 != 0,
        bytes_acked: (length >= 80).then(|| info.u64(72)),
        unacknowledged: info.u64(24),
    })
}

/// Reads the data of a TCP connection.
pub(super) fn tcp(socket: &impl AsRawFd, local: SocketAddr, remote: SocketAddr) -> Result<PathReading, Errno> {
    let mut bytes = [0; TCP_INFO];
    let length = socket_option(socket.as_raw_fd(), libc::SOL_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(of_tcp_info(&Fields(bytes.get(..length).unwrap_or_default()), 0, local, remote, false))
}

/// Reads the data of each subflow of an MPTCP connection.
pub(super) fn subflows(socket: &impl AsRawFd) -> Result<Vec<PathReading>, Errno> {
    let mut infos = vec![0_u8; SUBFLOWS * SUBFLOW_INFO];
    let mut tcp_infos = vec![0_u8; SUBFLOWS * TCP_INFO];
    let mut full = [0_u8; FULL_INFO_HEAD + 256];
    let numbers = [0, TCP_INFO as u32, 0, SUBFLOW_INFO as u32, 0, SUBFLOWS as u32];
    let head = numbers.into_iter().flat_map(u32::to_ne_bytes);
    let pointers = [infos.as_mut_ptr() as u64, tcp_infos.as_mut_ptr() as u64];
    let head = head.chain(pointers.into_iter().flat_map(u64::to_ne_bytes));
    full.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
    // The kernel also writes to the two arrays, at most the sizes and the number above, which they have.
    let length = socket_option(socket.as_raw_fd(), SOL_MPTCP, MPTCP_FULL_INFO, &mut full)?;
    let full = Fields(full.get(..length).unwrap_or_default());
    let count = (full.u32(16) as usize).min(SUBFLOWS);
    // The kernel stores elements with the size of its own structures, and returns that size.
    let stride = |at: usize, room: usize| (full.u32(at) as usize).clamp(1, room);
    let (tcp_stride, info_stride) = (stride(4, TCP_INFO), stride(12, SUBFLOW_INFO));
    let elements = infos.chunks(info_stride).zip(tcp_infos.chunks(tcp_stride));
    let paths = elements.take(count).filter_map(|(info, tcp)| {
        let info = Fields(info);
        let (local, remote) = (info.address(8)?, info.address(136)?);
        Some(of_tcp_info(&Fields(tcp), info.u32(0), local, remote, true))
    });
    Ok(paths.collect())
}

fn of_tcp_info(info: &Fields<'_>, id: u32, local: SocketAddr, remote: SocketAddr, multipath: bool) -> PathReading {
    /// From `enum tcp_state`.
    const ESTABLISHED: u8 = 1;
    const SYN_SENT: u8 = 2;
    const SYN_RECEIVED: u8 = 3;
    let milliseconds =
        |at: usize| Some(info.u32(at)).filter(|&rtt| rtt != 0 && rtt != u32::MAX).map(|rtt| f64::from(rtt) / 1e3);
    // The kernel numbers subflows from 1.
    let subflow = if multipath { id.saturating_sub(1) } else { 0 };
    PathReading {
        subflow,
        name: interface_of(local.ip()).unwrap_or_else(|| local.ip().to_string()),
        local,
        remote,
        // The kernel counts the SYN.
        acknowledged: info.u64(120).saturating_sub(1),
        received: info.u64(128),
        retransmitted: info.u64(208),
        rtt_ms: milliseconds(68),
        min_rtt_ms: milliseconds(148),
        cwnd: u64::from(info.u32(80)) * u64::from(info.u32(16)),
        state: match info.u8(0) {
            ESTABLISHED => "established",
            SYN_SENT | SYN_RECEIVED => "opening",
            _ => "closing",
        },
    }
}

/// The name of the interface that has an address.
fn interface_of(address: IpAddr) -> Option<String> {
    let is_it = |interface: &nix::ifaddrs::InterfaceAddress| {
        let known = interface.address?;
        let v4 = known.as_sockaddr_in().map(|known| IpAddr::V4(known.ip()));
        let v6 = known.as_sockaddr_in6().map(|known| IpAddr::V6(known.ip()));
        (v4.or(v6) == Some(address)).then(|| interface.interface_name.clone())
    };
    nix::ifaddrs::getifaddrs().ok()?.find_map(|interface| is_it(&interface))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_what_the_kernel_returned_are_zero() {
        let fields = Fields(&[1, 2, 3, 4]);
        assert_eq!(fields.u32(0).to_ne_bytes(), [1, 2, 3, 4]);
        assert_eq!((fields.u32(1), fields.u64(usize::MAX - 8)), (0, 0));
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let mut v4 = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        v4.extend([0x1f, 0x90, 10, 0, 0, 1]);
        assert_eq!(Fields(&v4).address(0), "10.0.0.1:8080".parse().ok());
        let mut v6 = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        v6.extend([0, 7, 0, 0, 0, 0]);
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(Fields(&v6).address(0), "[::1]:7".parse().ok());
        assert_eq!(Fields(&[9, 9, 0, 0]).address(0), None);
    }
}
