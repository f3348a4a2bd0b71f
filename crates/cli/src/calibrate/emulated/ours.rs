//! Anabranch at both ends, in real time: two stacks in this process, connected to the relay by pipes.

use super::trial::{Done, PORT, Trial, client_addresses, failed, server_address, start_links};
use crate::calibrate::meter::Meter;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::simulation;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::AddressId;
use anabranch_stack::{Device, Stack, StackConfig, Stream};
use bytes::Bytes;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bytes per write of the application.
const WRITE: usize = 256 * 1024;
/// Time for a connection to detect the end of its run.
const GRACE: Duration = Duration::from_secs(5);

pub fn run(trial: &Trial<'_>, scenario: &Scenario) -> Result<Done, String> {
    let contender = trial.case.contender(trial.stack);
    let config = simulation::connection(scenario, &contender);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed("make a runtime"))?.block_on(async {
        let (client, clients) = host(&contender.policies, &client_addresses(trial.case.paths.len()))?;
        let (server, mut servers) = host(&contender.policies, &[server_address()])?;
        let end = servers.pop().ok_or("a host without a device")?;
        let relay = start_links(scenario, trial.seed, clients, end)?;
        let measured = transfer(&client, &server, config, trial).await;
        client.shutdown();
        server.shutdown();
        let report = relay.stop().map_err(failed("stop the links"))?;
        Ok(Done { reading: measured?.reading(), report, discarded: 0 })
    })
}

/// A stack with a device for each of these addresses, and the other ends of their pipes.
pub fn host(policies: &Combination, addresses: &[IpAddr]) -> Result<(Stack, Vec<OwnedFd>), String> {
    let path_manager = policies.build_path_manager().map_err(|error| error.to_string())?;
    let (stack, driver) = Stack::new(StackConfig::new(path_manager)).map_err(failed("start a stack"))?;
    let mut ends = Vec::new();
    for (place, address) in addresses.iter().enumerate() {
        let (device, end) = Device::pipe().map_err(failed("make a pipe"))?;
        let device = stack.attach(device);
        let id = AddressId(place as u8 + 1);
        stack.address_up(device, id, *address).map_err(|error| error.to_string())?;
        ends.push(end);
    }
    tokio::spawn(driver);
    Ok((stack, ends))
}

/// The client sends as much as it can; the server counts.
async fn transfer(
    client: &Stack,
    server: &Stack,
    config: ConnectionConfig,
    trial: &Trial<'_>,
) -> Result<Meter, String> {
    let listener = server.listen(PORT, config.clone()).map_err(|error| error.to_string())?;
    let mut meter = Meter::new(Instant::now(), trial.span);
    let give_up = tokio::time::Instant::from_std(meter.end() + GRACE);
    let sender = client.clone();
    let source = client_addresses(1).pop();
    let writer = tokio::spawn(async move {
        let stream = sender.connect(source, SocketAddr::new(server_address(), PORT), config).await;
        write_for_ever(&stream.map_err(|error| error.to_string())?).await
    });
    let reading = async {
        let stream = listener.accept().await.ok_or("the stack was shut down")?;
        let over = tokio::time::Instant::from_std(meter.end());
        // Bytes after the measured span are not counted.
        let _ = tokio::time::timeout_at(over, read(&stream, &mut meter)).await;
        stream.abort();
        Ok(meter)
    };
    let outcome = tokio::time::timeout_at(give_up, reading).await;
    writer.abort();
    outcome.unwrap_or_else(|_| Err("no connection came about".to_owned()))
}

/// Sends as much as it can.
pub async fn write_for_ever(stream: &Stream) -> Result<(), String> {
    let block = Bytes::from(vec![0; WRITE]);
    let mut rest = block.clone();
    loop {
        let taken = poll_fn(|context| stream.poll_write_bytes(context, rest.clone())).await;
        rest = rest.slice(taken.map_err(failed("write"))?..);
        if rest.is_empty() {
            rest = block.clone();
        }
    }
}

async fn read(stream: &Stream, meter: &mut Meter) {
    while let Ok(bytes) = poll_fn(|context| stream.poll_read_bytes(context, usize::MAX)).await {
        if bytes.is_empty() {
            return;
        }
        meter.take(bytes.len(), Instant::now());
    }
}
