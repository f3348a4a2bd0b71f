/** What can be chosen to begin with, what to look at in each, and policies that are added to scenarios which have few. */

import bufferbloat from "./presets/bufferbloat.toml?raw";
import deadPath from "./presets/dead_path.toml?raw";
import harm from "./presets/harm.toml?raw";
import slowSecondPath from "./presets/slow_second_path.toml?raw";

export interface Preset {
  /** The name of a scenario of the lab, or of one of this page's own. */
  name: string;
  /** The text of one of this page's own. */
  toml?: string;
  /** Policies that the text gets in addition. */
  more?: string;
  /** Policies to run side by side. Those that the scenario does not have are left out; none: its first two. */
  policies: string[];
  /** Three sentences. */
  look: [string, string, string];
}

const PLAIN = `
[[policies]]
name = "plain"
label = "plain MPTCP"
`;

const LINUX = `
[[policies]]
name = "linux"
label = "MPTCP as Linux schedules it"
scheduler = "linux"
congestion = "cubic"
`;

const ANABRANCH = `
[[policies]]
name = "anabranch"
label = "Anabranch"
path_manager = "anabranch"
scheduler = "anabranch"
congestion = "anabranch"
`;

const BOUNDED = `
[[policies]]
name = "bounded"
label = "Anabranch with bounded_cubic"
path_manager = "anabranch"
scheduler = "anabranch"
congestion = "bounded_cubic"
`;

/** A policy that is a congestion control and nothing else. */
const controlled = (name: string): string => `\n[[policies]]\nname = "${name}"\ncongestion = "${name}"\n`;

