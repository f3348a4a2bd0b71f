/** The messages between the page and the worker that owns the engine. */

import type { Action, Changeable, Decision, Description, Frame, Lane, Mesh, ScenarioName } from "./engine.ts";

export interface Change {
  path: number;
  what: Changeable;
  value: number;
}

/** Where a node is held, in metres. */
export interface NodePlace {
  node: number;
  x: number;
  y: number;
}

/** What is done to the nodes of an ad-hoc network, of all runs. Places are in metres. */
export type NodeAct =
  | ({ act: "hold" } & NodePlace)
  | { act: "release"; node: number }
  | { act: "choose"; node: number | null }
  | { act: "ends"; from: number; to: number };

/** What runs: up to three policies on one scenario and one seed. */
export interface Load {
  toml: string;
  /** Empty: the first policies of the scenario. */
  policies: string[];
  /** Policies that the scenario does not have are left out, not refused. */
  lenient: boolean;
  seed: bigint;
  changes: Change[];
  nodes: NodePlace[];
}

export type Command =
  | { do: "scenario"; name: string }
  | ({ do: "load"; ticket: number } & Load)
  /** Simulated seconds per second; 0 pauses, Infinity is as fast as it can. */
  | { do: "speed"; speed: number }
  /** A frame was drawn and `elapsed` seconds of real time have passed. */
  | { do: "tick"; elapsed: number }
  | { do: "step" }
  | ({ do: "change" } & Change)
  | { do: "node"; act: NodeAct }
  /** The run whose decisions are told. */
  | { do: "inspect"; run: number };

export interface RunFrame {
  /** Only when they have changed. */
  lanes?: Lane[];
  packets: Float32Array;
  frame: Frame;
  /** Of an ad-hoc network, some times a second. */
  mesh?: Mesh;
}

export interface Why {
  run: number;
  decisions: Decision[];
  actions: Action[];
}

/** Of a frame, `busy` is real seconds of simulation, `memory` bytes of the engine. */
export type Report =
  | { tell: "ready"; scenarios: ScenarioName[]; fake: boolean }
  | { tell: "text"; name: string; toml: string }
  | { tell: "loaded"; ticket: number; description: Description; policies: string[] }
  | { tell: "failed"; ticket: number; sentence: string }
  | { tell: "frame"; time: number; duration: number; ended: boolean; runs: RunFrame[]; why: Why | null; busy: number; memory: number }
  /** The answer to a tick when nothing runs. */
  | { tell: "idle" }
  /** At the end of the runs, in their order. */
  | { tell: "hashes"; hashes: string[] }
  /** What was refused; all goes on as before. */
  | { tell: "sentence"; sentence: string }
  /** The engine has failed: another worker is needed. */
  | { tell: "broken"; sentence: string };
