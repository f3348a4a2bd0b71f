//! One host of ours and one of the kernel's in a namespace, with any number of paths between them: path `n` is a TUN
//! device on which the kernel has 10.0.n.1 and fd00:n::1, and our stack 10.0.n.2 and fd00:n::2.

use crate::kernel::ip;
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::PathManager;
use anabranch_stack::DeviceId;
use anabranch_stack::device::TunConfig;
use anabranch_stack::{Device, Stack, StackConfig};
use anabranch_system::Namespace;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The kernel's address on a path.
pub fn theirs(path: u8, v6: bool) -> IpAddr {
    address(path, v6, 1)
}

/// Our address on a path.
pub fn ours(path: u8, v6: bool) -> IpAddr {
    address(path, v6, 2)
}

fn address(path: u8, v6: bool, host: u8) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd00, u16::from(path), 0, 0, 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(10, 0, path, host).into()
    }
}

/// Default settings with a combination's policies.
pub fn config(combination: &Combination) -> ConnectionConfig {
    ConnectionConfig::new(Policies::of(combination).expect("a combination of ours"))
}

/// Runs `test` in a fresh namespace, within a runtime, with a stack on `paths` paths of one address family.
pub fn with_paths<F: Future<Output = ()>>(paths: u8, v6: bool, test: impl FnOnce(Stack) -> F + Send) {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    with_stack(path_manager, |stack| async move {
        // What newer kernels begin with; 5.15 accepts no join.
        ip("mptcp limits set subflows 2 add_addr_accepted 0");
        for path in 0..paths {
            attach(&stack, path, v6);
        }
        test(stack).await;
    });
}

/// Runs `test` in a fresh namespace, within a runtime, with a stack that has no path yet; it ends within a minute.
pub fn with_stack<F: Future<Output = ()>>(path_manager: Box<dyn PathManager>, test: impl FnOnce(Stack) -> F + Send) {
    with_stack_for(Duration::from_secs(60), path_manager, test);
}

/// The same for a test that may take longer.
pub fn with_stack_for<F: Future<Output = ()>>(
    deadline: Duration,
    path_manager: Box<dyn PathManager>,
    test: impl FnOnce(Stack) -> F + Send,
) {
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    namespace.run(|| inside(deadline, path_manager, test)).expect("it can be entered");
}

fn inside<F: Future<Output = ()>>(
    deadline: Duration,
    path_manager: Box<dyn PathManager>,
    test: impl FnOnce(Stack) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        ip("link set lo up");
        let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
        let driver = tokio::spawn(driver);
        tokio::time::timeout(deadline, test(stack.clone())).await.expect("the test ends in time");
        stack.shutdown();
        driver.await.expect("the driver does not panic").expect("the driver ends well");
    });
}

/// The device of a path.
pub fn name(path: u8) -> String {
    format!("path{path}")
}

/// A path more.
pub fn attach(stack: &Stack, path: u8, v6: bool) -> DeviceId {
    let device = Device::tun(&TunConfig::new(name(path), 1500)).expect("a TUN device");
    configure(path, v6);
    let device = stack.attach(device);
    stack.address_up(device, AddressId(path + 1), ours(path, v6)).expect("the device is there");
    stack.name_address(AddressId(path + 1), &name(path));
    device
}

/// Sets the kernel's address on the device of a path.
pub fn configure(path: u8, v6: bool) {
    let name = name(path);
    if v6 {
        ip(&format!("addr add {}/64 dev {name} nodad", theirs(path, true)));
    } else {
        ip(&format!("addr add {}/24 dev {name}", theirs(path, false)));
    }
    ip(&format!("link set {name} up"));
}
