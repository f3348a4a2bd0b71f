/** The curves: goodput and data out of order of all runs, windows and round trips of the run that is looked at. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colours, nth, onColours } from "./colours.ts";
import { make, write } from "./dom.ts";
import type { Frame, Mesh } from "./engine.ts";
import * as format from "./format.ts";
import { History, Meter } from "./history.ts";

interface Curve {
  label: string;
  colour: string;
  dash?: number[];
}

const HEIGHT = 150;

/** One chart with its caption, which is also its legend and tells the newest values. */
class Chart {
  private readonly figure: HTMLElement;
  private readonly plot: HTMLElement;
  private readonly caption: HTMLElement;
  private readonly text: (value: number) => string;
  private uplot: uPlot | null = null;
  private curves: Curve[] = [];

  /** A hidden chart keeps its curves. */
  get hidden(): boolean {
    return this.figure.hidden !== false;
  }

  set hidden(hidden: boolean) {
    this.figure.hidden = hidden;
  }

  constructor(parent: HTMLElement, title: string, text: (value: number) => string) {
    this.text = text;
    this.plot = make("div", { className: "plot" });
    this.plot.setAttribute("aria-hidden", "true");
    this.caption = make("figcaption");
    this.figure = make("figure", { className: "card" }, make("h3", {}, title), this.plot, this.caption);
    parent.append(this.figure);
    new ResizeObserver(() => this.uplot?.setSize({ width: this.plot.clientWidth, height: HEIGHT })).observe(this.plot);
  }

  setCurves(curves: Curve[]): void {
    this.curves = curves;
    this.uplot?.destroy();
    const palette = colours();
    const axis = { stroke: palette.quiet, grid: { stroke: palette.line, width: 1 }, ticks: { show: false } };
    const options: uPlot.Options = {
      width: Math.max(200, this.plot.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "time" }, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(most, 1e-9) * 1.08] } },
      axes: [
        { ...axis, size: 28, values: (_, values) => values.map((value) => `${value} s`) },
        { ...axis, size: 74, values: (_, values) => values.map((value) => this.text(value)) },
      ],
      series: [
        {},
        ...curves.map(({ label, colour, dash }) => ({
          label,
          stroke: colour,
          width: 1.5,
          points: { show: false },
          ...(dash === undefined ? {} : { dash }),
        })),
      ],
    };
    this.uplot = new uPlot(options, [[], ...curves.map(() => [])], this.plot);
    const names = curves.map(({ label, colour, dash }) => {
      const mark = make("i", { className: dash === undefined ? "" : "dashed" });
      mark.style.setProperty("--colour", colour);
      return make("span", {}, mark, `${label} `, make("b"));
    });
    this.caption.replaceChildren(...names);
  }

  setData(times: number[], values: (number | null)[][]): void {
    const filled = this.curves.map((_, index) => values[index] ?? times.map(() => null));
    this.uplot?.setData([times, ...filled]);
    this.caption.querySelectorAll("b").forEach((newest, index) => {
      const value = values[index]?.at(-1);
      write(newest, value === null || value === undefined ? "" : this.text(value));
    });
  }
}

interface Kept {
  /** Goodput (bit/s), bytes out of order, receive buffer (bytes), goodput of others (bit/s). */
  connection: History;
  /** In turn for each path: cwnd (bytes), RTT (ms). */
  paths: History;
  meter: Meter;
  others: Meter;
  /** Of an ad-hoc network: share of probes delivered, bits of routing per second. */
  mesh: History;
  probes: Meter;
  delivered: Meter;
  control: Meter;
}

/** Simulated seconds over which what an ad-hoc network carries is taken: Hellos come every second or two. */
const MESH_SPAN = 5;

/** The same for connections of others, of which there may be one that gets little. */
const OTHERS_SPAN = 1;

/** What is shown: paths or lanes with connections, an ad-hoc network. */
export interface Shown {
  connection: boolean;
  mesh: boolean;
}

/** Real milliseconds between two drawings: curves need not be as smooth as packets. */
const EVERY = 100;

export class Charts {
  private readonly goodput: Chart;
  private readonly held: Chart;
  private readonly windows: Chart;
  private readonly trips: Chart;
  private readonly others: Chart;
  private readonly probes: Chart;
  private readonly routing: Chart;
  private runs: Kept[] = [];
  private labels: string[] = [];
  private paths: string[] = [];
  private inspected = 0;
  private drawn = -Infinity;

