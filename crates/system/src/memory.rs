//! The memory of the host.

use nix::libc;

/// Physical memory in bytes; 256 MiB if the system does not tell.
pub fn memory() -> u64 {
    // SAFETY: the call has no precondition, and touches no memory of ours.
    #[allow(unsafe_code)]
    let [pages, size] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|what| unsafe { libc::sysconf(what) });
    match (u64::try_from(pages), u64::try_from(size)) {
        (Ok(pages @ 1..), Ok(size @ 1..)) => pages.saturating_mul(size),
        _ => 256 << 20,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_memory_is_what_the_kernel_tells_in_its_table_too() {
        let table = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        assert_eq!(super::memory(), kib * 1024);
    }
}
