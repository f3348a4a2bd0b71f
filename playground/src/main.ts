/** The page: keeps its state, sends it to the worker and to the address, and draws the worker's frames. */

import "./style.css";
import "./runs.css";
import "./text.css";
import "./narrow.css";
import "./mesh.css";
import { anotherPath, withPolicy } from "./additions.ts";
import { Charts } from "./charts.ts";
import { Choice, presetOf } from "./choice.ts";
import { Client } from "./client.ts";
import { byId, radios, within, write } from "./dom.ts";
import type { Description } from "./engine.ts";
import { MeshPanel } from "./meshpanel.ts";
import type { MeshActs } from "./meshview.ts";
import type { Change, NodeAct, Report } from "./protocol.ts";
import { MOST_RUNS } from "./runs.ts";
import { RunViews } from "./runviews.ts";
import { Sliders } from "./sliders.ts";
import { FIRST, fromFragment, toFragment, toSeed, withChange, withPlace, type State } from "./state.ts";
import { Transport } from "./transport.ts";
import { WhyPanel } from "./why.ts";

/** Real milliseconds after the last change until the address has it. */
const WRITE_AFTER = 150;
/** A longer pause between two drawings means that the browser did not draw: the tab was in the background. */
const AWAY = 2000;

class App {
  private readonly client = new Client((report) => this.hear(report));
  private readonly views = new RunViews(byId("runs", HTMLElement));
  private readonly charts = new Charts(within(byId("charts", HTMLElement), ".cards"));
  private readonly why = new WhyPanel();
  private readonly nodes = new MeshPanel((act) => this.act(act));
  private readonly sliders = new Sliders(within(byId("sliders", HTMLElement), ".cards"), (change) => this.change(change));
  private readonly sentence = byId("sentence", HTMLParagraphElement);
  private readonly toml = byId("toml", HTMLTextAreaElement);
  private readonly reset = byId("reset", HTMLButtonElement);
  private readonly hashes = byId("hashes", HTMLElement);
  private readonly choice = new Choice({
    scenario: (name) => this.open(name),
    policies: (policies) => this.load({ ...this.state, policies }, this.text),
    anotherPolicy: (name) => this.attempt(() => this.addPolicy(name)),
    seed: (text) => this.attempt(() => this.load({ ...this.state, seed: toSeed(text) }, this.text)),
  });
  private readonly transport = new Transport({
    pause: (paused) => this.go({ paused }),
    step: () => this.step(),
    again: () => this.load({ ...this.state, paused: false }, this.text),
    speed: (speed) => this.go({ speed, paused: false }),
  });

  /** What runs, and what will run once the worker has made it. */
  private state: State = FIRST;
  private next: State = FIRST;
  private text = "";
  private nextText = "";
  /** What is told once the next scenario is loaded. */
  private warning = "";
  private description: Description | null = null;
  private ended = false;
  private inspected = 0;
  /** Where a node is to be put, at the next frame. */
  private held: Extract<NodeAct, { act: "hold" }> | null = null;
  /** Whether nodes were moved: the trace hash is another. */
  private moved = false;
  private drawn = 0;
  private writing = 0;
  /** The fragment that this page wrote last: no reason to load it. */
  private written = "";
  /** Real milliseconds of the last drawings, for tests. */
  private readonly costs: number[] = [];