  constructor(parent: HTMLElement) {
    this.goodput = new Chart(parent, "Goodput, over half a second", format.rate);
    this.held = new Chart(parent, "Out of order at the receiver, and its buffer (dashed)", format.bytes);
    this.windows = new Chart(parent, "Congestion windows of the selected policy", format.bytes);
    this.trips = new Chart(parent, "Round-trip times of the selected policy", format.milliseconds);
    this.others = new Chart(parent, "Goodput of others, over a second", format.rate);
    this.probes = new Chart(parent, "Probes delivered, over five seconds", format.share);
    this.routing = new Chart(parent, "Routing in the whole network, over five seconds", format.rate);
    onColours(() => this.restyle());
  }

  begin(labels: string[], paths: string[], shown: Shown): void {
    [this.goodput, this.held, this.windows, this.trips].forEach((chart) => (chart.hidden = !shown.connection));
    this.probes.hidden = !shown.mesh || shown.connection;
    this.routing.hidden = !shown.mesh;
    // Until they carry something.
    this.others.hidden = true;
    this.labels = labels;
    this.paths = paths;
    this.inspected = 0;
    this.runs = labels.map(() => ({
      connection: new History(4),
      paths: new History(2 * paths.length),
      meter: new Meter(),
      others: new Meter(OTHERS_SPAN),
      mesh: new History(2),
      probes: new Meter(MESH_SPAN),
      delivered: new Meter(MESH_SPAN),
      control: new Meter(MESH_SPAN),
    }));
    this.restyle();
  }

  inspect(run: number): void {
    this.inspected = run;
    this.draw();
  }

  /** The frames of all runs at one time (simulated seconds). */
  add(time: number, frames: Frame[]): void {
    if (this.runs[0]?.connection.due(time) !== true) {
      return;
    }
    this.runs.forEach((kept, index) => {
      const frame = frames[index];
      if (frame !== undefined) {
        this.addRun(kept, time, frame);
      }
    });
  }

  /** The ad-hoc networks of all runs, when they were told. */
  addMeshes(meshes: (Mesh | undefined)[]): void {
    meshes.forEach((mesh, index) => {
      const kept = this.runs[index];
      if (mesh === undefined || kept?.mesh.due(mesh.time) !== true) {
        return;
      }
      const { probes, delivered, control_bytes } = mesh.carried;
      const sent = kept.probes.rate(mesh.time, probes);
      const arrived = kept.delivered.rate(mesh.time, delivered);
      const share = sent === null || arrived === null || sent === 0 ? null : Math.min(1, arrived / sent);
      kept.mesh.push(mesh.time, [share, kept.control.rate(mesh.time, control_bytes)]);
    });
  }

  private addRun(kept: Kept, time: number, frame: Frame): void {
    const { connection } = frame;
    const goodput = kept.meter.rate(time, frame.goodput_bytes);
    const others = kept.others.rate(time, frame.other_bytes);
    this.others.hidden &&= frame.other_bytes === 0;
    kept.connection.push(time, [goodput, connection?.out_of_order ?? null, connection?.rcvbuf ?? null, others]);
    const values = this.paths.flatMap((_, path) => {
      const subflow = frame.subflows.find((candidate) => candidate.path === path);
      return [subflow?.cwnd ?? null, subflow?.srtt ?? null];
    });
    kept.paths.push(time, values);
  }

  /** Draws if it is time; `now` in real milliseconds. */
  drawIfDue(now: number): void {
    if (now - this.drawn >= EVERY) {
      this.drawn = now;
      this.draw();
    }
  }

  draw(): void {
    const first = this.runs[0];
    const shown = this.runs[this.inspected];
    if (first === undefined || shown === undefined) {
      return;
    }
    const of = (curve: number): (number | null)[][] => this.runs.map((run) => run.connection.curves[curve] ?? []);
    this.goodput.setData(first.connection.times, of(0));
    this.others.setData(first.connection.times, of(3));
    this.held.setData(first.connection.times, [...of(1), ...of(2)]);
    const { times, curves } = shown.paths;
    this.windows.setData(times, curves.filter((_, index) => index % 2 === 0));
    this.trips.setData(times, curves.filter((_, index) => index % 2 === 1));
    const mesh = (curve: number): (number | null)[][] => this.runs.map((run) => run.mesh.curves[curve] ?? []);
    this.probes.setData(first.mesh.times, mesh(0));
    this.routing.setData(first.mesh.times, mesh(1));
  }

  private restyle(): void {
    const palette = colours();
    const runs = this.labels.map((label, index) => ({ label, colour: nth(palette.runs, index) }));
    const paths = this.paths.map((label, index) => ({ label, colour: nth(palette.paths, index) }));
    this.goodput.setCurves(runs);
    this.others.setCurves(runs);
    this.held.setCurves([...runs, ...runs.map(({ label, colour }) => ({ label: `${label}, buffer`, colour, dash: [4, 4] }))]);
    this.windows.setCurves(paths);
    this.trips.setCurves(paths);
    this.probes.setCurves(runs);
    this.routing.setCurves(runs);
    this.draw();
  }
}
