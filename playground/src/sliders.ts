/** The sliders of the paths: rate, delay, queue and loss, and a switch to cut each path. */

import { make, write } from "./dom.ts";
import type { Changeable, Lane, PathDescription } from "./engine.ts";
import * as format from "./format.ts";
import type { Change } from "./protocol.ts";

type Ranged = Exclude<Changeable, "up">;

/** A slider has whole places from 0 to PLACES; each kind of value has its own scale. */
const PLACES = 300;

interface Scale {
  what: Ranged;
  label: string;
  toValue(place: number): number;
  toPlace(value: number): number;
  text(value: number): string;
}

/** Equal steps of the slider are equal ratios of the value. */
function ratios(least: number, most: number): Pick<Scale, "toValue" | "toPlace"> {
  const decades = Math.log(most / least);
  return {
    toValue: (place) => Number((least * Math.exp((place / PLACES) * decades)).toPrecision(3)),
    toPlace: (value) => (Math.log(Math.max(value, least) / least) / decades) * PLACES,
  };
}

/** Small values have more room than large ones, and zero is one of them. */
function powers(most: number, exponent: number): Pick<Scale, "toValue" | "toPlace"> {
  return {
    toValue: (place) => Number((most * (place / PLACES) ** exponent).toPrecision(3)),
    toPlace: (value) => (Math.min(value, most) / most) ** (1 / exponent) * PLACES,
  };
}

const packets = ratios(1, 5000);

const SCALES: Scale[] = [
  { what: "rate", label: "Rate", ...ratios(10e3, 1e9), text: format.rate },
  { what: "delay", label: "Delay, one way", ...powers(1, 2), text: format.duration },
  {
    what: "queue",
    label: "Queue",
    toValue: (place) => Math.round(packets.toValue(place)),
    toPlace: packets.toPlace,
    text: format.packets,
  },
  { what: "loss", label: "Random loss", ...powers(0.5, 3), text: format.share },
];

export class Sliders {
  private readonly cards: HTMLElement;
  private readonly changed: (change: Change) => void;

  constructor(cards: HTMLElement, changed: (change: Change) => void) {
    this.cards = cards;
    this.changed = changed;
  }

  show(paths: PathDescription[], changes: Change[]): void {
    this.cards.replaceChildren(...paths.map((path, index) => this.card(path, index, changes)));
  }

  /** Of a path with several links the first is changed: its name says so. */
  showLinks(lanes: Lane[]): void {
    for (const card of this.cards.querySelectorAll<HTMLElement>(".path")) {
      const several = lanes.some((lane) => String(lane.path) === card.dataset["path"] && lane.link > 0);
      card.querySelector("legend")?.classList.toggle("slowest-link", several);
    }
  }

  private card(path: PathDescription, index: number, changes: Change[]): HTMLElement {
    const set = (what: Changeable): number | undefined =>
      changes.find((change) => change.path === index && change.what === what)?.value;
    const rows = SCALES.map((scale) => this.row(path, index, scale, set(scale.what)));
    const cut = make("input", { type: "checkbox", checked: set("up") === 0 });
    cut.setAttribute("role", "switch");
    cut.addEventListener("change", () => this.changed({ path: index, what: "up", value: cut.checked ? 0 : 1 }));
    const legend = make("legend", {}, path.name);
    const card = make("fieldset", { className: "card path" }, legend, ...rows, make("label", { className: "cut" }, cut, "Cut it"));
    card.dataset["path"] = String(index);
    return card;
  }

  private row(path: PathDescription, index: number, scale: Scale, set: number | undefined): HTMLElement {
    const { what } = scale;
    const begin = set ?? path[what];
    const place = begin === null ? PLACES : Math.round(scale.toPlace(begin));
    const slider = make("input", { type: "range", min: "0", max: String(PLACES), value: String(place) });
    slider.dataset["what"] = what;
    const value = make("span", { className: "value" });
    const tell = (text: string): void => {
      write(value, text);
      slider.setAttribute("aria-valuetext", text);
    };
    tell(begin === null ? "as in the scenario" : scale.text(begin));
    slider.addEventListener("input", () => {
      const next = scale.toValue(Number(slider.value));
      tell(scale.text(next));
      this.changed({ path: index, what, value: next });
    });
    return make("label", { className: "row" }, make("span", {}, scale.label), value, slider);
  }
}
