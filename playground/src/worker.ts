/** The worker: owns the engine and advances the runs, so that the page stays free to draw. */

import init, * as module from "@engine";
import wasm from "@engine-wasm";
import type { Engine, ScenarioName } from "./engine.ts";
import type { Command, Load, Report } from "./protocol.ts";
import { Runs } from "./runs.ts";

/** Real time that one tick may take: what does not fit is left out, not caught up. */
const TICK = 0.03;
/** The same when it runs as fast as it can; one frame at 60 Hz has 16.7 ms. */
const FAST_TICK = 0.013;
/** No more than this is caught up after a pause of the browser. */
const LONGEST_ELAPSED = 0.1;
/** Seconds between two reports on decisions while it runs. */
const WHY_EVERY = 0.25;
/** Seconds between two meshes while it runs. Nodes move every tenth of a simulated second. */
const MESH_EVERY = 0.08;

const engine = module as unknown as Engine;
const scope = self as unknown as DedicatedWorkerGlobalScope;

let runs: Runs | null = null;
/** Of the engine; the stand-in has none. */
let memory: WebAssembly.Memory | undefined;
let speed = 0;
let inspected = 0;
let toldEnd = false;
let toldWhy = -Infinity;
let toldMesh = -Infinity;

const seconds = (): number => performance.now() / 1000;

function tell(report: Report, transfer: Transferable[] = []): void {
  scope.postMessage(report, transfer);
}

/** The first line of a message: what follows shows the place, which the page has before it. */
function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/^error: /, "").split("\n")[0] ?? text;
}

function load(ticket: number, wanted: Load): void {
  try {
    const next = new Runs(engine, wanted);
    runs?.free();
    runs = next;
    toldEnd = false;
    tell({ tell: "loaded", ticket, description: next.description, policies: next.policies });
    frame(0, true);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      throw error;
    }
    tell({ tell: "failed", ticket, sentence: sentence(error) });
  }
}

/** `busy`: real seconds of simulation. `still`: nothing runs, so that decisions are told at once. */
function frame(busy: number, still: boolean): void {
  if (runs === null) {
    return;
  }
  const meshes = still || seconds() - toldMesh >= MESH_EVERY;
  if (meshes) {
    toldMesh = seconds();
  }
  const told = runs.frames(meshes);
  const due = still || seconds() - toldWhy >= WHY_EVERY;
  if (due) {
    toldWhy = seconds();
  }
  const why = due ? runs.why(inspected) : null;
  const { now: time, duration, ended } = runs;
  tell(
    { tell: "frame", time, duration, ended, runs: told, why, busy, memory: memory?.buffer.byteLength ?? 0 },
    told.map((run) => run.packets.buffer as ArrayBuffer),
  );
  if (ended && !toldEnd) {
    toldEnd = true;
    tell({ tell: "hashes", hashes: runs.hashes() });
  }
}

function tick(elapsed: number): void {
  if (runs === null || speed === 0 || runs.ended) {
    tell({ tell: "idle" });
    return;
  }
  const begin = seconds();
  const budget = speed === Infinity ? FAST_TICK : TICK;
  const wanted = speed === Infinity ? Infinity : speed * Math.min(elapsed, LONGEST_ELAPSED);
  runs.advance(wanted, () => seconds() - begin < budget);
  frame(seconds() - begin, runs.ended);
}

function obey(command: Command): void {
  switch (command.do) {
    case "scenario":
      tell({ tell: "text", name: command.name, toml: engine.scenario_text(command.name) });
      break;
    case "load":
      load(command.ticket, command);
      break;
    case "speed":
      speed = command.speed;
      frame(0, true);
      break;
    case "tick":
      tick(command.elapsed);
      break;
    case "step":
      runs?.step(inspected);
      frame(0, true);
      break;
    case "change":
      runs?.change(command);
      frame(0, speed === 0);
      break;
    case "node":
      runs?.act(command.act);
      frame(0, speed === 0);
      break;
    case "inspect":
      inspected = command.run;
      frame(0, true);
      break;
  }
}

async function begin(): Promise<void> {
  const exports = await init({ module_or_path: new URL(wasm, import.meta.url) });
  memory = (exports as { memory?: WebAssembly.Memory } | undefined)?.memory;
  scope.onmessage = (event: MessageEvent<Command>) => {
    try {
      obey(event.data);
    } catch (error) {
      // After a panic the engine's memory cannot be trusted, not even to free it.
      const broken = error instanceof WebAssembly.RuntimeError;
      tell({ tell: broken ? "broken" : "sentence", sentence: sentence(error) });
    }
  };
  const scenarios = JSON.parse(engine.scenarios()) as ScenarioName[];
  tell({ tell: "ready", scenarios, fake: engine.fake === true });
}

begin().catch((error: unknown) => {
  tell({ tell: "sentence", sentence: `The engine cannot be started: ${sentence(error)}.` });
});
