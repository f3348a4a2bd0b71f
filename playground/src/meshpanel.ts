/** The nodes of an ad-hoc network as text: which is chosen, its links and next hops, the ways; and what moves it by keyboard. */

import { byId, make, within, write } from "./dom.ts";
import type { Mesh, MeshLink, Role, Way } from "./engine.ts";
import * as format from "./format.ts";
import type { NodeAct } from "./protocol.ts";

/** Real milliseconds between two writings of text. */
const EVERY = 400;
/** Share of the range by which an arrow moves a node. */
const STEP = 0.05;

const ROLES: Record<NonNullable<Role>, string> = { mdr: "MDR", bmdr: "backup MDR", other: "other" };
const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

export class MeshPanel {
  private readonly section = byId("mesh", HTMLElement);
  private readonly node = byId("node", HTMLSelectElement);
  private readonly handle = byId("handle", HTMLButtonElement);
  private readonly letGo = byId("let-go", HTMLButtonElement);
  private readonly letAllGo = byId("let-all-go", HTMLButtonElement);
  private readonly ends = byId("ends", HTMLFieldSetElement);
  private readonly from = byId("from", HTMLSelectElement);
  /** The ends that were chosen last, until the worker has them: frames that are older do not undo a choice. */
  private asked: { from: number; to: number; until: number } | null = null;
  private readonly to = byId("to", HTMLSelectElement);
  private readonly about = byId("about-node", HTMLParagraphElement);
  private readonly ways = byId("ways", HTMLUListElement);
  private readonly links = byId("links", HTMLTableElement);
  private readonly all = byId("nodes", HTMLTableElement);
  private readonly act: (act: NodeAct) => void;
  private mesh: Mesh | null = null;
  private names = "";
  private written = -Infinity;
  /** Where the arrows have put the chosen node, until the engine tells. */
  private put: { x: number; y: number; until: number } | null = null;
  chosen: number | null = null;

  constructor(act: (act: NodeAct) => void) {
    this.act = act;
    this.node.addEventListener("change", () => this.choose(this.node.value === "" ? null : Number(this.node.value)));
    this.handle.addEventListener("keydown", (event) => this.press(event));
    this.letGo.addEventListener("click", () => this.chosen !== null && this.act({ act: "release", node: this.chosen }));
    this.letAllGo.addEventListener("click", () => this.releaseAll());
    for (const select of [this.from, this.to]) {
      select.addEventListener("change", () => {
        const [from, to] = [Number(this.from.value), Number(this.to.value)];
        this.asked = { from, to, until: performance.now() + 3000 };
        this.act({ act: "ends", from, to });
      });
    }
  }

  begin(shown: boolean): void {
    this.section.hidden = !shown;
    this.mesh = null;
    this.names = "";
    this.written = -Infinity;
    this.chosen = null;
  }

  choose(node: number | null): void {
    this.chosen = node;
    this.put = null;
    this.written = -Infinity;
    this.handle.disabled = node === null;
    this.act({ act: "choose", node });
  }

  /** After a node was dragged or chosen in the picture: the arrows move it. */
  focus(): void {
    this.handle.focus({ preventScroll: true });
  }

  show(mesh: Mesh): void {
    this.mesh = mesh;
    const names = mesh.nodes.map(({ name }) => name).join("\n");
    if (names !== this.names) {
      this.names = names;
      this.fill(mesh);
    }
  }

  writeIfDue(now: number): void {
    const { mesh } = this;
    if (mesh === null || now - this.written < EVERY) {
      return;
    }
    this.written = now;
    this.writeChosen(mesh);
    this.writeWays(mesh);
    this.writeLinks(mesh);
    this.writeNodes(mesh);
  }

  private fill(mesh: Mesh): void {
    const options = (): HTMLOptionElement[] => mesh.nodes.map(({ name }, index) => make("option", { value: String(index) }, name));
    this.node.replaceChildren(make("option", { value: "" }, "none"), ...options());
    this.from.replaceChildren(...options());
    this.to.replaceChildren(...options());
    this.node.value = this.chosen === null ? "" : String(this.chosen);
    // Lanes have ends of their own.
    this.ends.hidden = mesh.ways.every(({ path }) => path !== null);
  }

  private press(event: KeyboardEvent): void {
    const step = ARROWS[event.key];
    const { mesh, chosen } = this;
    const node = chosen === null ? undefined : mesh?.nodes[chosen];
    if (step === undefined || mesh === null || chosen === null || node === undefined) {
      return;
    }
    event.preventDefault();
    const length = mesh.range * STEP * (event.shiftKey ? 5 : 1);
    const now = performance.now();
    const from = this.put !== null && now < this.put.until ? this.put : node;
    const [left, bottom, right, top] = mesh.area;
    const x = Math.min(Math.max(from.x + step[0] * length, left), right);
    const y = Math.min(Math.max(from.y + step[1] * length, bottom), top);
    this.put = { x, y, until: now + 500 };
    this.act({ act: "hold", node: chosen, x, y });
    this.written = -Infinity;
  }

  private releaseAll(): void {
    this.mesh?.nodes.forEach(({ held }, node) => held && this.act({ act: "release", node }));
    this.put = null;
  }

