/** Curves over a whole run in bounded memory: when it is full, every second sample goes and the interval doubles. */

/** Samples kept at most; a chart has fewer pixels. */
export const CAPACITY = 1024;
const FIRST_INTERVAL = 0.1;
/** Simulated seconds over which a rate is taken. */
const SPAN = 0.5;

export class History {
  /** Times of the samples in simulated seconds, and per curve a value or `null` for each. */
  readonly times: number[] = [];
  readonly curves: (number | null)[][];
  /** Simulated seconds between two samples. */
  interval = FIRST_INTERVAL;

  constructor(count: number) {
    this.curves = Array.from({ length: count }, () => []);
  }

  /** Whether a sample at this time would be kept. */
  due(time: number): boolean {
    const last = this.times.at(-1);
    return last === undefined || time - last >= this.interval;
  }

  /** More values than curves make new curves, empty so far: subflows come late. */
  push(time: number, values: (number | null)[]): void {
    if (!this.due(time)) {
      return;
    }
    if (this.times.length >= CAPACITY) {
      this.halve();
    }
    while (this.curves.length < values.length) {
      this.curves.push(this.times.map(() => null));
    }
    this.times.push(time);
    this.curves.forEach((curve, index) => curve.push(values[index] ?? null));
  }

  private halve(): void {
    for (const samples of [this.times, ...this.curves]) {
      const kept = samples.filter((_, index) => index % 2 === 0);
      samples.splice(0, samples.length, ...kept);
    }
    this.interval *= 2;
  }
}

/** The rate at which a count of bytes has grown lately. A count that falls is another one, of a new connection. */
export class Meter {
  private readonly span: number;
  private seen: { time: number; bytes: number }[] = [{ time: 0, bytes: 0 }];

  /** `span` in simulated seconds. */
  constructor(span = SPAN) {
    this.span = span;
  }

  /** Bit/s over the last half second, or the span, or since the last sample if that is longer ago; `null` before the first. */
  rate(time: number, bytes: number): number | null {
    if (bytes < (this.seen.at(-1)?.bytes ?? 0)) {
      this.seen = [{ time, bytes: 0 }];
    }
    this.seen.push({ time, bytes });
    while (this.seen.length > 2 && (this.seen[1]?.time ?? time) <= time - this.span) {
      this.seen.shift();
    }
    const first = this.seen[0];
    return first === undefined || time <= first.time ? null : (8 * (bytes - first.bytes)) / (time - first.time);
  }
}
