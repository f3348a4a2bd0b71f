/** Colours of the style sheet for what is drawn: they change with the light. */

export interface Colours {
  ink: string;
  quiet: string;
  line: string;
  wire: string;
  data: string;
  again: string;
  acknowledgement: string;
  other: string;
  lost: string;
  queue: string;
  card: string;
  mdr: string;
  bmdr: string;
  onNode: string;
  runs: string[];
  paths: string[];
}

const DARK = matchMedia("(prefers-color-scheme: dark)");

function read(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    quiet: of("quiet"),
    line: of("line"),
    wire: of("wire"),
    data: of("data"),
    again: of("again"),
    acknowledgement: of("acknowledgement"),
    other: of("other"),
    lost: of("lost"),
    queue: of("queue"),
    card: of("card"),
    mdr: of("mdr"),
    bmdr: of("bmdr"),
    onNode: of("on-accent"),
    runs: [of("run-1"), of("run-2"), of("run-3")],
    paths: [of("path-1"), of("path-2"), of("path-3"), of("path-4"), of("path-5")],
  };
}

let known: Colours | null = null;

export function colours(): Colours {
  known ??= read();
  return known;
}

/** Calls back when the colours have changed. */
export function onColours(changed: () => void): void {
  DARK.addEventListener("change", () => {
    known = null;
    changed();
  });
}

/** The colour of a run or a path; they repeat. */
export function nth(list: string[], index: number): string {
  return list[index % list.length] ?? "gray";
}
