/** Draws one run: a lane per path with its links in a row, queues, packets, acknowledgements and losses. */

import { colours, type Colours } from "./colours.ts";
import { KIND, type Frame, type Lane, type LaneFrame } from "./engine.ts";
import * as format from "./format.ts";
import { STILL } from "./still.ts";

const NUMBERS_PER_PACKET = 4;
/** Real milliseconds for which a loss is seen. */
const FLASH = 450;
const MARGIN = 10;
/** A link without delay needs room for its queue, too. */
const LEAST_SHARE = 0.22;

interface Place {
  x: number;
  width: number;
  y: number;
  /** Of the queue's bar, at the sender's end. */
  queue: number;
  backward: boolean;
}

interface Flash {
  lane: number;
  at: number;
  count: number;
  /** Whether the queue did it. */
  queue: boolean;
}

export class LaneView {
  private readonly canvas: HTMLCanvasElement;
  private lanes: Lane[] = [];
  private names: string[] = [];
  private places: Place[] = [];
  /** By lane: packets that the queue dropped so far, and that were lost in other ways. */
  private dropped: [number, number][] = [];
  private flashes: Flash[] = [];
  private width = 0;
  private height = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  /** `names` are those of all paths of the scenario: rows stay comparable where a policy uses few of them. */
  setLanes(lanes: Lane[], names: string[]): void {
    if (lanes.length !== this.lanes.length) {
      this.dropped = [];
    }
    this.lanes = lanes;
    this.names = names;
    this.canvas.style.height = `${this.rows() * this.rowHeight()}px`;
    this.resize();
  }

  /** What can be said of the picture to those who do not see it. */
  describe(frame: Frame): string {
    const paths = this.lanes.flatMap((lane, index) => {
      const seen = frame.lanes[index];
      const state = lane.up ? `${seen?.queue_packets ?? 0} in the queue, ${seen?.dropped ?? 0} lost` : "cut";
      return lane.direction === "forward" && this.first(index) ? [`${lane.name}: ${state}`] : [];
    });
    return paths.join("; ");
  }

  draw(frame: Frame, packets: Float32Array, now: number): void {
    const context = this.canvas.getContext("2d");
    if (context === null || this.width === 0) {
      return;
    }
    const palette = colours();
    const scale = this.canvas.width / this.width;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "12px system-ui, sans-serif";
    this.drawUnused(context, palette);
    this.lanes.forEach((lane, index) => this.drawLane(context, palette, lane, index, frame.lanes[index]));
    // With stillness, bars alone.
    if (!STILL.matches) {
      this.drawPackets(context, palette, packets);
    }
    this.drawFlashes(context, palette, frame, now);
  }

  private rows(): number {
    return this.names.length + (this.lanes.some((lane) => lane.path === null) ? 1 : 0);
  }

  private row(lane: Lane): number {
    return lane.path ?? this.names.length;
  }

  private rowHeight(): number {
    return this.rows() > 6 ? 46 : 66;
  }

  /** Whether this is the first lane of its path and direction. */
  private first(index: number): boolean {
    const lane = this.lanes[index];
    return this.lanes.findIndex((other) => other.path === lane?.path && other.direction === lane?.direction) === index;
  }

  private resize(): void {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    // A new size clears the picture.
    const size = [Math.round(this.width * scale), Math.round(this.height * scale)] as const;
    if (this.canvas.width !== size[0] || this.canvas.height !== size[1]) {
      [this.canvas.width, this.canvas.height] = size;
    }
    this.places = this.lanes.map((lane, index) => this.place(lane, index));
  }

  /** Links stand in a row, the sender at the left; a longer delay has more room. */
  private place(lane: Lane, index: number): Place {
    const row = this.lanes.flatMap((other, at) => (other.path === lane.path && other.direction === lane.direction ? [at] : []));
    const longest = Math.max(1e-9, ...row.map((at) => this.lanes[at]?.delay ?? 0));
    const weights = row.map((at) => LEAST_SHARE + Math.sqrt((this.lanes[at]?.delay ?? 0) / longest));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    const room = this.width - 2 * MARGIN;
    const position = row.indexOf(index);
    const before = weights.slice(0, position).reduce((total, weight) => total + weight, 0);
    const backward = lane.direction === "backward";
    const width = ((weights[position] ?? 0) / sum) * room;
    const height = this.rowHeight();
    return {
      x: MARGIN + (before / sum) * room,
      width,
      y: this.row(lane) * height + (backward ? height - 10 : height - 26),
      queue: Math.min(64, width * 0.4),
      backward,
    };
  }

  private drawUnused(context: CanvasRenderingContext2D, palette: Colours): void {
    context.fillStyle = palette.quiet;
    context.textAlign = "left";
    this.names.forEach((name, path) => {
      if (!this.lanes.some((lane) => lane.path === path)) {
        context.fillText(`${name}: not used`, MARGIN, (path + 1) * this.rowHeight() - 40);
      }
    });
  }

