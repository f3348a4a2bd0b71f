/**
 * A stand-in for the engine, for work on the page before the crate is built. It has the interface, not the protocol: packets move at the
 * rate and delay of their lane, and the numbers are invented. The page says so when it runs on it.
 */

import type { Lane, LaneFrame } from "../src/engine.ts";

export const fake = true;

export default function init(): Promise<void> {
  return Promise.resolve();
}

const POLICIES = [
  { name: "plain", label: "plain MPTCP" },
  { name: "tcp", label: "TCP on the best path" },
  { name: "anabranch", label: "Anabranch" },
];

export function scenarios(): string {
  const names = ["two_paths", "wifi-lte", "lm3_motivation"];
  return JSON.stringify(names.map((name) => ({ name, title: `Stand-in for ${name}`, description: "", policies: POLICIES })));
}

export function scenario_text(name: string): string {
  return `name = "${name}"\ntitle = "Stand-in for ${name}"\nduration = "30 s"\npaths = ${name === "two_paths" ? 2 : 3}\n`;
}

interface Scenario {
  title: string;
  duration: number;
  paths: number;
}

function read(toml: string): Scenario {
  const number = (key: string, other: number): number => Number(new RegExp(`^${key} = "?(\\d+)`, "m").exec(toml)?.[1] ?? other);
  const wrong = toml.split("\n").findIndex((line) => /=\s*$/.test(line));
  if (wrong >= 0 || !toml.includes("=")) {
    throw new Error(`scenario.toml:${Math.max(wrong, 0) + 1}:1: a value is missing`);
  }
  // Scenarios of the lab have their paths as tables.
  const tables = toml.split("[[paths]]").length - 1;
  const title = /^title = "(.*)"/m.exec(toml)?.[1] ?? "A scenario";
  return { title, duration: number("duration", 30), paths: tables > 0 ? tables : number("paths", 2) };
}

export function describe(toml: string): string {
  const { title, duration, paths } = read(toml);
  return JSON.stringify({
    title,
    description: "",
    duration,
    policies: POLICIES,
    paths: Array.from({ length: paths }, (_, path) => initial(path)),
    mesh: null,
  });
}

function initial(path: number) {
  return { name: `path ${path + 1}`, rate: 10e6 / (path + 1), delay: 0.02 * (path + 1), loss: 0.01 * path, queue: 100 };
}

const SEGMENT = 1500;

class Direction {
  private readonly lane: Lane;
  private readonly under: { begin: number; kind: number }[] = [];
  private credit = 0;
  private told: LaneFrame = { queue_packets: 0, queue_bytes: 0, delivered_bytes: 0, dropped: 0, refused: 0, up: true };

  constructor(lane: Lane) {
    this.lane = lane;
  }

  advance(from: number, to: number, random: () => number): void {
    const { rate, delay, loss, up } = this.lane;
    const queue = this.lane.queue ?? 0;
    const backward = this.lane.direction === "backward";
    this.told.up = up;
    this.credit += up ? ((to - from) * (rate ?? 0)) / 8 / (backward ? 40 : SEGMENT) / (backward ? 20 : 1) : 0;
    while (this.credit >= 1) {
      this.credit -= 1;
      if (random() < loss) {
        this.told.dropped += 1;
      } else {
        this.under.push({ begin: to, kind: backward ? 1 : random() < 0.05 ? 3 : 0 });
      }
    }
    this.told.queue_packets = up ? Math.round(queue * (0.5 + 0.5 * Math.sin(to * 2 + (this.lane.path ?? 0)))) : queue;
    this.told.queue_bytes = this.told.queue_packets * SEGMENT;
    while (this.under[0] !== undefined && this.under[0].begin + delay <= to) {
      this.under.shift();
      this.told.delivered_bytes += SEGMENT;
    }
  }

  packets(index: number, now: number): number[] {
    const delay = Math.max(this.lane.delay, 1e-6);
    return this.under.flatMap(({ begin, kind }) => [index, Math.min(1, (now - begin) / delay), kind === 1 ? 40 : SEGMENT, kind]);
  }

  frame(): LaneFrame {
    return this.told;
  }
}

export class Playground {
  private readonly scenario: Scenario;
  private readonly table: Lane[];
  private readonly directions: Direction[];
  private readonly policy: number;
  private state: bigint;
  private time = 0;
  private hash = 0xcbf29ce484222325n;

