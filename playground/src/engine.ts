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
  goodput_bytes: number;
  connection: ConnectionFrame | null;
  subflows: SubflowFrame[];
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
