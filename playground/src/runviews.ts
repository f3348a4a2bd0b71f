/** The columns of the runs: heading, picture, and a table of the subflows. */

import { byId, make, write } from "./dom.ts";
import { KIND, type Mesh, type SubflowFrame } from "./engine.ts";
import * as format from "./format.ts";
import { LaneView } from "./lanes.ts";
import { MeshView, type MeshActs } from "./meshview.ts";
import type { RunFrame } from "./protocol.ts";

interface View {
  lanes: LaneView | null;
  /** Of an ad-hoc network, in place of lanes. */
  mesh: MeshView | null;
  seen: Mesh | null;
  carried: HTMLElement;
  canvas: HTMLCanvasElement;
  label: string;
  rate: HTMLElement;
  body: HTMLTableSectionElement;
  last: RunFrame | null;
}

/** Real milliseconds between two writings of text. */
const EVERY = 250;
const PICTURE_EVERY = 2000;

export class RunViews {
  private readonly parent: HTMLElement;
  private views: View[] = [];
  private paths: string[] = [];
  private written = -Infinity;
  private told = -Infinity;

  constructor(parent: HTMLElement) {
    this.parent = parent;
  }

  /** `acts`: of an ad-hoc network, what hands do to its nodes. */
  begin(labels: string[], paths: string[], acts: MeshActs | null): void {
    this.paths = paths;
    this.views = labels.map((label) => view(label, acts));
    this.written = -Infinity;
    this.told = -Infinity;
    byId("key", HTMLUListElement).classList.remove("has-again", "has-other");
    byId("key", HTMLUListElement).hidden = acts !== null;
    byId("mesh-key", HTMLUListElement).hidden = acts === null;
    this.parent.replaceChildren(...this.views.map((each, index) => column(each, index)));
  }

  /** The legend has only what was seen. */
  private showKey(): void {
    const kinds = new Set<number>();
    for (const { last } of this.views) {
      for (let at = 3; last !== null && at < last.packets.length; at += 4) {
        kinds.add(last.packets[at] ?? KIND.data);
      }
    }
    const { classList } = byId("key", HTMLUListElement);
    const seen = { again: kinds.has(KIND.again), other: kinds.has(KIND.other) };
    Object.entries(seen).forEach(([name, is]) => is && classList.add(`has-${name}`));
  }

  take(frames: RunFrame[]): void {
    this.views.forEach((each, index) => {
      const next = frames[index];
      if (next !== undefined) {
        each.last = next;
        if (next.lanes !== undefined) {
          each.lanes?.setLanes(next.lanes, this.paths);
        }
        if (next.mesh !== undefined) {
          each.mesh?.setMesh(next.mesh, performance.now());
          each.seen = next.mesh;
        }
      }
    });
  }

  /** The node of an ad-hoc network that is looked at. */
  choose(node: number | null): void {
    this.views.forEach(({ mesh }) => mesh?.choose(node));
  }

  /** The ad-hoc network of a run as it was told last. */
  meshOf(run: number): Mesh | null {
    return this.views[run]?.seen ?? null;
  }

  /** The paths' names, for a run's subflow. */
  nameOf(run: number, subflow: number): string {
    const found = this.views[run]?.last?.frame.subflows.find(({ id }) => id === subflow);
    return (found?.path === null || found === undefined ? undefined : this.paths[found.path]) ?? `subflow ${subflow}`;
  }

  draw(now: number): void {
    for (const { lanes, mesh, last } of this.views) {
      if (last !== null) {
        lanes?.draw(last.frame, last.packets, now);
        mesh?.draw(now);
      }
    }
    if (now - this.written >= EVERY) {
      this.written = now;
      this.views.forEach((each) => this.write(each));
      this.showKey();
    }
    if (now - this.told >= PICTURE_EVERY) {
      this.told = now;
      for (const { canvas, lanes, mesh, label, last } of this.views) {
        const picture = last === null ? "" : (lanes?.describe(last.frame) ?? mesh?.describe());
        canvas.setAttribute("aria-label", `${label}. ${picture}`);
      }
    }
  }

