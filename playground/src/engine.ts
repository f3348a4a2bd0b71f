/** The interface of the crate `playground`, as wasm-bindgen exports it, and the shapes of its JSON. */

/** A policy of a scenario; `name` is what the command's `--policy` takes. */
export interface PolicyName {
  name: string;
  label: string;
}

export interface ScenarioName {
  name: string;
  title: string;
  description: string;
  policies: PolicyName[];
}

/** Values of a path at the start: bit/s, s, 0 to 1, packets. `null`: the scenario sets none, or it varies. */
export interface PathDescription {
  name: string;
  rate: number | null;
  delay: number | null;
  loss: number | null;
  queue: number | null;
}

export interface Description {
  title: string;
  description: string;
  /** Seconds of simulated time. */
  duration: number;
  policies: PolicyName[];
  paths: PathDescription[];
  /** Of an ad-hoc network: the names of its lanes, which connections have in place of paths. None: there are no connections. */
  mesh: { lanes: string[] } | null;
}

/** One direction of a link. Rates are bit/s, delays s, losses 0 to 1, queues packets. */
export interface Lane {
  /** `null`: a link that all paths share. */
  path: number | null;
  name: string;
  /** Its place on the path, from the client on. */
  link: number;
  direction: "forward" | "backward";
  up: boolean;
  rate: number | null;
  delay: number;
  loss: number;
  queue: number | null;
}

export interface LaneFrame {
  queue_packets: number;
  queue_bytes: number;
  delivered_bytes: number;
  dropped: number;
  /** Those of them that the queue did not take, or dropped. */
  refused: number;
  up: boolean;
}

export interface ConnectionFrame {
  rcvbuf: number;
  out_of_order: number;
  unacked: number;
  snd_wnd: number;
}

/** Sizes are bytes, times ms, rates bit/s. */
export interface SubflowFrame {
  id: number;
  path: number | null;
  state: string;
  cwnd: number;
  srtt: number | null;
  in_flight: number;
  mss: number;
  stale: boolean;
  backup: boolean;
  suspended: boolean;
  phase: string | null;
  loss_rate: number | null;
  delivery_rate: number | null;
}

export interface Frame {
  time: number;
  lanes: LaneFrame[];
  /** Read so far, of all connections of the transfer. */
  goodput_bytes: number;
  /** The same of other hosts' TCP. */
  other_bytes: number;
  connection: ConnectionFrame | null;
  subflows: SubflowFrame[];
}

/** `null`: no router has said yet. */
export type Role = "mdr" | "bmdr" | "other" | null;

export interface MeshNode {
  name: string;
  /** In metres. */
  x: number;
  y: number;
  role: Role;
  /** Whether it was put there and stays. */
  held: boolean;
  /** Packets sent by radio so far, those of its router included. */
  sent: number;
  waiting: number;
}

/** Two nodes that hear each other, or are neighbours for their routers. */
export interface MeshLink {
  ends: [number, number];
  in_range: boolean;
  /** In dBm. */
  signal: number | null;
  /** The lower of the states at both; `null`: one of them does not know the other. */
  state: string | null;
  cost: number | null;
  /** That it is up a while later; `null`: nobody forecasts it. */
  probability: number | null;
  forecast: "good" | "fading" | "bad" | null;
}

export interface Way {
  name: string;
  /** Index of the lane; `null`: the route of all packets. */
  path: number | null;
  /** From, to, share. */
  hops: [number, number, number][];
  arrives: boolean;
}

export interface Mesh {
  time: number;
  /** Least x and y, most x and y, in metres. */
  area: [number, number, number, number];
  range: number;
  /** Signals fade: who is out of range is heard sometimes. */
  fades: boolean;
  nodes: MeshNode[];
  links: MeshLink[];
  ends: [number, number];
  ways: Way[];
  chosen: { node: number; routes: { to: number; hops: [number, number][] }[] } | null;
  carried: { probes: number; delivered: number; no_route: number; not_acknowledged: number; control_bytes: number };
}

/** What the scheduler saw of a subflow: bytes and ms. */
export interface SubflowView {
  id: number;
  [seen: string]: unknown;
}

export interface Decision {
  /** In seconds. */
  time: number;
  /** `null`: there was no data to ask about. */
  data_seq: number | null;
  length: number;
  kind: "new" | "reinjection";
  /** The subflow; `null`: wait. */
  choice: number | null;
  view: SubflowView[];
}

export interface Action {
  /** In seconds. */
  time: number;
  text: string;
}

/** What can be changed on a path while it runs: bit/s, s, 0 to 1, packets, 0 or 1. */
export const CHANGEABLE = ["rate", "delay", "loss", "queue", "up"] as const;
export type Changeable = (typeof CHANGEABLE)[number];

/** The kinds of packets in `packets()`. */
export const KIND = { data: 0, acknowledgement: 1, other: 2, again: 3 } as const;

/** One run: a scenario, a policy and a seed. */
export interface Playground {
  now(): number;
  duration(): number;
  ended(): boolean;
  advance(seconds: number): void;
  step(): void;
  trace_hash(): string;
  lanes(): string;
  packets(): Float32Array;
  frame(): string;
  decisions(): string;
  actions(): string;
  change(path: number, what: string, value: number): void;
  /** These throw for a scenario with paths. */
  mesh(): string;
  choose_node(node?: number): void;
  choose_ends(from: number, to: number): void;
  move_node(node: number, x: number, y: number): void;
  release_node(node: number): void;
  free(): void;
}

export interface Engine {
  scenarios(): string;
  scenario_text(name: string): string;
  describe(toml: string): string;
  Playground: new (toml: string, policy: string, seed: bigint) => Playground;
  /** Only the stand-in of the tests has it. */
  fake?: boolean;
}