  constructor(toml: string, policy: string, seed: bigint) {
    this.scenario = read(toml);
    this.policy = POLICIES.findIndex(({ name }) => name === policy);
    if (this.policy < 0) {
      throw new Error(`The scenario has no policy "${policy}".`);
    }
    this.state = seed * 2n + 1n;
    this.table = Array.from({ length: this.scenario.paths }, (_, path) => initial(path)).flatMap((values, path) =>
      (["forward", "backward"] as const).map((direction) => ({ ...values, path, link: 0, direction, up: true })),
    );
    this.directions = this.table.map((lane) => new Direction(lane));
  }

  private readonly random = (): number => {
    this.state = (this.state * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
    return Number(this.state >> 40n) / 2 ** 24;
  };

  now(): number {
    return this.time;
  }

  duration(): number {
    return this.scenario.duration;
  }

  ended(): boolean {
    return this.time >= this.scenario.duration;
  }

  advance(seconds: number): void {
    const end = Math.min(this.time + seconds, this.scenario.duration);
    while (this.time < end) {
      const next = Math.min(end, this.time + 0.001);
      this.directions.forEach((direction) => direction.advance(this.time, next, this.random));
      this.time = next;
    }
    this.hash = ((this.hash ^ this.state) * 0x100000001b3n) % 2n ** 64n;
  }

  step(): void {
    this.advance(0.0005);
  }

  trace_hash(): string {
    return this.hash.toString(16).padStart(16, "0");
  }

  lanes(): string {
    return JSON.stringify(this.table);
  }

  packets(): Float32Array {
    return Float32Array.from(this.directions.flatMap((direction, index) => direction.packets(index, this.time)));
  }

  frame(): string {
    const lanes = this.directions.map((direction) => direction.frame());
    const goodput_bytes = lanes.reduce((sum, lane) => sum + lane.delivered_bytes, 0);
    return JSON.stringify({ time: this.time, lanes, goodput_bytes, other_bytes: 0, connection: this.connection(), subflows: this.subflows() });
  }

  private connection() {
    const out_of_order = Math.round(60000 * (1 + Math.sin(this.time + this.policy)));
    return { rcvbuf: 262144, out_of_order, unacked: 90000, snd_wnd: 200000 };
  }

  private subflows() {
    return Array.from({ length: this.scenario.paths }, (_, id) => ({
      id,
      path: id,
      state: "Established",
      cwnd: Math.round(40000 + 30000 * Math.sin(this.time / (id + 1) + this.policy)),
      srtt: 40 * (id + 1) + 10 * Math.sin(this.time * 3),
      in_flight: 20000,
      mss: 1460,
      stale: id > 0 && this.time % 10 > 8,
      backup: false,
      suspended: false,
      phase: "CongestionAvoidance",
      loss_rate: 0.01 * id,
      delivery_rate: 5e6,
    }));
  }

  decisions(): string {
    const last = Math.floor(this.time * 100);
    const numbers = Array.from({ length: Math.min(50, last) }, (_, index) => last - Math.min(50, last) + index + 1);
    return JSON.stringify(
      numbers.map((number) => ({
        time: number / 100,
        data_seq: number * 1460,
        length: 1460,
        kind: number % 9 === 0 ? "reinjection" : "new",
        choice: number % 5 === 0 ? null : number % this.scenario.paths,
        view: this.subflows().map(({ id, srtt, cwnd, in_flight }) => ({ id, srtt, cwnd, in_flight, queued: 0, usable: true })),
      })),
    );
  }

  actions(): string {
    return JSON.stringify([
      { time: 0.04, text: "opens a subflow on path 2" },
      { time: Math.floor(this.time), text: "leaves all paths in use" },
    ]);
  }

  change(path: number, what: string, value: number): void {
    const lanes = this.table.filter((lane) => lane.path === path);
    if (lanes.length === 0) {
      throw new Error(`There is no path ${path}.`);
    }
    for (const lane of lanes) {
      Object.assign(lane, { [what]: what === "up" ? value !== 0 : value });
    }
  }

  mesh(): string {
    throw new Error("The stand-in has no ad-hoc networks.");
  }

  choose_node(): void {
    this.mesh();
  }

  choose_ends(): void {
    this.mesh();
  }

  move_node(): void {
    this.mesh();
  }

  release_node(): void {
    this.mesh();
  }

  free(): void {
    this.table.length = 0;
  }
}