export const PRESETS: Preset[] = [
  {
    name: "two_paths",
    more: LINUX + ANABRANCH,
    policies: ["plain", "tcp"],
    look: [
      "Both carry about what their paths can: plain MPTCP the sum, TCP the fast path alone.",
      "Watch the queues: they fill until a packet is dropped, and each packet behind them waits.",
      "Then make the slow path slower and see how long data waits out of order for what the slow path still holds.",
    ],
  },
  {
    name: "slow_second_path",
    toml: slowSecondPath,
    policies: ["tcp", "linux", "anabranch"],
    look: [
      "A second path can make things worse: as Linux schedules it, MPTCP carries half of what TCP carries on the fast path alone.",
      "The receive buffer is full of data that waits for what the slow path holds, so the fast path stands still; see it in the curve of data out of order.",
      "Anabranch's scheduler asks whether the slow path is worth the receive window, and waits; select it and read why.",
    ],
  },
  {
    name: "dead_path",
    toml: deadPath,
    policies: ["plain", "linux", "anabranch"],
    look: [
      "At 10 s path A dies behind its first link, and the host's own interface says nothing of it.",
      "What was sent there is missing at the receiver until it is reinjected on path B: see how long goodput stands at zero.",
      "At 20 s the path is back; see when each policy uses it again.",
    ],
  },
  {
    name: "bufferbloat",
    toml: bufferbloat,
    policies: ["cubic", "anabranch"],
    look: [
      "CUBIC fills a queue until it overflows, and here that takes seconds: watch the bars and the RTT.",
      "Anabranch's congestion control models the path instead, and leaves the queues nearly empty at the same goodput.",
      "Shorten a queue to 50 packets while it runs and see what CUBIC loses.",
    ],
  },
  {
    name: "wifi-lte",
    more: ANABRANCH,
    policies: ["plain", "linux", "anabranch"],
    look: [
      "Wi-Fi fails from 20 to 23 s; LTE has half a second of queue.",
      "Watch what the outage costs: how long goodput stays down, and what is reinjected on LTE.",
      "Before and after it, see whether LTE's queue holds up what Wi-Fi carries.",
    ],
  },
  {
    name: "stream_two_paths",
    more: ANABRANCH,
    policies: ["plain", "tcp", "anabranch"],
    look: [
      "Both paths lose packets at random: 2 % on the near one, 7 % on the far one.",
      "LIA and CUBIC take each loss for congestion, so their windows stay small, although the queues are empty.",
      "Select Anabranch: its window follows the bandwidth of the path, and random losses do not count.",
    ],
  },
  {
    name: "beside",
    more: PLAIN + BOUNDED + ANABRANCH,
    policies: ["plain", "bounded", "anabranch"],
    look: [
      "Each path carries a CUBIC connection of somebody else, too.",
      "Compare what each policy carries in the end with its share, half of each path: 35 Mbit/s.",
      "Anabranch's own congestion control takes more than its share beside them; bounded_cubic is meant for links that others use.",
    ],
  },
  {
    name: "harm",
    toml: harm,
    policies: ["cubic", "bounded", "anabranch"],
    look: [
      "Fifty connections of one policy share a link of 50 Mbit/s with one CUBIC connection of somebody else.",
      "A fair share of 51 is 0.98 Mbit/s: the curve of others shows that fifty with CUBIC and fifty with bounded_cubic leave it about that.",
      "Anabranch's own congestion control leaves it about a tenth of that: it is meant for links that are one's own.",
    ],
  },
  {
    name: "bottleneck",
    more: ["cubic", "bbr", "anabranch"].map(controlled).join(""),
    policies: ["cubic", "bbr", "anabranch"],
    look: [
      "One path and nobody else: three congestion controls find its bandwidth.",
      "CUBIC fills the queue until it overflows; the other two keep it short.",
      "Halve the rate while it runs and see how soon each has noticed.",
    ],
  },
  {
    name: "lm3_motivation",
    policies: ["case_1@papers_simulator", "case_2@papers_simulator", "case_2_lm3@papers_simulator"],
    look: [
      "LM³'s first figures: at 30 s path B dies for good.",
      "On the papers' simulator nothing is reinjected, so what B held blocks the whole connection while path A would be free.",
      "LM³ suspends the path with the longer round trip and only probes it: with seed 1, B is out of use long before it dies.",
    ],
  },
  {
    name: "lm3_evaluation",
    policies: ["mptcp@papers_simulator", "pu2m2@papers_simulator", "lm3@papers_simulator"],
    look: [
      "LM³'s evaluation: three lossy paths with traffic of others; path C is gone from 10 to 30 s and from 50 s on.",
      "64 kB of receive buffer fill at once when C holds a segment: watch data out of order.",
      "See when each path manager suspends and resumes a path, and for which reason.",
    ],
  },
  {
    name: "maps",
    policies: ["current@papers_simulator", "maps@papers_simulator"],
    look: [
      "MAPS' walk: Wi-Fi's rate falls while the walker leaves, is gone at 25 s, and comes back.",
      "The current selection uses one path at a time; MAPS uses both.",
      "Read the decisions around 20 s: what the scheduler saw when it left.",
    ],
  },
  {
    name: "maps_stream",
    policies: ["current@papers_simulator", "maps@papers_simulator"],
    look: [
      "The same walk with a source that one path can carry, so that the scheduler really chooses.",
      "See which lane carries the data, and when that changes.",
      "Read the decisions around that time.",
    ],
  },
  {
    name: "manet_homogeneous",
    policies: ["MMPxM", "anabranch"],
    look: [
      "The MANET paper's mesh: M1 sends to M8 over three hops, with four radios at each node; routers find their neighbours and elect MDRs in the first 20 s.",
      "Each lane has its colour: e0 may use all next hops, e1 to e3 keep apart. Drag M3 out of range while it carries a lane: routers need up to three seconds to notice, and packets are lost until then.",
      "Choose a node to see its links, what the forecasts say of them, and its next hops; let go of it and see when its lanes are back.",
    ],
  },
  {
    name: "manet_moving",
    policies: ["min_cost", "full"],
    look: [
      "RFC 5614's own benchmark: 20 nodes walk about, and every pair of them may want to talk.",
      "Squares (MDR) and diamonds (backup MDR) are the backbone that floods for all; see it re-elected as nodes pass each other.",
      "A dotted link with a cross is gone and nobody has noticed: what is sent over it is lost. Drag a node away, and choose two nodes to see the ways between them.",
    ],
  },
  {
    name: "manet_cuts",
    policies: ["none", "trend"],
    look: [
      "Relays leave again and again: from 90 s on, the one that carries most walks away, and comes back a minute later.",
      "Without forecasts the others notice when three seconds of Hellos are missing; a forecaster sees the signal fall, its link turns dashed, and traffic leaves before it breaks.",
      "Compare the probes that are lost. Or drag a relay yourself, slowly and fast: nobody foresees a jump.",
    ],
  },
  {
    name: "mesh_quality",
    policies: ["hops", "etx"],
    look: [
      "Forty nodes that stand still, and links that lose between nothing and nearly everything: far ones lose most.",
      "Hop count takes the fewest and longest hops; expected transmissions take more and shorter ones. Choose two nodes far apart and compare the routes.",
      "Probes start at 60 s: see what each metric delivers.",
    ],
  },
  {
    name: "recpr_bulk",
    policies: ["mptcp@papers_simulator", "recpr@papers_simulator"],
    look: [
      "recPR's three paths: A and B are alike; C has four times their delay, five times their loss, and hardly any room.",
      "MPTCP uses C as well, and data from A and B waits for it in the receive buffer.",
      "recPR compares one-way delays and suspends C: see the path manager's actions.",
    ],
  },
];
