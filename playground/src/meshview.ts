/** Draws the ad-hoc network of one run, and lets its nodes be dragged. */

import { colours, nth, type Colours } from "./colours.ts";
import type { Mesh, MeshLink, MeshNode, Way } from "./engine.ts";
import { STILL } from "./still.ts";

export interface MeshActs {
  choose(node: number | null): void;
  /** `x` and `y` in metres. */
  hold(node: number, x: number, y: number): void;
  /** A hand has let go of a node: keys are for it. */
  done(): void;
}

interface Point {
  x: number;
  y: number;
}

/** Real milliseconds for which it is seen that a node has sent. */
const FLASH = 350;
const MARGIN = 22;
/** A picture alone in its row is wide, and may be taller. */
const WIDE = 700;
const TALLEST = { narrow: 440, wide: 620 };
/** Pixels around a node in which it is meant, and that a hand may tremble. */
const NEAR = 22;
const TREMBLE = 4;

export class MeshView {
  private readonly canvas: HTMLCanvasElement;
  private readonly acts: MeshActs;
  private mesh: Mesh | null = null;
  private chosen: number | null = null;
  private width = 0;
  private height = 0;
  /** Pixels per metre, and the pixel of the origin. */
  private scale = 1;
  private origin: Point = { x: 0, y: 0 };
  /** When each node was last seen to have sent. */
  private flashes: number[] = [];
  private drag: { node: number; from: Point; at: Point; moved: boolean } | null = null;