  private writeChosen(mesh: Mesh): void {
    const node = this.chosen === null ? undefined : mesh.nodes[this.chosen];
    const value = this.chosen === null ? "" : String(this.chosen);
    if (this.node.value !== value) {
      this.node.value = value;
    }
    this.handle.disabled = node === undefined;
    this.letGo.disabled = node?.held !== true;
    this.letAllGo.disabled = !mesh.nodes.some(({ held }) => held);
    write(this.handle, node === undefined ? "Move it with the arrow keys" : `Move ${node.name} with the arrow keys`);
    const state = node === undefined ? "" : `${roleOf(node.role)}, at ${placeOf(node)}${node.held ? ", held" : ""}; ${format.packets(node.waiting)} waiting at its radios.`;
    write(this.about, node === undefined ? "Choose a node here or in the picture. Drag it, or move it with the arrow keys: it stays where it is put." : `${node.name}: ${state}`);
    const { asked } = this;
    if (asked !== null && performance.now() < asked.until && (asked.from !== mesh.ends[0] || asked.to !== mesh.ends[1])) {
      return;
    }
    this.asked = null;
    for (const [select, end] of [[this.from, mesh.ends[0]], [this.to, mesh.ends[1]]] as const) {
      if (document.activeElement !== select && select.value !== String(end)) {
        select.value = String(end);
      }
    }
  }

  private writeWays(mesh: Mesh): void {
    const [from, to] = mesh.ends.map((end) => mesh.nodes[end]?.name ?? "");
    const texts = mesh.ways.map((way) => `${way.name}: ${way.hops.length === 0 ? `no way from ${from} to ${to}` : wayText(way, mesh)}`);
    while (this.ways.children.length > texts.length) {
      this.ways.lastElementChild?.remove();
    }
    texts.forEach((text, index) => {
      const item = this.ways.children[index] ?? this.ways.appendChild(make("li", {}, make("i"), make("span")));
      const path = mesh.ways[index]?.path ?? null;
      within(item, "i").style.setProperty("--colour", path === null ? "var(--ink)" : `var(--path-${(path % 5) + 1})`);
      write(within(item, "span"), text);
    });
  }

  /** Of the chosen node. */
  private writeLinks(mesh: Mesh): void {
    const { chosen } = this;
    const of = chosen === null ? [] : mesh.links.filter(({ ends }) => ends.includes(chosen));
    const rows = of.map((link) => {
      const other = link.ends[0] === chosen ? link.ends[1] : link.ends[0];
      const routes = mesh.chosen?.node === chosen ? (mesh.chosen?.routes ?? []) : [];
      const reached = routes.filter(({ hops }) => hops.some(([hop]) => hop === other)).map(({ to }) => mesh.nodes[to]?.name ?? "");
      return [mesh.nodes[other]?.name ?? "", stateOf(link, mesh.fades), forecastOf(link), costOf(link), reached.join(", ")];
    });
    fillTable(this.links, ["neighbour", "state", "forecast", "cost", "next hop to"], rows);
  }

  private writeNodes(mesh: Mesh): void {
    const neighbours = mesh.nodes.map(() => 0);
    for (const { ends, in_range } of mesh.links) {
      ends.forEach((end) => (neighbours[end] = (neighbours[end] ?? 0) + (in_range ? 1 : 0)));
    }
    const rows = mesh.nodes.map((node, index) => [node.name, roleOf(node.role), placeOf(node), String(neighbours[index]), node.held ? "held" : ""]);
    fillTable(this.all, ["node", "role", "place", "in range", ""], rows);
  }
}

const roleOf = (role: Role): string => (role === null ? "no role" : ROLES[role]);
const placeOf = ({ x, y }: { x: number; y: number }): string => `(${Math.round(x)} m, ${Math.round(y)} m)`;

function stateOf({ state, in_range }: MeshLink, fades: boolean): string {
  if (!in_range && !fades) {
    return state === null ? "out of range" : "gone, not yet noticed";
  }
  if (!in_range) {
    return state === null ? "weak" : `weak, ${state === "Full" ? "adjacent" : "neighbour"}`;
  }
  return state === null ? "heard" : state === "Full" ? "adjacent" : format.words(state).replace("two way", "2-Way");
}

const forecastOf = ({ forecast, probability }: MeshLink): string =>
  forecast === null || probability === null ? "–" : `${forecast} (${Math.round(probability * 100)} %)`;
const costOf = ({ cost, signal }: MeshLink): string => [cost ?? "–", ...(signal === null ? [] : [`${Math.round(signal)} dBm`])].join(", ");

/** One next hop each: the nodes in a row. Several: each node with its next hops. */
function wayText({ hops }: Way, mesh: Mesh): string {
  const name = (node: number): string => mesh.nodes[node]?.name ?? "";
  const froms = [...new Set(hops.map(([from]) => from))];
  if (froms.length === hops.length) {
    return [hops[0]?.[0] ?? 0, ...hops.map(([, to]) => to)].map(name).join(" – ");
  }
  return froms.map((from) => `${name(from)} to ${hops.filter((hop) => hop[0] === from).map(([, to]) => name(to)).join(" or ")}`).join("; ");
}

/** Rows stay while their texts change: the screen reader's place is kept. */
function fillTable(table: HTMLTableElement, heads: string[], rows: string[][]): void {
  if (table.tHead === null) {
    table.append(make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody"));
  }
  const body = table.tBodies[0];
  if (body === undefined) {
    return;
  }
  while (body.rows.length > rows.length) {
    body.deleteRow(-1);
  }
  rows.forEach((texts, index) => {
    let row = body.rows[index];
    if (row === undefined) {
      row = body.insertRow();
      row.append(make("th", { scope: "row" }), ...texts.slice(1).map(() => make("td")));
    }
    texts.forEach((text, at) => row.cells[at] !== undefined && write(row.cells[at], text));
  });
}
