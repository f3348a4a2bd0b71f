//! Metrics: time series and one number per run, with units.

/// A time series of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Series {
    /// Rate of in-order delivery to the application.
    Throughput,
    /// Mean of [`Self::Throughput`] since the start.
    CumulativeThroughput,
    /// Send rate per path.
    PathThroughput,
    /// Share of the bytes sent on a path.
    PathShare,
    /// Highest data sequence number sent.
    SentDsn,
    /// Highest data sequence number received.
    ReceivedDsn,
    /// Data sequence number up to which data was delivered in order.
    DeliveredDsn,
    /// Largest difference between the data sequence numbers of two consecutively received segments.
    OutOfOrderDsn,
    /// Time from first transmission to in-order delivery: mean over the data delivered in the interval.
    Delay,
    /// Mean absolute difference of the delays of consecutively delivered data.
    Jitter,
    /// Congestion window of a path.
    Cwnd,
    /// Smoothed round-trip time of a path.
    Rtt,
    /// Bytes in flight on a path.
    InFlight,
    /// Occupancy of the receive buffer.
    ReceiveBuffer,
    /// Rate of datagram payload delivered to programs, sum of both directions.
    DatagramThroughput,
    /// Time from sending to delivery of datagrams: mean over those delivered in the interval.
    DatagramDelay,
    /// Share of the datagrams sent in the interval that were never delivered.
    DatagramLoss,
    /// Send rate of the datagram session on a path, sum of both directions, with headers and probes.
    DatagramPathThroughput,
}

impl Series {
    pub const ALL: [Self; 18] = [
        Self::Throughput,
        Self::CumulativeThroughput,
        Self::PathThroughput,
        Self::PathShare,
        Self::SentDsn,
        Self::ReceivedDsn,
        Self::DeliveredDsn,
        Self::OutOfOrderDsn,
        Self::Delay,
        Self::Jitter,
        Self::Cwnd,
        Self::Rtt,
        Self::InFlight,
        Self::ReceiveBuffer,
        Self::DatagramThroughput,
        Self::DatagramDelay,
        Self::DatagramLoss,
        Self::DatagramPathThroughput,
    ];

    /// Name in scenario files and in the Parquet column `metric`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::CumulativeThroughput => "cumulative_throughput",
            Self::PathThroughput => "path_throughput",
            Self::PathShare => "path_share",
            Self::SentDsn => "sent_dsn",
            Self::ReceivedDsn => "received_dsn",
            Self::DeliveredDsn => "delivered_dsn",
            Self::OutOfOrderDsn => "out_of_order_dsn",
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Cwnd => "cwnd",
            Self::Rtt => "rtt",
            Self::InFlight => "in_flight",
            Self::ReceiveBuffer => "receive_buffer",
            Self::DatagramThroughput => "datagram_throughput",
            Self::DatagramDelay => "datagram_delay",
            Self::DatagramLoss => "datagram_loss",
            Self::DatagramPathThroughput => "datagram_path_throughput",
        }
    }

    /// Label of an axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::CumulativeThroughput => "Mean throughput since start",
            Self::PathThroughput => "Sent on the path",
            Self::PathShare => "Share of bytes sent",
            Self::SentDsn => "DSN sent",
            Self::ReceivedDsn => "DSN received",
            Self::DeliveredDsn => "DSN delivered",
            Self::OutOfOrderDsn => "Out-of-order DSN",
            Self::Delay => "End-to-end delay",
            Self::Jitter => "Jitter",
            Self::Cwnd => "Congestion window",
            Self::Rtt => "Smoothed RTT",
            Self::InFlight => "In flight",
            Self::ReceiveBuffer => "Receive buffer used",
            Self::DatagramThroughput => "Datagrams delivered",
            Self::DatagramDelay => "Datagram delay",
            Self::DatagramLoss => "Datagrams lost",
            Self::DatagramPathThroughput => "Datagram session, sent on the path",
        }
    }

    pub const fn unit(self) -> &'static str {
        match self {
            Self::Throughput
            | Self::CumulativeThroughput
            | Self::PathThroughput
            | Self::DatagramThroughput
            | Self::DatagramPathThroughput => "Mbit/s",
            Self::PathShare | Self::DatagramLoss => "%",
            Self::SentDsn | Self::ReceivedDsn | Self::DeliveredDsn => "MB",
            Self::OutOfOrderDsn | Self::InFlight | Self::ReceiveBuffer => "kB",
            Self::Delay | Self::Jitter | Self::Rtt | Self::DatagramDelay => "ms",
            Self::Cwnd => "segments",
        }
    }

    /// The maximum possible value, if charts should show it.
    pub const fn most(self) -> Option<f64> {
        match self {
            Self::PathShare | Self::DatagramLoss => Some(100.0),
            _ => None,
        }
    }

    /// Whether there is one series per path instead of per connection.
    pub const fn per_path(self) -> bool {
        matches!(
            self,
            Self::PathThroughput
                | Self::PathShare
                | Self::Cwnd
                | Self::Rtt
                | Self::InFlight
                | Self::DatagramPathThroughput
        )
    }
}

