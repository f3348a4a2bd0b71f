//! Our stack at one end, on one core with the path; the kernel at the other.

use crate::transfer::{
    Meter, OURS, PIECE, PORT, Rate, Setting, THEIRS, address, ip, kernel_listener, kernel_reads, kernel_writes,
};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::AddressId;
use anabranch_stack::device::TunConfig;
use anabranch_stack::{Device, Stack, StackConfig};
use anabranch_system::Namespace;
use std::future::Future;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config() -> ConnectionConfig {
    ConnectionConfig::new(Policies::of(&Combination::default()).expect("the default exists"))
}

/// Runs `transfer` with a stack on core 0, in a namespace where the kernel has the other end of each path.
fn with_stack<F: Future<Output = Rate>>(setting: &Setting, transfer: impl FnOnce(Stack, Meter) -> F + Send) -> Rate {
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    let run = || {
        let meter = Meter::default();
        meter.pin(OURS);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let path_manager = Combination::default().build_path_manager().expect("the default exists");
            let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
            let driver = tokio::spawn(driver);
            ip("mptcp limits set subflow 8 add_addr_accepted 8");
            for path in 0..setting.paths {
                attach(&stack, path, setting);
            }
            let rate = transfer(stack.clone(), meter).await;
            stack.shutdown();
            driver.await.expect("it does not panic").expect("it ends well");
            rate
        })
    };
    namespace.run(run).expect("it can be entered")
}

fn attach(stack: &Stack, path: u8, setting: &Setting) {
    let name = format!("path{path}");
    let tun = TunConfig { offload: setting.offload, ..TunConfig::new(&name, setting.mtu) };
    let device = Device::tun(&tun).expect("a TUN device");
    ip(&format!("addr add {}/24 dev {name}", address(path, 1)));
    ip(&format!("link set {name} up"));
    if path > 0 {
        ip(&format!("mptcp endpoint add {} dev {name} subflow", address(path, 1)));
    }
    let device = stack.attach(device);
    stack.address_up(device, AddressId(path + 1), address(path, 2).into()).expect("the device is there");
}

/// From our stack to the kernel.
pub fn sends(setting: &Setting) -> Rate {
    with_stack(setting, |stack, meter| async move {
        let reader = kernel_reads(kernel_listener(), THEIRS, meter.clone());
        let measurement = measurement(&meter, setting);
        let mut stream = stack.connect(None, (address(0, 1), PORT).into(), config()).await.expect("it accepts");
        let piece = vec![7; PIECE];
        while !meter.is_over() && stream.write(&piece).await.is_ok() {}
        stream.abort();
        let rate = measurement.join().expect("it measured");
        tokio::task::spawn_blocking(|| reader.join()).await.expect("it ran").expect("it read");
        rate
    })
}

/// From the kernel to our stack.
pub fn receives(setting: &Setting) -> Rate {
    with_stack(setting, |stack, meter| async move {
        let listener = stack.listen(PORT, config()).expect("the port is free");
        let writer = kernel_writes(address(0, 2), THEIRS, meter.clone());
        let measurement = measurement(&meter, setting);
        let mut stream = listener.accept().await.expect("it connects");
        let mut piece = vec![0; PIECE];
        while !meter.is_over() {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(length) => meter.count(length),
            }
        }
        stream.abort();
        let rate = measurement.join().expect("it measured");
        tokio::task::spawn_blocking(|| writer.join()).await.expect("it ran").expect("it wrote");
        rate
    })
}

fn measurement(meter: &Meter, setting: &Setting) -> std::thread::JoinHandle<Rate> {
    let (meter, time) = (meter.clone(), setting.time);
    std::thread::spawn(move || meter.measure(time))
}
