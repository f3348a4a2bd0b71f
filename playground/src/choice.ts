/** The choice of scenario, policies and seed, and what to look at. */

import { byId, make, within, write } from "./dom.ts";
import type { Description, ScenarioName } from "./engine.ts";
import { PRESETS, type Preset } from "./presets.ts";
import { MOST_RUNS } from "./runs.ts";

export interface Choices {
  scenario(name: string): void;
  policies(names: string[]): void;
  anotherPolicy(name: string): void;
  seed(text: string): void;
}

/** The value of the list for somebody's own text. */
const OWN = "";

export class Choice {
  private readonly list = byId("scenario", HTMLSelectElement);
  private readonly boxes = byId("policies", HTMLFieldSetElement);
  private readonly seed = byId("seed", HTMLInputElement);
  private readonly title = byId("title", HTMLHeadingElement);
  private readonly look = byId("look", HTMLOListElement);
  private readonly chosen: Choices;

  constructor(chosen: Choices) {
    this.chosen = chosen;
    this.list.addEventListener("change", () => {
      if (this.list.value !== OWN) {
        chosen.scenario(this.list.value);
      }
    });
    const other = byId("policy", HTMLInputElement);
    byId("other", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      if (other.value.trim() !== "") {
        chosen.anotherPolicy(other.value.trim());
      }
    });
    this.seed.addEventListener("change", () => chosen.seed(this.seed.value));
  }

  /** Presets come first, in their order, then the other scenarios of the engine. */
  fill(scenarios: ScenarioName[]): void {
    const known = PRESETS.flatMap(({ name, toml }) => {
      const title = toml === undefined ? scenarios.find((scenario) => scenario.name === name)?.title : titleOf(toml);
      return title === undefined ? [] : [make("option", { value: name }, title)];
    });
    const others = scenarios
      .filter(({ name }) => presetOf(name) === undefined)
      .map(({ name, title }) => make("option", { value: name }, title));
    const group = make("optgroup", { label: "More of the lab" }, ...others);
    this.list.replaceChildren(...known, ...(others.length > 0 ? [group] : []), make("option", { value: OWN, hidden: true }, "Your own text"));
  }

  show(scenario: string | null, seed: bigint, description: Description, policies: string[]): void {
    this.list.value = scenario ?? OWN;
    this.seed.value = seed.toString();
    write(this.title, description.title);
    const sentences = (scenario === null ? undefined : presetOf(scenario)?.look) ?? [description.description];
    this.look.replaceChildren(...sentences.filter((text) => text !== "").map((text) => make("li", {}, text)));
    this.showPolicies(description, policies);
  }

  private showPolicies(description: Description, policies: string[]): void {
    const legend = within(this.boxes, "legend");
    const boxes = description.policies.map(({ name, label }) => {
      const input = make("input", { type: "checkbox", value: name, checked: policies.includes(name) });
      input.disabled = !input.checked && policies.length >= MOST_RUNS;
      input.addEventListener("change", () => this.choosePolicies(policies, input));
      return make("label", {}, input, make("span", {}, label));
    });
    this.boxes.replaceChildren(legend, ...boxes);
  }

  /** A new one comes last: the others keep their colours. The last one stays. */
  private choosePolicies(before: string[], { value, checked }: HTMLInputElement): void {
    const after = checked ? [...before, value] : before.filter((name) => name !== value);
    this.chosen.policies(after.length > 0 ? after : before);
  }
}

export function presetOf(name: string): Preset | undefined {
  return PRESETS.find((preset) => preset.name === name);
}

function titleOf(toml: string): string {
  return /^title = "(.*)"$/m.exec(toml)?.[1] ?? "";
}
