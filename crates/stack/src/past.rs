//! What detached devices carried, by name: the totals of an uplink do not fall when its device is opened anew.

use super::device::DeviceCounters;
use std::collections::BTreeMap;

/// Most names; what further ones carried is forgotten.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Past {
    /// Names of the devices that are there.
    names: BTreeMap<usize, String>,
    totals: BTreeMap<String, DeviceCounters>,
}

impl Past {
    /// The device has this name from now on.
    pub(super) fn name(&mut self, device: usize, name: &str) {
        self.names.insert(device, name.to_owned());
    }

    /// The device is gone.
    pub(super) fn end(&mut self, device: usize, counters: DeviceCounters) {
        if let Some(name) = self.names.remove(&device)
            && (self.totals.len() < MOST || self.totals.contains_key(&name))
        {
            *self.totals.entry(name).or_default() += counters;
        }
    }

    /// What the device and those of its name before have carried.
    pub(super) fn with(&self, device: usize, mut counters: DeviceCounters) -> DeviceCounters {
        let before = self.names.get(&device).and_then(|name| self.totals.get(name));
        before.into_iter().for_each(|before| counters += *before);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_goes_on_from_those_of_its_name_and_there_are_only_so_many_names() {
        let sent = |bytes_sent| DeviceCounters { bytes_sent, packets_received: 1, ..DeviceCounters::default() };
        let mut past = Past::default();
        past.name(0, "wlan0");
        past.name(1, "wwan0");
        assert_eq!(past.with(0, sent(5)), sent(5));
        past.end(0, sent(5));
        past.name(2, "wlan0");
        assert_eq!(past.with(2, sent(2)), DeviceCounters { bytes_sent: 7, packets_received: 2, ..sent(0) });
        assert_eq!((past.with(1, sent(2)), past.with(3, sent(2))), (sent(2), sent(2)));
        for device in 4..200 {
            past.name(device, &device.to_string());
            past.end(device, sent(1));
        }
        assert_eq!((past.totals.len(), past.names.len()), (MOST, 2));
    }
}
