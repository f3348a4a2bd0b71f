/** Numbers with units, as people read them. */

const PREFIXES: readonly [number, string][] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Three digits are enough to read. */
function digits(value: number): string {
  return value === 0 ? "0" : String(Number(value.toPrecision(3)));
}

function prefixed(value: number, unit: string): string {
  for (const [factor, prefix] of PREFIXES) {
    if (Math.abs(value) >= factor) {
      return `${digits(value / factor)} ${prefix}${unit}`;
    }
  }
  return `${digits(value)} ${unit}`;
}

export const rate = (bitsPerSecond: number): string => prefixed(bitsPerSecond, "bit/s");
export const bytes = (count: number): string => prefixed(count, "B");
/** A share from 0 to 1; below a thousandth of a percent it is none. */
export const share = (part: number): string => `${digits(part < 1e-5 ? 0 : part * 100)} %`;
export const packets = (count: number): string => (count === 1 ? "1 packet" : `${Math.round(count)} packets`);
export const clock = (seconds: number): string => `${seconds.toFixed(3)} s`;

export function duration(seconds: number): string {
  if (seconds >= 1 || seconds === 0) {
    return `${digits(seconds)} s`;
  }
  return seconds >= 0.001 ? `${digits(seconds * 1e3)} ms` : `${digits(seconds * 1e6)} µs`;
}

export const milliseconds = (value: number): string => duration(value / 1e3);

/** A name of the engine, such as CongestionAvoidance, in words. */
export const words = (name: string): string => name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** Any value of a scheduler's view. */
export function any(value: unknown): string {
  if (typeof value === "number") {
    return Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
  }
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  return value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