/// A number per run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Metric {
    /// Name in scenario files and in `summary.json`.
    pub name: &'static str,
    /// Label in tables.
    pub label: &'static str,
    pub unit: &'static str,
}

/// Built-in metrics: means exclude the warm-up, totals cover the whole run.
pub const METRICS: &[Metric] = &[
    Metric { name: "throughput", label: "mean throughput", unit: "Mbit/s" },
    Metric { name: "available_capacity", label: "available capacity", unit: "Mbit/s" },
    Metric { name: "capacity_share", label: "share of the available capacity", unit: "%" },
    Metric { name: "background_loss", label: "cross traffic lost because of the transfer", unit: "%" },
    Metric { name: "jain", label: "Jain's index among the connections", unit: "1" },
    Metric { name: "least_share", label: "lowest throughput of a connection over the mean", unit: "1" },
    Metric { name: "own_share", label: "throughput over fair share, beside others", unit: "1" },
    Metric { name: "others_share", label: "throughput of others over their fair share", unit: "1" },
    Metric { name: "others_throughput", label: "throughput of others", unit: "Mbit/s" },
    Metric { name: "others_message_delay", label: "median message delay of others", unit: "ms" },
    Metric { name: "others_message_delay_p99", label: "99th percentile of the message delay of others", unit: "ms" },
    Metric { name: "loss_caused", label: "loss caused: drops by queues", unit: "%" },
    Metric { name: "marked", label: "packets marked by queues", unit: "%" },
    Metric { name: "delay", label: "mean delay", unit: "ms" },
    Metric { name: "delay_p95", label: "95th percentile of delay", unit: "ms" },
    Metric { name: "jitter", label: "mean jitter", unit: "ms" },
    Metric { name: "peak_out_of_order_dsn", label: "peak out-of-order DSN", unit: "B" },
    Metric { name: "mean_out_of_order_dsn", label: "mean out-of-order DSN", unit: "B" },
    Metric { name: "completion", label: "time to complete", unit: "s" },
    Metric { name: "response_time", label: "mean response time", unit: "ms" },
    Metric { name: "messages", label: "messages", unit: "1" },
    Metric { name: "message_delay", label: "mean message delay", unit: "ms" },
    Metric { name: "message_delay_p99", label: "99th percentile of message delay", unit: "ms" },
    Metric { name: "on_time", label: "frames on time", unit: "%" },
    Metric { name: "frame_loss", label: "frames lost or late", unit: "%" },
    Metric { name: "frame_loss_i", label: "I frames lost or late", unit: "%" },
    Metric { name: "frame_loss_p", label: "P frames lost or late", unit: "%" },
    Metric { name: "frame_loss_b", label: "B frames lost or late", unit: "%" },
    Metric { name: "frames_late", label: "frames late", unit: "%" },
    Metric { name: "frames_given_up", label: "frames abandoned", unit: "%" },
    Metric { name: "decodable", label: "frames decodable", unit: "%" },
    Metric { name: "stalls", label: "stalls", unit: "1" },
    Metric { name: "stalled", label: "time stalled", unit: "s" },
    Metric { name: "longest_stall", label: "longest stall", unit: "s" },
    Metric { name: "frame_delay_p50", label: "median frame delay", unit: "ms" },
    Metric { name: "frame_delay_p95", label: "95th percentile of frame delay", unit: "ms" },
    Metric { name: "frame_delay_p99", label: "99th percentile of frame delay", unit: "ms" },
    Metric { name: "demotions", label: "demotions by the daemon", unit: "1" },
    Metric { name: "demoted", label: "time with a path demoted by the daemon", unit: "%" },
    Metric { name: "blocked_seen", label: "samples of a blocked connection, estimated so", unit: "1" },
    Metric { name: "blocked_missed", label: "samples of a blocked connection, estimated otherwise", unit: "1" },
    Metric { name: "blocked_imagined", label: "samples of a connection not blocked, estimated to be", unit: "1" },
    Metric { name: "unblocked_seen", label: "samples of a connection not blocked, estimated so", unit: "1" },
    Metric { name: "psnr", label: "Y-PSNR, mean over frames", unit: "dB" },
    Metric { name: "psnr_of_mean", label: "Y-PSNR of the mean squared error", unit: "dB" },
    Metric { name: "ssim", label: "Y-SSIM, Gaussian windows", unit: "1" },
    Metric { name: "ssim_blocks", label: "Y-SSIM, 8x8 windows", unit: "1" },
    Metric { name: "vqm", label: "DCT-based VQM", unit: "1" },
    Metric { name: "mos", label: "mean opinion score from PSNR", unit: "1" },
    Metric { name: "psnr_coded", label: "Y-PSNR against the coded video", unit: "dB" },
    Metric { name: "psnr_uncompressed", label: "Y-PSNR against the uncompressed original", unit: "dB" },
    Metric { name: "ssim_uncompressed", label: "Y-SSIM against the uncompressed original", unit: "1" },
    Metric { name: "vqm_uncompressed", label: "DCT-based VQM against the uncompressed original", unit: "1" },
    Metric { name: "given_up_expired", label: "abandoned, expired", unit: "kB" },
    Metric { name: "given_up_blocked", label: "abandoned, buffer blocked", unit: "kB" },
    Metric { name: "given_up_overtaken", label: "abandoned, overtaken", unit: "kB" },
    Metric { name: "given_up_withdrawn", label: "withdrawn by the sender", unit: "kB" },
    Metric { name: "blocked_episodes", label: "blocked episodes", unit: "1" },
    Metric { name: "timeouts", label: "retransmission timeouts", unit: "1" },
    Metric { name: "retransmitted", label: "retransmitted", unit: "kB" },
    Metric { name: "reinjected", label: "reinjected", unit: "kB" },
    Metric { name: "duplicated", label: "duplicates sent deliberately", unit: "kB" },
    Metric { name: "duplicate_received", label: "duplicates received", unit: "kB" },
    Metric { name: "volume", label: "data delivered", unit: "MB" },
    Metric { name: "segments_sent", label: "segments sent, without retransmissions", unit: "1" },
    Metric { name: "segments_received", label: "segments received, without duplicates", unit: "1" },
    Metric { name: "segments_sent_again", label: "segments retransmitted", unit: "1" },
    Metric { name: "segments_received_again", label: "duplicate segments received", unit: "1" },
    Metric { name: "segment_delay_e0", label: "segment delay on e0", unit: "ms" },
    Metric { name: "segment_delay_e1", label: "segment delay on e1", unit: "ms" },
    Metric { name: "segment_delay_e2", label: "segment delay on e2", unit: "ms" },
    Metric { name: "segment_delay_e3", label: "segment delay on e3", unit: "ms" },
    Metric { name: "segment_delay_p95_e0", label: "95th percentile of segment delay on e0", unit: "ms" },
    Metric { name: "segment_delay_p95_e1", label: "95th percentile of segment delay on e1", unit: "ms" },
    Metric { name: "segment_delay_p95_e2", label: "95th percentile of segment delay on e2", unit: "ms" },
    Metric { name: "segment_delay_p95_e3", label: "95th percentile of segment delay on e3", unit: "ms" },
    Metric { name: "captured_m1", label: "packets captured at M1", unit: "packets" },
    Metric { name: "captured_m2", label: "packets captured at M2", unit: "packets" },
    Metric { name: "captured_m3", label: "packets captured at M3", unit: "packets" },
    Metric { name: "captured_m4", label: "packets captured at M4", unit: "packets" },
    Metric { name: "captured_m5", label: "packets captured at M5", unit: "packets" },
    Metric { name: "captured_m6", label: "packets captured at M6", unit: "packets" },
    Metric { name: "captured_m7", label: "packets captured at M7", unit: "packets" },
    Metric { name: "captured_m8", label: "packets captured at M8", unit: "packets" },
    Metric { name: "m3_has_most", label: "runs where M3 captured more than M2 and M4", unit: "%" },
    Metric { name: "m6_has_most", label: "runs where M6 captured more than M5 and M7", unit: "%" },
    Metric { name: "sent_m1", label: "packets that M1 sent", unit: "packets" },
    Metric { name: "sent_m1_e0", label: "packets that M1 sent on e0", unit: "packets" },
    Metric { name: "sent_m1_e1", label: "packets that M1 sent on e1", unit: "packets" },
    Metric { name: "sent_m1_e2", label: "packets that M1 sent on e2", unit: "packets" },
    Metric { name: "sent_m1_e3", label: "packets that M1 sent on e3", unit: "packets" },
    Metric { name: "received_m8", label: "packets that M8 received", unit: "packets" },
    Metric { name: "received_m8_e0", label: "packets that M8 received on e0", unit: "packets" },
    Metric { name: "received_m8_e1", label: "packets that M8 received on e1", unit: "packets" },
    Metric { name: "received_m8_e2", label: "packets that M8 received on e2", unit: "packets" },
    Metric { name: "received_m8_e3", label: "packets that M8 received on e3", unit: "packets" },
    Metric { name: "arrived_e0", label: "packets received over packets sent, e0", unit: "%" },
    Metric { name: "arrived_e1", label: "packets received over packets sent, e1", unit: "%" },
    Metric { name: "arrived_e2", label: "packets received over packets sent, e2", unit: "%" },
    Metric { name: "arrived_e3", label: "packets received over packets sent, e3", unit: "%" },
    Metric { name: "answer_delay", label: "time from segment to acknowledgement", unit: "ms" },
    Metric { name: "answer_delay_e0", label: "the same on e0", unit: "ms" },
    Metric { name: "answer_delay_e1", label: "the same on e1", unit: "ms" },
    Metric { name: "answer_delay_e2", label: "the same on e2", unit: "ms" },
    Metric { name: "answer_delay_e3", label: "the same on e3", unit: "ms" },
    Metric { name: "answer_deviation", label: "its standard deviation", unit: "ms" },
    Metric { name: "answer_deviation_e0", label: "the same on e0", unit: "ms" },
    Metric { name: "answer_deviation_e1", label: "the same on e1", unit: "ms" },
    Metric { name: "answer_deviation_e2", label: "the same on e2", unit: "ms" },
    Metric { name: "answer_deviation_e3", label: "the same on e3", unit: "ms" },
    Metric { name: "e0_is_fastest", label: "runs where that time is lowest on e0", unit: "%" },
    Metric { name: "e0_is_steadiest", label: "runs where that deviation is lowest on e0", unit: "%" },
    Metric { name: "longest_rtt", label: "mean round-trip time of the slowest interface", unit: "ms" },
    Metric { name: "longest_rto", label: "mean RTO of the interface with the longest", unit: "ms" },
    Metric { name: "buffer_needed", label: "buffer required by the condition on RTT and RTO", unit: "kB" },
    Metric { name: "buffer_met", label: "receive buffer over the required buffer", unit: "%" },
    Metric { name: "disjoint_lanes", label: "node-disjoint pairs of lanes", unit: "%" },
    Metric { name: "disjoint_lanes_paper", label: "the same, lanes as in appendix C", unit: "%" },
    Metric { name: "disjoint_lanes_planned", label: "the same, lanes as planned", unit: "%" },
    Metric { name: "link_disjoint_lanes", label: "link-disjoint pairs of lanes", unit: "%" },
    Metric { name: "energy", label: "radio energy per node", unit: "J" },
    Metric { name: "energy_active", label: "radio energy beyond idle, per node", unit: "J" },
    Metric { name: "energy_per_megabyte", label: "radio energy of all nodes per data delivered", unit: "J/MB" },
    Metric { name: "calculations", label: "route calculations per node", unit: "1/s" },
    Metric { name: "lsas_received", label: "LSAs received per node", unit: "1/s" },
    Metric { name: "router_memory", label: "memory of a router's database", unit: "kB" },
    Metric { name: "control_traffic", label: "routing traffic per node", unit: "B/s" },
    Metric { name: "overhead", label: "routing traffic of all nodes", unit: "kbit/s" },
    Metric { name: "delivery", label: "probes delivered", unit: "%" },
    Metric { name: "undelivered", label: "probes not delivered", unit: "%" },
    Metric { name: "dead_next_hop", label: "probes lost at a dead next hop", unit: "%" },
    Metric { name: "no_route", label: "probes dropped without a route", unit: "%" },
    Metric { name: "download", label: "throughput of a download, mean", unit: "Mbit/s" },
    Metric { name: "download_median", label: "throughput of a download, median", unit: "Mbit/s" },
    Metric { name: "download_none", label: "downloads that receive nothing", unit: "%" },
    Metric { name: "download_hops", label: "hops per packet", unit: "1" },
    Metric { name: "lost_per_cut", label: "probes lost per link failure", unit: "1" },
    Metric { name: "outage", label: "time until an alternative route", unit: "s" },
    Metric { name: "lost_per_return", label: "probes lost per link recovery", unit: "1" },
    Metric { name: "lost_in_quiet", label: "probes lost without a link failure", unit: "%" },
    Metric { name: "hops", label: "hops per probe", unit: "1" },
    Metric { name: "neighbors", label: "nodes in range", unit: "1" },
    Metric { name: "neighbor_changes", label: "neighbour changes per node", unit: "1/s" },
    Metric { name: "route_changes", label: "route changes per node", unit: "1/s" },
    Metric { name: "datagrams", label: "datagrams sent by programs", unit: "1" },
    Metric { name: "datagrams_in_time", label: "datagrams on time", unit: "%" },
    Metric { name: "datagrams_lost", label: "datagrams lost", unit: "%" },
    Metric { name: "datagrams_late", label: "datagrams late", unit: "%" },
    Metric { name: "frames_in_time", label: "frames complete and on time", unit: "%" },
    Metric { name: "datagrams_reordered", label: "datagrams reordered", unit: "%" },
    Metric { name: "datagram_delay", label: "mean datagram delay", unit: "ms" },
    Metric { name: "datagram_delay_p50", label: "median datagram delay", unit: "ms" },
    Metric { name: "datagram_delay_p95", label: "95th percentile of datagram delay", unit: "ms" },
    Metric { name: "datagram_delay_p99", label: "99th percentile of datagram delay", unit: "ms" },
    Metric { name: "datagram_jitter", label: "datagram jitter (RFC 3550)", unit: "ms" },
    Metric { name: "datagram_gap", label: "longest time without a datagram", unit: "ms" },
    Metric { name: "datagram_cost", label: "octets sent per octet of datagrams", unit: "1" },
    Metric { name: "dropped_queue", label: "dropped by queues", unit: "packets" },
    Metric { name: "dropped_loss", label: "dropped by random loss", unit: "packets" },
    Metric { name: "dropped_down", label: "dropped on links that are down", unit: "packets" },
    Metric { name: "dropped_corrupt", label: "dropped by hosts as corrupt", unit: "packets" },
    Metric { name: "dropped_too_big", label: "dropped as longer than the MTU", unit: "packets" },
];

/// Name of a metric of one program that sends datagrams.
pub fn of_program(metric: &str, program: &str) -> String {
    format!("{metric}:{program}")
}

/// Whether it is a datagram metric, which can be restricted to one program.
pub fn is_of_datagrams(metric: &Metric) -> bool {
    let of_one = |prefix: &str| metric.name.starts_with(prefix);
    (of_one("datagram") || of_one("frames_in_time")) && metric.name != "datagram_cost"
}

/// Finds a built-in metric.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}