  private drawLane(context: CanvasRenderingContext2D, palette: Colours, lane: Lane, index: number, seen: LaneFrame | undefined): void {
    const place = this.places[index];
    if (place === undefined) {
      return;
    }
    const up = lane.up && (seen?.up ?? true);
    const { x, width, y, queue, backward } = place;
    context.strokeStyle = palette.wire;
    context.lineWidth = backward ? 1 : 2;
    context.setLineDash(up ? [] : [3, 5]);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + width, y);
    context.stroke();
    context.setLineDash([]);
    this.drawQueue(context, palette, lane, seen, place, up);
    // Nodes between the links.
    context.fillStyle = palette.wire;
    context.fillRect(backward ? x + width - 1 : x - 1, y - 5, 2, 10);
    if (!backward && this.first(index)) {
      this.drawName(context, palette, index, up, queue);
    }
  }

  private drawQueue(
    context: CanvasRenderingContext2D,
    palette: Colours,
    lane: Lane,
    seen: LaneFrame | undefined,
    { x, width, y, queue, backward }: Place,
    up: boolean,
  ): void {
    const waiting = seen?.queue_packets ?? 0;
    const full = Math.min(1, waiting / Math.max(1, lane.queue ?? 100));
    const height = backward ? 5 : 10;
    const left = backward ? x + width - queue : x;
    context.fillStyle = palette.line;
    context.fillRect(left, y - height / 2, queue, height);
    context.globalAlpha = up ? 1 : 0.35;
    context.fillStyle = full > 0.95 ? palette.lost : palette.queue;
    // What leaves next stands at the wire's end.
    const filled = full * queue;
    context.fillRect(backward ? left : left + queue - filled, y - height / 2, filled, height);
    context.globalAlpha = 1;
  }

  private drawName(context: CanvasRenderingContext2D, palette: Colours, index: number, up: boolean, queue: number): void {
    const lane = this.lanes[index];
    const place = this.places[index];
    if (lane === undefined || place === undefined) {
      return;
    }
    const row = this.lanes.filter((other) => other.path === lane.path && other.direction === "forward");
    const rates = row.flatMap((other) => (other.rate === null ? [] : [other.rate]));
    const delay = row.reduce((sum, other) => sum + other.delay, 0);
    const slowest = rates.length > 0 ? `${format.rate(Math.min(...rates))}, ` : "";
    const y = place.y - 14;
    context.fillStyle = up ? palette.ink : palette.quiet;
    context.textAlign = "left";
    context.fillText(lane.name, MARGIN, y, Math.max(queue, this.width * 0.4));
    context.fillStyle = up ? palette.quiet : palette.lost;
    context.textAlign = "right";
    context.fillText(up ? `${slowest}${format.duration(delay)}` : "cut", this.width - MARGIN, y, this.width * 0.5);
  }

  private drawPackets(context: CanvasRenderingContext2D, palette: Colours, packets: Float32Array): void {
    for (let at = 0; at + NUMBERS_PER_PACKET <= packets.length; at += NUMBERS_PER_PACKET) {
      const place = this.places[packets[at] ?? -1];
      if (place === undefined) {
        continue;
      }
      const way = (place.width - place.queue) * (packets[at + 1] ?? 0);
      const x = place.backward ? place.x + place.width - place.queue - way : place.x + place.queue + way;
      drawPacket(context, palette, x, place.y, packets[at + 2] ?? 0, packets[at + 3] ?? 0);
    }
  }

  private drawFlashes(context: CanvasRenderingContext2D, palette: Colours, frame: Frame, now: number): void {
    frame.lanes.forEach(({ dropped, refused }, lane) => {
      const counts: [number, number] = [refused, dropped - refused];
      const before = this.dropped[lane] ?? counts;
      this.dropped[lane] = counts;
      counts.forEach((count, way) => this.flash(lane, way === 0, count - (before[way] ?? 0), now));
    });
    this.flashes = this.flashes.filter((flash) => now - flash.at < FLASH);
    for (const { lane, at, count, queue } of this.flashes) {
      const place = this.places[lane];
      if (place !== undefined) {
        drawLoss(context, palette, place, (now - at) / FLASH, count, queue);
      }
    }
  }

  private flash(lane: number, queue: boolean, count: number, at: number): void {
    if (count > 0) {
      this.flashes = this.flashes.filter((flash) => flash.lane !== lane || flash.queue !== queue);
      this.flashes.push({ lane, at, count, queue });
    }
  }
}

function drawPacket(context: CanvasRenderingContext2D, palette: Colours, x: number, y: number, bytes: number, kind: number): void {
  if (kind === KIND.acknowledgement) {
    context.fillStyle = palette.acknowledgement;
    context.fillRect(x - 1, y - 2, 2, 4);
    return;
  }
  const width = 3 + Math.min(3, bytes / 500);
  if (kind === KIND.other) {
    context.strokeStyle = palette.other;
    context.lineWidth = 1;
    context.strokeRect(x - width / 2 + 0.5, y - 3.5, width - 1, 7);
    return;
  }
  context.fillStyle = kind === KIND.again ? palette.again : palette.data;
  context.fillRect(x - width / 2, y - 4, width, 8);
}

/**
 * A cross that fades; more losses at once make it larger. What the queue drops has its cross where packets enter it; what is lost on
 * the link, where they leave it: there the lab decides.
 */
function drawLoss(context: CanvasRenderingContext2D, palette: Colours, place: Place, age: number, count: number, queue: boolean): void {
  const aside = queue ? -4 : place.queue + 6;
  const x = place.backward ? place.x + place.width - aside : place.x + aside;
  const y = place.y - (STILL.matches ? 0 : age * 8);
  const size = Math.min(6, 3 + count / 4);
  context.globalAlpha = 1 - age;
  context.strokeStyle = palette.lost;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
  context.globalAlpha = 1;
}
