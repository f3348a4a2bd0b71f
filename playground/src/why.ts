/** The decisions of one run's scheduler, what it saw, and what the path manager did. */

import { byId, make, write } from "./dom.ts";
import type { Action, Decision, SubflowView } from "./engine.ts";
import * as format from "./format.ts";
import type { Why } from "./protocol.ts";

const TEXTS: Record<string, (value: number) => string> = {
  srtt: format.milliseconds,
  cwnd: format.bytes,
  in_flight: format.bytes,
  queued: format.bytes,
  window_left: format.bytes,
  loss_rate: format.share,
};

export class WhyPanel {
  private readonly list = byId("decisions", HTMLDivElement);
  private readonly sentence = byId("decision", HTMLParagraphElement);
  private readonly table = byId("view", HTMLTableElement);
  private readonly manager = byId("actions", HTMLOListElement);
  private readonly newest = byId("newest", HTMLButtonElement);
  private pinned: Decision | null = null;
  private last: Why | null = null;
  /** The name of a subflow's path. */
  private nameOf: (subflow: number) => string = String;

  private touched = -Infinity;

  constructor() {
    this.newest.addEventListener("click", () => this.pin(null));
    this.list.addEventListener("pointerdown", () => (this.touched = performance.now()));
  }

  clear(): void {
    this.last = null;
    this.pinned = null;
    this.newest.disabled = true;
    this.list.replaceChildren();
    this.table.replaceChildren();
    this.manager.replaceChildren();
    write(this.sentence, "No decision yet.");
  }

  show(why: Why, nameOf: (subflow: number) => string): void {
    if (this.last !== null && this.last.run !== why.run) {
      this.pinned = null;
      this.newest.disabled = true;
    }
    this.last = why;
    this.nameOf = nameOf;
    this.showDecisions(why.decisions, this.held());
    this.showActions(why.actions);
  }

  private pin(decision: Decision | null): void {
    this.pinned = decision;
    this.newest.disabled = decision === null;
    if (this.last !== null) {
      this.showDecisions(this.last.decisions, false);
    }
  }

  /** Somebody points at the list, or is in it: a row must not go from under the hand. */
  private held(): boolean {
    const near = this.list.matches(":hover") || this.list.contains(document.activeElement);
    return this.list.childElementCount > 0 && (near || performance.now() - this.touched < 1000);
  }

  private showDecisions(decisions: Decision[], held: boolean): void {
    const shown = this.pinned ?? decisions.at(-1);
    if (shown === undefined) {
      write(this.sentence, "No decision yet.");
      this.list.replaceChildren();
      return;
    }
    if (!held) {
      const focused = this.list.contains(document.activeElement) && document.activeElement !== this.list;
      this.list.replaceChildren(...decisions.toReversed().map((decision) => this.row(decision, same(decision, shown))));
      if (focused) {
        this.list.querySelector<HTMLButtonElement>("[aria-pressed=true]")?.focus({ preventScroll: true });
      }
    }
    write(this.sentence, this.tell(shown));
    this.showView(shown);
  }

  private row(decision: Decision, pressed: boolean): HTMLElement {
    const choice = decision.choice === null ? "waits" : this.nameOf(decision.choice);
    const button = make(
      "button",
      { type: "button", className: decision.choice === null ? "waits" : decision.kind },
      make("span", {}, format.clock(decision.time)),
      make("span", {}, decision.kind === "new" ? "new data" : "reinjection"),
      make("span", {}, choice),
    );
    button.setAttribute("aria-pressed", String(pressed));
    button.addEventListener("click", () => this.pin(decision));
    return button;
  }

  private tell({ time, kind, length, data_seq, choice }: Decision): string {
    const what = kind === "new" ? "new data" : "data again";
    const begin = data_seq === null ? "" : ` from data sequence ${data_seq.toLocaleString("en")}`;
    const range = `${length.toLocaleString("en")} B of ${what}${begin}`;
    const at = `At ${format.clock(time)} the scheduler `;
    if (choice !== null) {
      return `${at}sent ${range} on ${this.nameOf(choice)}.`;
    }
    return data_seq === null ? `${at}waited.` : `${at}waited, with ${range} to send.`;
  }

  private showView({ view, choice }: Decision): void {
    const keys = [...new Set(view.flatMap((subflow) => Object.keys(subflow)))].filter((key) => key !== "id");
    const head = make("tr", {}, ...["path", ...keys].map((key) => make("th", { scope: "col" }, key.replaceAll("_", " "))));
    const rows = view.map((subflow) => {
      const row = make("tr", {}, make("th", { scope: "row" }, this.nameOf(subflow.id)), ...keys.map((key) => cell(subflow, key)));
      row.classList.toggle("chosen", subflow.id === choice);
      return row;
    });
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }

  private showActions(actions: Action[]): void {
    const rows = actions.toReversed().map(({ time, text }) => make("li", {}, make("b", {}, format.clock(time)), ` ${text}`));
    this.manager.replaceChildren(...(rows.length > 0 ? rows : [make("li", {}, "Nothing yet.")]));
  }
}

function same(one: Decision, other: Decision): boolean {
  return one.time === other.time && one.data_seq === other.data_seq && one.choice === other.choice;
}

function cell(subflow: SubflowView, key: string): HTMLElement {
  const value = subflow[key];
  const known = TEXTS[key];
  return make("td", {}, known !== undefined && typeof value === "number" ? known(value) : format.any(value));
}