  constructor() {
    this.reset.addEventListener("click", () => this.load({ ...this.state, changes: [] }, this.text));
    byId("add-path", HTMLButtonElement).addEventListener("click", () => this.addPath());
    byId("run", HTMLButtonElement).addEventListener("click", () => this.openText(this.toml.value));
    byId("copy", HTMLButtonElement).addEventListener("click", () => this.copy(this.toml.value, "The text is copied."));
    byId("link", HTMLButtonElement).addEventListener("click", () => void this.copyLink());
    window.addEventListener("hashchange", () => location.hash.slice(1) !== this.written && void this.openAddress());
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => void this.drop(event));
    requestAnimationFrame((now) => this.frame(now));
  }

  private say(text: string): void {
    // The same sentence again is told again.
    this.sentence.textContent = "";
    this.sentence.textContent = text;
  }

  private attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
    }
  }

  private async openAddress(): Promise<void> {
    let state = FIRST;
    try {
      state = await fromFragment(location.hash);
    } catch (error) {
      this.warning = error instanceof Error ? error.message : String(error);
      if (this.description !== null) {
        this.say(this.warning);
        return;
      }
    }
    if (location.hash === "" && matchMedia("(prefers-reduced-motion: reduce)").matches) {
      state = { ...state, paused: true };
    }
    this.openState(state);
  }

  private openState(state: State): void {
    const preset = state.scenario === null ? undefined : presetOf(state.scenario);
    const text = state.toml ?? preset?.toml;
    if (text !== undefined) {
      this.load(state, text);
    } else if (state.scenario !== null) {
      this.next = state;
      this.client.send({ do: "scenario", name: state.scenario });
    }
  }

  /** A scenario of the list, from its beginning and as it is. */
  private open(name: string): void {
    this.openState({ ...this.state, scenario: name, toml: null, policies: [], changes: [], nodes: [], paused: false });
  }

  private openText(toml: string): void {
    this.load({ ...this.state, scenario: null, toml, policies: [], changes: [], nodes: [] }, toml);
  }

  /** It takes the last column if there are three. */
  private addPolicy(name: string): void {
    const toml = withPolicy(this.text, name);
    const policies = [...this.state.policies.slice(0, MOST_RUNS - 1), name];
    this.load({ ...this.state, scenario: null, toml, policies, paused: false }, toml);
  }

  private addPath(): void {
    const toml = this.text.trimEnd() + "\n" + anotherPath((this.description?.paths.length ?? 0) + 1);
    this.load({ ...this.state, scenario: null, toml }, toml);
  }

  private load(state: State, toml: string): void {
    this.next = state;
    this.nextText = toml;
    const wanted = state.policies.length > 0 ? state.policies : ((state.scenario && presetOf(state.scenario)?.policies) || []);
    // Only a link or a hand may ask for what the scenario does not have: of a preset, what it has is taken.
    this.client.load({ toml, policies: wanted, lenient: state.policies.length === 0, seed: state.seed, changes: state.changes, nodes: state.nodes });
  }

  private go(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    if (this.ended && !this.state.paused) {
      this.load(this.state, this.text);
    }
    this.showSpeed();
    this.keep();
  }

  private showSpeed(): void {
    this.transport.show(this.state.paused, this.state.speed);
    this.client.send({ do: "speed", speed: this.state.paused ? 0 : this.state.speed });
  }

  private step(): void {
    this.go({ paused: true });
    this.client.send({ do: "step" });
  }

  private change(change: Change): void {
    this.state = { ...this.state, changes: withChange(this.state.changes, change) };
    this.reset.disabled = false;
    this.client.send({ do: "change", ...change });
    this.keep();
  }

  /** A hand moves faster than the display: a node is put somewhere once per frame. */
  private act(act: NodeAct): void {
    if (act.act === "hold") {
      this.moved = true;
      const { node, x, y } = act;
      this.state = { ...this.state, nodes: withPlace(this.state.nodes, { node, x, y }) };
      this.keep();
      if (this.held?.node !== act.node) {
        this.put();
      }
      this.held = act;
      return;
    }
    this.put();
    if (act.act === "choose") {
      this.views.choose(act.node);
    } else if (act.act === "release") {
      this.state = { ...this.state, nodes: this.state.nodes.filter(({ node }) => node !== act.node) };
      this.keep();
    }
    this.client.send({ do: "node", act });
  }

  private put(): void {
    if (this.held !== null) {
      this.client.send({ do: "node", act: this.held });
      this.held = null;
    }
  }

  private readonly hands: MeshActs = {
    choose: (node) => this.nodes.choose(node),
    hold: (node, x, y) => this.act({ act: "hold", node, x, y }),
    done: () => this.nodes.focus(),
  };

  private hear(report: Report): void {
    switch (report.tell) {
      case "ready":
        this.choice.fill(report.scenarios);
        byId("fake", HTMLParagraphElement).hidden = !report.fake;
        if (this.description === null) {
          void this.openAddress();
        } else {
          this.load({ ...this.state, paused: true }, this.text);
        }
        break;
      case "text":
        this.load(this.next, report.toml + (presetOf(report.name)?.more ?? ""));
        break;
      case "loaded":
        this.loaded(report.description, report.policies);
        break;
      case "failed":
        this.failed(report.sentence);
        break;
      case "frame":
        this.take(report);
        break;
      case "hashes":
        this.showHashes(report.hashes);
        break;
      case "sentence":
        this.say(report.sentence);
        break;
      case "broken":
        this.say(`The engine has failed and begins anew: ${report.sentence}`);
        break;
      case "idle":
        break;
    }
  }

  /** What ran goes on. If nothing did, a link was wrong: the first scenario runs, once. */
  private failed(sentence: string): void {
    this.say(sentence);
    if (this.description === null && this.warning === "") {
      this.warning = sentence;
      this.openState(FIRST);
    } else {
      this.showPlace(sentence);
    }
  }

  /** Selects the line of the text that a sentence names. */
  private showPlace(sentence: string): void {
    const line = Number(/^scenario\.toml:(\d+):/.exec(sentence)?.[1]);
    if (this.toml.value === this.nextText && line > 0) {
      const lines = this.toml.value.split("\n");
      const begin = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
      this.toml.setSelectionRange(begin, begin + (lines[line - 1]?.length ?? 0));
    }
  }

  private loaded(description: Description, policies: string[]): void {
    this.state = { ...this.next, policies };
    this.text = this.nextText;
    this.description = description;
    this.ended = false;
    const { scenario, seed, changes } = this.state;
    const labels = policies.map((name) => description.policies.find((policy) => policy.name === name)?.label ?? name);
    const { mesh } = description;
    const paths = mesh?.lanes ?? description.paths.map(({ name }) => name);
    this.moved = this.state.nodes.length > 0;
    this.held = null;
    this.toml.value = this.text;
    this.say(this.warning);
    this.warning = "";
    this.hashes.hidden = true;
    this.reset.disabled = changes.length === 0;
    this.choice.show(scenario, seed, description, policies);
    this.views.begin(labels, paths, mesh === null ? null : this.hands);
    this.charts.begin(labels, paths, { connection: paths.length > 0, mesh: mesh !== null });
    this.nodes.begin(mesh !== null);
    byId("sliders", HTMLElement).hidden = mesh !== null;
    byId("why", HTMLElement).hidden = paths.length === 0;
    this.sliders.show(description.paths, changes);
    this.why.clear();
    this.inspected = 0;
    // What it chooses is seen there.
    within(byId(mesh === null ? "why" : "mesh", HTMLElement), ".bar").append(byId("inspected", HTMLFieldSetElement));
    radios(byId("inspected", HTMLFieldSetElement), "inspected", labels, 0, (run) => this.inspect(run));
    this.client.send({ do: "inspect", run: 0 });
    this.showSpeed();
    this.keep();
  }

  /** Those of the policy that is looked at. */
  private showNodes(): void {
    const mesh = this.views.meshOf(this.inspected);
    if (mesh !== null) {
      this.nodes.show(mesh);
    }
  }

  private inspect(run: number): void {
    this.inspected = run;
    this.charts.inspect(run);
    this.client.send({ do: "inspect", run });
  }

  private take(report: Extract<Report, { tell: "frame" }>): void {
    const now = performance.now();
    this.ended = report.ended;
    document.documentElement.dataset["engineBytes"] = String(report.memory);
    this.views.take(report.runs);
    const lanes = report.runs.flatMap((run) => run.lanes ?? []);
    if (lanes.length > 0) {
      this.sliders.showLinks(lanes);
    }
    const frames = report.runs.map(({ frame }) => frame);
    this.charts.add(report.time, frames);
    this.charts.addMeshes(report.runs.map(({ mesh }) => mesh));
    this.showNodes();
    this.transport.tell(report.time, report.duration, report.ended, now);
    if (report.why !== null) {
      const { run } = report.why;
      this.why.show(report.why, (subflow) => this.views.nameOf(run, subflow));
    }
    if (report.ended) {
      this.charts.draw();
    }
  }

  private showHashes(hashes: string[]): void {
    const { seed, changes, policies } = this.state;
    const same = changes.length === 0 && !this.moved ? `as the command gives it for this text and seed ${seed}` : this.moved ? "with nodes that were moved" : "with the changed paths";
    const texts = hashes.map((hash, index) => `${policies[index] ?? ""} ${hash}`);
    write(this.hashes, `Trace hash at the end, ${same}: ${texts.join(", ")}.`);
    this.hashes.hidden = false;
  }

  private frame(now: number): void {
    const elapsed = now - this.drawn;
    const away = this.drawn > 0 && elapsed > AWAY;
    this.drawn = now;
    requestAnimationFrame((next) => this.frame(next));
    if (this.description === null) {
      return;
    }
    this.put();
    const runs = !this.state.paused && !this.ended;
    if (runs && away) {
      this.say("It stood still while the page was in the background, and goes on now.");
    }
    if (runs) {
      this.client.tick(elapsed / 1000);
    }
    const begin = performance.now();
    this.views.draw(now);
    this.charts.drawIfDue(now);
    this.nodes.writeIfDue(now);
    this.measure(performance.now() - begin);
  }

  private measure(cost: number): void {
    this.costs.push(cost);
    if (this.costs.length === 60) {
      const sorted = this.costs.splice(0).toSorted((one, other) => one - other);
      const { dataset } = document.documentElement;
      dataset["drawMedian"] = String(sorted[30]);
      dataset["drawMost"] = String(sorted[59]);
    }
  }

  /** Writes the state into the address, when it has been the same for a while. */
  private keep(): void {
    clearTimeout(this.writing);
    this.writing = window.setTimeout(() => void this.writeAddress(), WRITE_AFTER);
  }

  private async writeAddress(): Promise<void> {
    this.written = await toFragment(this.state);
    history.replaceState(null, "", `#${this.written}`);
  }

  private async copyLink(): Promise<void> {
    await this.writeAddress();
    this.copy(location.href, "The link is copied: it has all but the time.");
  }

  private copy(text: string, done: string): void {
    navigator.clipboard.writeText(text).then(
      () => this.say(done),
      () => this.say("The browser does not let this page copy: copy by hand."),
    );
  }

  private async drop(event: DragEvent): Promise<void> {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    const text = file === undefined ? event.dataTransfer?.getData("text/plain") : await file.text();
    if (text !== undefined && text !== "") {
      this.openText(text);
    }
  }
}

new App();
