/** The state of the page as the fragment of its address: what a link carries. */

import { CHANGEABLE, type Changeable } from "./engine.ts";
import type { Change, NodePlace } from "./protocol.ts";
import { MOST_RUNS } from "./runs.ts";

export interface State {
  /** The name of a scenario of the lab, or `null` when `toml` is somebody's own. */
  scenario: string | null;
  toml: string | null;
  /** Empty: the first of the scenario. */
  policies: string[];
  seed: bigint;
  /** Simulated seconds per second; Infinity is as fast as it can. */
  speed: number;
  paused: boolean;
  changes: Change[];
  /** Nodes of an ad-hoc network that are held. */
  nodes: NodePlace[];
}

export const SPEEDS = [0.1, 0.5, 1, 5, Infinity] as const;
export const FIRST: State = {
  scenario: "two_paths",
  toml: null,
  policies: [],
  seed: 1n,
  speed: 1,
  paused: false,
  changes: [],
  nodes: [],
};

/** A scenario has a few kilobytes; a link that unpacks to more is not one of ours. */
const LONGEST_TOML = 1_000_000;
const LARGEST_SEED = 2n ** 64n - 1n;

export async function toFragment(state: State): Promise<string> {
  const fields = new URLSearchParams();
  if (state.toml !== null) {
    fields.set("toml", await pack(state.toml));
  } else if (state.scenario !== null) {
    fields.set("scenario", state.scenario);
  }
  for (const policy of state.policies) {
    fields.append("policy", policy);
  }
  fields.set("seed", state.seed.toString());
  fields.set("speed", state.speed === Infinity ? "max" : String(state.speed));
  if (state.paused) {
    fields.set("paused", "1");
  }
  for (const { path, what, value } of state.changes) {
    fields.append("set", `${path}.${what}=${value}`);
  }
  for (const { node, x, y } of state.nodes) {
    fields.append("node", `${node}=${x},${y}`);
  }
  return fields.toString();
}

/** Throws an error with a sentence if the fragment says something that cannot be. An empty one is the first state. */
export async function fromFragment(fragment: string): Promise<State> {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const packed = fields.get("toml");
  return {
    scenario: packed === null ? (fields.get("scenario") ?? FIRST.scenario) : null,
    toml: packed === null ? null : await unpack(packed),
    policies: fields.getAll("policy").slice(0, MOST_RUNS),
    seed: toSeed(fields.get("seed") ?? "1"),
    speed: toSpeed(fields.get("speed") ?? "1"),
    paused: fields.get("paused") === "1",
    changes: fields.getAll("set").map(toChange),
    nodes: fields.getAll("node").map(toPlace),
  };
}

/** Throws unless the text is a whole number from 0 to 2^64 - 1. */
export function toSeed(text: string): bigint {
  const seed = /^\d{1,20}$/.test(text.trim()) ? BigInt(text.trim()) : -1n;
  if (seed < 0n || seed > LARGEST_SEED) {
    throw new Error(`The seed "${text}" is not a whole number from 0 to 2^64 - 1.`);
  }
  return seed;
}

function toSpeed(text: string): number {
  const speed = text === "max" ? Infinity : Number(text);
  if (!(SPEEDS as readonly number[]).includes(speed)) {
    throw new Error(`The speed "${text}" is none of 0.1, 0.5, 1, 5 and max.`);
  }
  return speed;
}

function toChange(text: string): Change {
  const [, path, what, number] = /^(\d{1,4})\.([a-z]+)=(.+)$/.exec(text) ?? [];
  const value = Number(number);
  if (!(CHANGEABLE as readonly (string | undefined)[]).includes(what) || !Number.isFinite(value)) {
    throw new Error(`The link sets "${text}", which is not PATH.VALUE=NUMBER.`);
  }
  return { path: Number(path), what: what as Changeable, value };
}

function toPlace(text: string): NodePlace {
  const [, node, x, y] = /^(\d{1,4})=(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (node === undefined) {
    throw new Error(`The link puts a node to "${text}", which is not NODE=X,Y.`);
  }
  return { node: Number(node), x: Number(x), y: Number(y) };
}

/** The last place of each node counts. A tenth of a metre is as close as it is kept. */
export function withPlace(nodes: NodePlace[], { node, x, y }: NodePlace): NodePlace[] {
  const near = (metres: number): number => Math.round(metres * 10) / 10;
  return [...nodes.filter((other) => other.node !== node), { node, x: near(x), y: near(y) }];
}

/** The last value of each slider counts. */
export function withChange(changes: Change[], change: Change): Change[] {
  return [...changes.filter((other) => other.path !== change.path || other.what !== change.what), change];
}

/** Raw deflate, then base64url without padding (RFC 1951, RFC 4648, section 5). */
async function pack(text: string): Promise<string> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(packed: string): Promise<string> {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await readText(unpacked.getReader());
  } catch {
    throw new Error("The scenario in the link is damaged: it cannot be unpacked.");
  }
}

async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return text + decoder.decode();
    }
    text += decoder.decode(value, { stream: true });
    if (text.length > LONGEST_TOML) {
      await reader.cancel();
      throw new Error("too long");
    }
  }
}
