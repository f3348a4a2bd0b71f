/** The columns of the runs: heading, picture, and a table of the subflows. */

import { byId, make, write } from "./dom.ts";
import { KIND, type SubflowFrame } from "./engine.ts";
import * as format from "./format.ts";
import { LaneView } from "./lanes.ts";
import type { RunFrame } from "./protocol.ts";

interface View {
  lanes: LaneView;
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

  begin(labels: string[], paths: string[]): void {
    this.paths = paths;
    this.views = labels.map((label) => view(label));
    this.written = -Infinity;
    this.told = -Infinity;
    byId("key", HTMLUListElement).classList.remove("has-again", "has-other");
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
          each.lanes.setLanes(next.lanes, this.paths);
        }
      }
    });
  }

  /** The paths' names, for a run's subflow. */
  nameOf(run: number, subflow: number): string {
    const found = this.views[run]?.last?.frame.subflows.find(({ id }) => id === subflow);
    return (found?.path === null || found === undefined ? undefined : this.paths[found.path]) ?? `subflow ${subflow}`;
  }

  draw(now: number): void {
    for (const { lanes, last } of this.views) {
      if (last !== null) {
        lanes.draw(last.frame, last.packets, now);
      }
    }
    if (now - this.written >= EVERY) {
      this.written = now;
      this.views.forEach((each) => this.write(each));
      this.showKey();
    }
    if (now - this.told >= PICTURE_EVERY) {
      this.told = now;
      for (const { canvas, lanes, label, last } of this.views) {
        canvas.setAttribute("aria-label", `${label}. ${last === null ? "" : lanes.describe(last.frame)}`);
      }
    }
  }

  private write({ last, rate, body }: View): void {
    if (last === null) {
      return;
    }
    const { time, goodput_bytes, subflows } = last.frame;
    write(rate, time > 0 ? `${format.rate((8 * goodput_bytes) / time)} so far` : "");
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

function view(label: string): View {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  return { lanes: new LaneView(canvas), canvas, label, rate: make("span"), body: make("tbody"), last: null };
}

function column({ canvas, label, rate, body }: View, index: number): HTMLElement {
  const heading = make("h2", {}, make("i", { className: "mark" }), label, " ", rate);
  const head = make("tr", {}, ...HEADS.map((text) => make("th", { scope: "col" }, text)));
  const table = make("table", { className: "subflows" }, make("thead", {}, head), body);
  const pictures = make("div", { className: "lanes", tabIndex: 0 }, canvas);
  const tables = make("div", { className: "scrolled", tabIndex: 0 }, table);
  for (const [scrolled, what] of [[pictures, "paths"], [tables, "subflows"]] as const) {
    scrolled.setAttribute("role", "group");
    scrolled.setAttribute("aria-label", `${label}: ${what}`);
  }
  const article = make("article", { className: "card run" }, heading, pictures, tables);
  article.style.setProperty("--colour", `var(--run-${index + 1})`);
  return article;
}
