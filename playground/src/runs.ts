/** Up to three runs on one clock: loads, advances and changes them, and reads their frames. */

import type { Action, Decision, Description, Engine, Frame, Lane, Mesh, Playground } from "./engine.ts";
import type { Change, Load, NodeAct, RunFrame, Why } from "./protocol.ts";

export const MOST_RUNS = 3;

/** Simulated seconds between two looks at the real clock. */
const SLICE = 0.01;
/** The engine counts nanoseconds: a shorter way is none. */
const LEAST = 1e-8;

interface Run {
  playground: Playground;
  /** The last lanes told, as text: they are parsed and sent only when they change. */
  lanes: string;
}

export class Runs {
  readonly description: Description;
  readonly policies: string[];
  private readonly runs: Run[];

  /** Throws an error with a sentence, and leaves nothing behind, if a run cannot be made. */
  constructor(engine: Engine, load: Load) {
    this.description = JSON.parse(engine.describe(load.toml)) as Description;
    this.policies = chosen(this.description, load);
    this.runs = [];
    try {
      for (const policy of this.policies) {
        const playground = new engine.Playground(load.toml, policy, load.seed);
        this.runs.push({ playground, lanes: "" });
      }
      for (const change of load.changes) {
        this.change(change);
      }
      for (const place of load.nodes) {
        this.act({ act: "hold", ...place });
      }
    } catch (error) {
      this.free();
      throw error;
    }
  }

  free(): void {
    for (const run of this.runs) {
      run.playground.free();
    }
    this.runs.length = 0;
  }

  /** Simulated seconds. All runs stand here, but for the rest of a step. */
  get now(): number {
    return Math.max(0, ...this.runs.map((run) => run.playground.now()));
  }

  get duration(): number {
    return Math.max(0, ...this.runs.map((run) => run.playground.duration()));
  }

  get ended(): boolean {
    return this.runs.every((run) => run.playground.ended());
  }

  /** Advances all runs by `seconds` of simulated time, or by less when `allowed` says that real time is over. */
  advance(seconds: number, allowed: () => boolean): number {
    const begin = this.now;
    const end = Math.min(begin + seconds, this.duration);
    while (!this.ended && (end - this.now > LEAST || end === this.duration)) {
      this.advanceTo(Math.min(end, this.now + SLICE));
      if (!allowed()) {
        break;
      }
    }
    return this.now - begin;
  }

  /** Steps one run to the next delivery of a packet; the others follow to the same time. */
  step(leader: number): void {
    const run = this.runs[leader] ?? this.runs[0];
    if (run === undefined || run.playground.ended()) {
      return;
    }
    run.playground.step();
    this.advanceTo(run.playground.now());
  }

  /** All runs are changed, or none: the first refuses a value that the others would refuse. */
  change({ path, what, value }: Change): void {
    for (const run of this.runs) {
      run.playground.change(path, what, value);
    }
  }

  /** The same is done in all runs. */
  act(act: NodeAct): void {
    for (const { playground } of this.runs) {
      switch (act.act) {
        case "hold":
          playground.move_node(act.node, act.x, act.y);
          break;
        case "release":
          playground.release_node(act.node);
          break;
        case "choose":
          playground.choose_node(act.node ?? undefined);
          break;
        case "ends":
          playground.choose_ends(act.from, act.to);
          break;
      }
    }
  }

  hashes(): string[] {
    return this.runs.map((run) => run.playground.trace_hash());
  }

  /** `meshes`: whether those of ad-hoc networks are wanted. */
  frames(meshes: boolean): RunFrame[] {
    return this.runs.map((run) => {
      const told: RunFrame = {
        packets: run.playground.packets(),
        frame: JSON.parse(run.playground.frame()) as Frame,
      };
      const lanes = run.playground.lanes();
      if (lanes !== run.lanes) {
        run.lanes = lanes;
        told.lanes = JSON.parse(lanes) as Lane[];
      }
      if (meshes && this.description.mesh !== null) {
        told.mesh = JSON.parse(run.playground.mesh()) as Mesh;
      }
      return told;
    });
  }

  why(index: number): Why | null {
    const run = this.runs[index];
    return run === undefined
      ? null
      : {
          run: index,
          decisions: JSON.parse(run.playground.decisions()) as Decision[],
          actions: JSON.parse(run.playground.actions()) as Action[],
        };
  }

  /** A run that stands a hair before its end is pushed over it; the engine stops there. */
  private advanceTo(time: number): void {
    const last = time >= this.duration;
    for (const { playground } of this.runs) {
      const missing = time - playground.now();
      if ((missing > LEAST || last) && !playground.ended()) {
        playground.advance(Math.max(missing, 2 * LEAST));
      }
    }
  }
}

/** The wanted policies, or the first of the scenario; at most three, none twice. */
function chosen(description: Description, { policies, lenient }: Load): string[] {
  const known = description.policies.map((policy) => policy.name);
  const wanted = lenient ? policies.filter((policy) => known.includes(policy)) : policies;
  return [...new Set(wanted.length > 0 ? wanted : known.slice(0, 2))].slice(0, MOST_RUNS);
}