  constructor(canvas: HTMLCanvasElement, acts: MeshActs) {
    this.canvas = canvas;
    this.acts = acts;
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.pull(event));
    canvas.addEventListener("pointerup", () => this.drop());
    canvas.addEventListener("pointercancel", () => (this.drag = null));
    // A finger on a node drags it; beside the nodes it scrolls the page.
    canvas.addEventListener("touchstart", (event) => this.touch(event), { passive: false });
  }

  setMesh(mesh: Mesh, now: number): void {
    const first = this.mesh === null;
    mesh.nodes.forEach(({ sent }, node) => {
      if (sent > (this.mesh?.nodes[node]?.sent ?? sent)) {
        this.flashes[node] = now;
      }
    });
    this.mesh = mesh;
    if (first) {
      this.resize();
    }
  }

  choose(node: number | null): void {
    this.chosen = node;
  }

  /** What can be said of the picture to those who do not see it. */
  describe(): string {
    const { mesh } = this;
    if (mesh === null) {
      return "";
    }
    const count = (role: string): number => mesh.nodes.filter((node) => node.role === role).length;
    const links = mesh.links.filter(({ in_range }) => in_range).length;
    return `${mesh.nodes.length} nodes, ${count("mdr")} MDRs, ${count("bmdr")} backup MDRs, ${links} links. The table of nodes has the rest.`;
  }

  draw(now: number): void {
    const context = this.canvas.getContext("2d");
    const { mesh } = this;
    if (context === null || mesh === null || this.width === 0) {
      return;
    }
    const palette = colours();
    const scale = this.canvas.width / this.width;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.lineCap = "round";
    this.drawArea(context, palette, mesh);
    mesh.links.forEach((link) => this.drawLink(context, palette, mesh, link));
    mesh.ways.forEach((way, index) => this.drawWay(context, palette, mesh, way, index));
    this.drawNextHops(context, palette, mesh);
    mesh.nodes.forEach((node, index) => this.drawNode(context, palette, mesh, node, index, now));
  }

  private resize(): void {
    const { mesh } = this;
    this.width = this.canvas.clientWidth;
    if (mesh === null || this.width === 0) {
      return;
    }
    const [left, bottom, right, top] = mesh.area;
    const wide = (this.width - 2 * MARGIN) / (right - left);
    const tallest = this.width > WIDE ? TALLEST.wide : TALLEST.narrow;
    this.scale = Math.min(wide, (tallest - 2 * MARGIN) / (top - bottom));
    this.height = Math.round((top - bottom) * this.scale + 2 * MARGIN);
    this.canvas.style.height = `${this.height}px`;
    this.origin = {
      x: this.width / 2 - ((left + right) / 2) * this.scale,
      y: this.height / 2 + ((bottom + top) / 2) * this.scale,
    };
    const points = Math.min(window.devicePixelRatio || 1, 2);
    const size = [Math.round(this.width * points), Math.round(this.height * points)] as const;
    if (this.canvas.width !== size[0] || this.canvas.height !== size[1]) {
      [this.canvas.width, this.canvas.height] = size;
    }
  }

  /** Where a node is drawn: what is outside stands at the edge, and what is dragged at the hand. */
  private at(mesh: Mesh, index: number): Point {
    if (this.drag?.node === index && this.drag.moved) {
      return this.drag.at;
    }
    const node = mesh.nodes[index];
    const within = (value: number, most: number): number => Math.min(Math.max(value, 8), most - 8);
    return {
      x: within(this.origin.x + (node?.x ?? 0) * this.scale, this.width),
      y: within(this.origin.y - (node?.y ?? 0) * this.scale, this.height),
    };
  }

  private drawArea(context: CanvasRenderingContext2D, palette: Colours, mesh: Mesh): void {
    const [left, bottom, right, top] = mesh.area;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.setLineDash([]);
    const x = this.origin.x + left * this.scale;
    const y = this.origin.y - top * this.scale;
    context.strokeRect(x - 8, y - 8, (right - left) * this.scale + 16, (top - bottom) * this.scale + 16);
    if (this.chosen !== null) {
      const place = this.at(mesh, this.chosen);
      context.strokeStyle = palette.wire;
      context.setLineDash([2, 5]);
      circle(context, place, mesh.range * this.scale);
      context.setLineDash([]);
    }
    // A ruler.
    const metres = (right - left) * this.scale > 250 ? 100 : 200;
    context.strokeStyle = palette.quiet;
    line(context, { x: 10, y: this.height - 8 }, { x: 10 + metres * this.scale, y: this.height - 8 });
    context.fillStyle = palette.quiet;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText(`${metres} m`, 14 + metres * this.scale, this.height - 5);
  }

  /** Thin: heard. Thick: adjacent. Dashed: fading. Dotted: weak, bad by forecast, or gone before the routers know. */
  private drawLink(context: CanvasRenderingContext2D, palette: Colours, mesh: Mesh, link: MeshLink): void {
    const [from, to] = [this.at(mesh, link.ends[0]), this.at(mesh, link.ends[1])];
    const isGone = !link.in_range && link.state !== null && !mesh.fades;
    const isWeak = !link.in_range && mesh.fades;
    const isBad = link.forecast === "bad" || isGone;
    context.strokeStyle = isBad ? palette.lost : link.forecast === "fading" ? palette.again : palette.wire;
    context.lineWidth = link.state === "Full" ? 1.6 : 0.8;
    context.globalAlpha = isBad || link.forecast === "fading" ? 1 : link.state === null ? 0.35 : 0.8;
    context.setLineDash(isBad || isWeak ? [1, 5] : link.forecast === "fading" ? [7, 4] : []);
    line(context, from, to);
    context.setLineDash([]);
    if (isGone) {
      cross(context, { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }, 4);
    }
    context.globalAlpha = 1;
  }

  /** Lanes lie side by side; each has the colour of its path. */
  private drawWay(context: CanvasRenderingContext2D, palette: Colours, mesh: Mesh, way: Way, index: number): void {
    const aside = (index - (mesh.ways.length - 1) / 2) * 4;
    context.strokeStyle = way.path === null ? palette.ink : nth(palette.paths, way.path);
    context.fillStyle = context.strokeStyle;
    context.lineWidth = way.path === null ? 1.5 : 2.5;
    context.globalAlpha = way.arrives ? 0.9 : 0.4;
    for (const [from, to] of way.hops) {
      const [begin, end] = [this.at(mesh, from), this.at(mesh, to)];
      const length = Math.hypot(end.x - begin.x, end.y - begin.y) || 1;
      const shift = { x: (-(end.y - begin.y) / length) * aside, y: ((end.x - begin.x) / length) * aside };
      const [one, other] = [moved(begin, shift), moved(end, shift)];
      line(context, one, other);
      arrow(context, one, other, 0.58 + index * 0.03);
    }
    context.globalAlpha = 1;
  }

  /** How many destinations the chosen node reaches over each neighbour. */
  private drawNextHops(context: CanvasRenderingContext2D, palette: Colours, mesh: Mesh): void {
    const { chosen } = mesh;
    if (chosen === null || chosen.node !== this.chosen) {
      return;
    }
    const from = this.at(mesh, chosen.node);
    const counts = new Map<number, number>();
    chosen.routes.forEach(({ hops }) => hops.forEach(([hop]) => counts.set(hop, (counts.get(hop) ?? 0) + 1)));
    // That a neighbour is reached over itself tells nothing.
    chosen.routes.forEach(({ to }) => counts.get(to) === 1 && counts.delete(to));
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (const [hop, count] of counts) {
      const to = this.at(mesh, hop);
      const place = { x: from.x + (to.x - from.x) * 0.3, y: from.y + (to.y - from.y) * 0.3 };
      context.fillStyle = palette.card;
      context.strokeStyle = palette.ink;
      context.lineWidth = 1;
      context.beginPath();
      context.arc(place.x, place.y, 8, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
      context.fillStyle = palette.ink;
      context.fillText(String(count), place.x, place.y + 4);
    }
  }

  /** MDRs are squares with an M, backup MDRs diamonds with a B, others circles. */
  private drawNode(context: CanvasRenderingContext2D, palette: Colours, mesh: Mesh, node: MeshNode, index: number, now: number): void {
    const place = this.at(mesh, index);
    const size = mesh.nodes.length > 60 ? 5 : 8;
    const age = (now - (this.flashes[index] ?? -Infinity)) / FLASH;
    if (age < 1 && !STILL.matches) {
      context.globalAlpha = 0.7 * (1 - age);
      context.strokeStyle = palette.data;
      context.lineWidth = 1.5;
      circle(context, place, size + 2 + age * 9);
      context.globalAlpha = 1;
    }
    const ends = mesh.ends.includes(index);
    context.fillStyle = node.role === "mdr" ? palette.mdr : node.role === "bmdr" ? palette.bmdr : palette.card;
    context.strokeStyle = index === this.chosen ? palette.ink : node.role === "other" || node.role === null ? palette.quiet : context.fillStyle;
    context.lineWidth = index === this.chosen ? 3 : ends ? 2.5 : 1.5;
    shape(context, node, place, size);
    context.fill();
    context.stroke();
    context.textAlign = "center";
    if (size > 6 && (node.role === "mdr" || node.role === "bmdr")) {
      context.font = "bold 10px system-ui, sans-serif";
      context.fillStyle = palette.onNode;
      context.fillText(node.role === "mdr" ? "M" : "B", place.x, place.y + 3.5);
    }
    context.font = `${ends || index === this.chosen ? "bold " : ""}11px system-ui, sans-serif`;
    context.fillStyle = palette.ink;
    context.fillText(node.held ? `${node.name} (held)` : node.name, place.x, place.y - size - 4);
  }

  private pointOf(event: { clientX: number; clientY: number }): Point {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private nearest(point: Point): number | null {
    const { mesh } = this;
    if (mesh === null) {
      return null;
    }
    const distances = mesh.nodes.map((_, index) => {
      const place = this.at(mesh, index);
      return Math.hypot(place.x - point.x, place.y - point.y);
    });
    const least = Math.min(...distances);
    return least <= NEAR ? distances.indexOf(least) : null;
  }

  private touch(event: TouchEvent): void {
    const finger = event.touches[0];
    if (finger !== undefined && this.nearest(this.pointOf(finger)) !== null) {
      event.preventDefault();
    }
  }

  private press(event: PointerEvent): void {
    const point = this.pointOf(event);
    const node = this.nearest(point);
    this.acts.choose(node);
    if (node !== null) {
      event.preventDefault();
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = { node, from: point, at: point, moved: false };
    }
  }

  private drop(): void {
    if (this.drag !== null) {
      this.drag = null;
      this.acts.done();
    }
  }

  private pull(event: PointerEvent): void {
    const point = this.pointOf(event);
    const { drag } = this;
    if (drag === null) {
      this.canvas.style.cursor = this.nearest(point) === null ? "" : "grab";
      return;
    }
    drag.moved ||= Math.hypot(point.x - drag.from.x, point.y - drag.from.y) > TREMBLE;
    if (drag.moved) {
      drag.at = { x: Math.min(Math.max(point.x, 0), this.width), y: Math.min(Math.max(point.y, 0), this.height) };
      this.acts.hold(drag.node, (drag.at.x - this.origin.x) / this.scale, (this.origin.y - drag.at.y) / this.scale);
    }
  }
}

const moved = (point: Point, by: Point): Point => ({ x: point.x + by.x, y: point.y + by.y });

function line(context: CanvasRenderingContext2D, from: Point, to: Point): void {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.stroke();
}

function circle(context: CanvasRenderingContext2D, { x, y }: Point, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

function cross(context: CanvasRenderingContext2D, { x, y }: Point, size: number): void {
  line(context, { x: x - size, y: y - size }, { x: x + size, y: y + size });
  line(context, { x: x + size, y: y - size }, { x: x - size, y: y + size });
}

/** A head at this share of the way. */
function arrow(context: CanvasRenderingContext2D, from: Point, to: Point, share: number): void {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const tip = { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
  context.beginPath();
  context.moveTo(tip.x + 5 * Math.cos(angle), tip.y + 5 * Math.sin(angle));
  context.lineTo(tip.x + 5 * Math.cos(angle + 2.4), tip.y + 5 * Math.sin(angle + 2.4));
  context.lineTo(tip.x + 5 * Math.cos(angle - 2.4), tip.y + 5 * Math.sin(angle - 2.4));
  context.fill();
}

function shape(context: CanvasRenderingContext2D, { role }: MeshNode, { x, y }: Point, size: number): void {
  context.beginPath();
  if (role === "mdr") {
    context.rect(x - size, y - size, 2 * size, 2 * size);
  } else if (role === "bmdr") {
    const wide = size * 1.35;
    context.moveTo(x, y - wide);
    context.lineTo(x + wide, y);
    context.lineTo(x, y + wide);
    context.lineTo(x - wide, y);
    context.closePath();
  } else {
    context.arc(x, y, size - 1, 0, 2 * Math.PI);
  }
}