  private write({ last, rate, body, seen, carried }: View): void {
    if (last === null) {
      return;
    }
    const { time, goodput_bytes, subflows } = last.frame;
    if (seen !== null) {
      write(carried, carriedText(seen));
    }
    write(rate, seen === null && time > 0 ? `${format.rate((8 * goodput_bytes) / time)} so far` : "");
    while (body.rows.length > subflows.length) {
      body.deleteRow(-1);
    }
    subflows.forEach((subflow, index) => {
      const row = body.rows[index] ?? emptyRow(body);
      cells(subflow, this.paths).forEach((text, at) => {
        const cell = row.cells[at];
        if (cell !== undefined) {
          write(cell, text);
        }
      });
    });
  }
}

function carriedText({ time, carried }: Mesh): string {
  const { probes, delivered, no_route, not_acknowledged, control_bytes } = carried;
  const routing = time > 0 ? `routing ${format.rate((8 * control_bytes) / time)}` : "";
  const lost = `lost ${no_route} without a route, ${not_acknowledged} at next hops that did not answer`;
  return [...(probes > 0 ? [`${probes} probes, ${format.share(delivered / probes)} delivered`] : []), lost, routing].join("; ");
}

const HEADS = ["path", "state", "cwnd", "RTT", "in flight"];

function cells(subflow: SubflowFrame, paths: string[]): string[] {
  const name = subflow.path === null ? undefined : paths[subflow.path];
  return [
    name ?? `subflow ${subflow.id}`,
    state(subflow),
    format.bytes(subflow.cwnd),
    subflow.srtt === null ? "–" : format.milliseconds(subflow.srtt),
    format.bytes(subflow.in_flight),
  ];
}

function state({ state, stale, suspended, backup, phase }: SubflowFrame): string {
  const marks = [stale ? "stale" : "", suspended ? "suspended" : "", backup ? "backup" : ""].filter((mark) => mark !== "");
  return marks.length > 0 ? marks.join(", ") : format.words(state === "Established" ? (phase ?? state) : state);
}

function emptyRow(body: HTMLTableSectionElement): HTMLTableRowElement {
  const row = body.insertRow();
  row.append(make("th", { scope: "row" }), ...HEADS.slice(1).map(() => make("td")));
  return row;
}

function view(label: string, acts: MeshActs | null): View {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return {
    lanes: acts === null ? new LaneView(canvas) : null,
    mesh: acts === null ? null : new MeshView(canvas, acts),
    seen: null,
    carried: make("p", { className: "carried" }),
    canvas,
    label,
    rate: make("span"),
    body: make("tbody"),
    last: null,
  };
}

function column({ canvas, label, rate, body, mesh, carried }: View, index: number): HTMLElement {
  const heading = make("h2", {}, make("i", { className: "mark" }), label, " ", rate);
  const head = make("tr", {}, ...HEADS.map((text) => make("th", { scope: "col" }, text)));
  const table = make("table", { className: "subflows" }, make("thead", {}, head), body);
  const pictures = make("div", { className: "lanes", tabIndex: 0 }, canvas);
  const tables = make("div", { className: "scrolled", tabIndex: 0 }, table);
  for (const [scrolled, what] of [[pictures, mesh === null ? "paths" : "network"], [tables, "subflows"]] as const) {
    scrolled.setAttribute("role", "group");
    scrolled.setAttribute("aria-label", `${label}: ${what}`);
  }
  const below = mesh === null ? [tables] : [carried, tables];
  const article = make("article", { className: mesh === null ? "card run" : "card run mesh" }, heading, pictures, ...below);
  article.style.setProperty("--colour", `var(--run-${index + 1})`);
  return article;
}
