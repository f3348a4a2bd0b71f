/**
 * The built page in Chromium: `dist` is served below a folder, as any web server would. $CHROMIUM is the browser, otherwise
 * /usr/bin/chromium. With a `dist` of `npm run build:fake` the tests of the engine are skipped, and say so.
 */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { FIRST, toFragment } from "../src/state.ts";
import { serve, type Served } from "./serve.ts";

const DIST = "dist";
const HASHES = "test/hashes.json";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCENARIOS_OF_THE_LAB = "../scenarios";

let browser: Browser;
let served: Served;
let fake = false;

before(async () => {
  served = await serve(DIST);
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const page = await open();
  fake = await page.locator("#fake").isVisible();
  await page.close();
});

after(async () => {
  await browser.close();
  served.close();
});

/** What the console of each page says that should not be there. */
const complaints = new WeakMap<Page, string[]>();

async function open(fragment = "", options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const heard: string[] = [];
  complaints.set(page, heard);
  page.on("console", (message) => message.type() === "error" && heard.push(message.text()));
  page.on("pageerror", (error) => heard.push(error.message));
  page.on("requestfailed", (request) => heard.push(`${request.url()} failed`));
  page.on("request", (request) => {
    if (!request.url().startsWith(served.address) && !request.url().startsWith("data:")) {
      heard.push(`${request.url()} is elsewhere`);
    }
  });
  await page.goto(served.address + (fragment === "" ? "" : `#${fragment}`));
  await page.locator(".run").first().waitFor();
  return page;
}

async function close(page: Page): Promise<void> {
  assert.deepEqual(complaints.get(page), []);
  await page.context().close();
}

async function clock(page: Page): Promise<number> {
  return Number.parseFloat((await page.locator("#clock").textContent()) ?? "");
}

async function waitForClock(page: Page, seconds: number): Promise<void> {
  await page.waitForFunction((least) => Number.parseFloat(document.getElementById("clock")?.textContent ?? "") >= least, seconds);
}

async function waitForSentence(page: Page, expected: string): Promise<void> {
  await page.waitForFunction((text) => document.getElementById("sentence")?.textContent?.includes(text), expected);
}

/** The share of the points of a canvas that are drawn, and how many colours there are. */
function ink(page: Page, selector: string): Promise<{ drawn: number; colours: number }> {
  return page.locator(selector).first().evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    const points = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? new Uint8ClampedArray();
    const words = new Uint32Array(points.buffer);
    return { drawn: words.filter((word) => word !== 0).length / words.length, colours: new Set(words).size };
  });
}

function needsEngine(context: TestContext): boolean {
  if (fake) {
    context.skip("dist has the stand-in, not the engine");
  }
  return !fake;
}

test("the folder is smaller than 5 MB, and its addresses are relative", () => {
  const files = readdirSync(DIST, { recursive: true, encoding: "utf8" }).map((name) => join(DIST, name));
  const size = files.filter((file) => statSync(file).isFile()).reduce((sum, file) => sum + statSync(file).size, 0);
  console.log(`dist: ${size} bytes`);
  assert.ok(size < 5_000_000);
  assert.doesNotMatch(readFileSync(join(DIST, "index.html"), "utf8"), /(src|href)="(\/|https?:)/);
});

test("the page loads, moves and complains of nothing", async () => {
  const begin = performance.now();
  const page = await open();
  await waitForClock(page, 0.01);
  console.log(`first movement after ${Math.round(performance.now() - begin)} ms`);
  await waitForClock(page, 0.5);
  const { drawn, colours } = await ink(page, ".run canvas");
  assert.ok(drawn > 0.01 && colours > 4, `${drawn} drawn in ${colours} colours`);
  await page.waitForTimeout(400);
  for (const chart of ["#charts .card:nth-child(1) canvas", "#charts .card:nth-child(3) canvas"]) {
    assert.ok((await ink(page, chart)).colours > 2, chart);
  }
  assert.ok((await page.screenshot()).length > 20_000);
  await close(page);
});

test("every scenario of the list runs", async () => {
  const page = await open("speed=5");
  const names = await page.locator("#scenario option:not([hidden])").evaluateAll((all) => all.map((each) => (each as HTMLOptionElement).value));
  assert.ok(names.length >= 3);
  for (const name of names) {
    await page.locator("#scenario").selectOption(name);
    await page.waitForFunction((text) => location.hash.includes(`scenario=${text}&`), name);
    await waitForClock(page, 0.5);
    assert.ok((await page.locator("#look li").count()) > 0, name);
    assert.equal(await page.locator("#sentence").textContent(), "", name);
  }
  await close(page);
});

interface Hash {
  scenario: string;
  policy: string;
  seed: number | string;
  /** In seconds; where it is another than the scenario's, the scenario is cut. */
  duration: number;
  hash: string;
}

test("the trace hashes are those of the command", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  assert.ok(existsSync(HASHES), `${HASHES} is missing: the tests of the crate playground write it`);
  const known = JSON.parse(readFileSync(HASHES, "utf8")) as Hash[];
  assert.ok(known.length >= 5);
  for (const { scenario, policy, seed, duration, hash } of known) {
    const text = readFileSync(join(SCENARIOS_OF_THE_LAB, `${scenario}.toml`), "utf8");
    const toml = text.replace(/^duration = ".*"$/m, `duration = "${duration} s"`);
    const page = await open(await toFragment({ ...FIRST, toml, policies: [policy], seed: BigInt(seed), speed: Infinity }));
    await page.locator("#hashes").waitFor({ timeout: 120_000 });
    const told = await page.locator("#hashes").textContent();
    assert.ok(told?.includes(`${policy} ${hash}`), `${scenario}, ${policy}, seed ${seed}: ${told}, not ${hash}`);
    await close(page);
  }
});

test("a cut path carries nothing, and carries again when it is back", async () => {
  const page = await open();
  const goodput = page.locator("#charts .card:nth-child(1) figcaption b").first();
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector("#charts figcaption b")?.textContent ?? ""));
  for (const cut of await page.getByRole("switch").all()) {
    await cut.check();
  }
  await page.waitForFunction(() => document.querySelector("#charts figcaption b")?.textContent === "0 bit/s");
  await page.getByRole("switch").first().uncheck();
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector("#charts figcaption b")?.textContent ?? ""), undefined, { timeout: 60_000 });
  assert.notEqual(await goodput.textContent(), "0 bit/s");
  assert.match(page.url(), /set=1\.up%3D0/);
  await close(page);
});

test("sliders go by arrow keys, tell their value, and can be taken back", async () => {
  const page = await open("paused=1");
  const slider = page.locator(".path").first().locator("input[data-what=rate]");
  const first = await slider.getAttribute("aria-valuetext");
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await slider.getAttribute("aria-valuetext"), first);
  await page.waitForFunction(() => location.hash.includes("set=0.rate"));
  await page.locator("#reset").click();
  await page.waitForFunction(() => !location.hash.includes("set="));
  assert.equal(await page.locator(".path").first().locator("input[data-what=rate]").getAttribute("aria-valuetext"), first);
  await close(page);
});

test("a link carries scenario, policies, seed, speed and sliders", async () => {
  const page = await open("paused=1");
  const boxes = page.locator("#policies input");
  if ((await boxes.count()) > 1) {
    await boxes.nth(1).uncheck();
  }
  await page.locator("#seed").fill("12345678901234567890");
  await page.locator("#seed").press("Tab");
  await page.waitForFunction(() => location.hash.includes("seed=12345678901234567890"));
  await page.locator("#speed label").nth(3).click();
  await page.locator(".path").nth(1).locator("input[data-what=loss]").fill("200");
  await page.waitForFunction(() => location.hash.includes("set=1.loss") && location.hash.includes("speed=5"));
  const link = page.url();
  const told = (of: Page) =>
    of.evaluate(() => ({
      policies: [...document.querySelectorAll<HTMLInputElement>("#policies input")].map((box) => box.checked),
      seed: document.querySelector<HTMLInputElement>("#seed")?.value,
      speed: [...document.querySelectorAll<HTMLInputElement>("#speed input")].map((radio) => radio.checked),
      sliders: [...document.querySelectorAll("#sliders input[type=range]")].map((slider) => slider.getAttribute("aria-valuetext")),
    }));
  const other = await open(link.split("#")[1]);
  assert.deepEqual(await told(other), await told(page));
  await close(page);
  await close(other);
});

test("a text of one's own runs and goes into the link; a bad one is told in a sentence and the old one goes on", async () => {
  const page = await open();
  await page.locator("#text summary").click();
  const text = await page.locator("#toml").inputValue();
  await page.locator("#toml").fill(text.replace(/^title = ".*"$/m, 'title = "My own"'));
  await page.locator("#run").click();
  await page.waitForFunction(() => document.getElementById("title")?.textContent === "My own" && location.hash.includes("toml="));
  const other = await open(page.url().split("#")[1]);
  assert.equal(await other.locator("#title").textContent(), "My own");
  await close(other);
  await page.locator("#toml").fill("title = \n");
  await page.locator("#run").click();
  await waitForSentence(page, "scenario.toml:1:");
  assert.equal(await page.locator("#title").textContent(), "My own");
  const before = await clock(page);
  await waitForClock(page, before + 0.3);
  await close(page);
});

test("another policy and another path are added to the text", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("scenario=bottleneck");
  await page.locator("#policy").fill("scheduler=linux,congestion=cubic");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "scheduler=linux,congestion=cubic" }).waitFor();
  await page.locator("#add-path").click();
  await page.locator(".path").nth(1).waitFor();
  await waitForClock(page, 0.3);
  assert.equal(await page.locator("#sentence").textContent(), "");
  await page.locator("#policy").fill("scheduler=nothing");
  await page.keyboard.press("Enter");
  await waitForSentence(page, "nothing");
  await close(page);
});

test("a dropped file runs", async () => {
  const page = await open("paused=1");
  const text = (await page.locator("#toml").inputValue()).replace(/^title = ".*"$/m, 'title = "Dropped"');
  await page.evaluate((content) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([content], "mine.toml"));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  }, text);
  await page.waitForFunction(() => document.getElementById("title")?.textContent === "Dropped");
  await close(page);
});

test("a damaged link is told, and the first scenario runs", async () => {
  const page = await open("toml=%21%21");
  await waitForSentence(page, "cannot be unpacked");
  await waitForClock(page, 0.1);
  await close(page);
});

test("too many paths and a rate of zero are sentences", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("paused=1");
  const text = await page.locator("#toml").inputValue();
  const path = (index: number): string =>
    `\n[[paths]]\nname = "p${index}"\nlinks = [{ name = "l", rate = "1 Mbit/s", delay = "1 ms", queue = "9 packets" }]\n`;
  await page.locator("#text summary").click();
  await page.locator("#toml").fill(text + Array.from({ length: 98 }, (_, index) => path(index)).join(""));
  await page.locator("#run").click();
  await waitForSentence(page, "100 paths");
  console.log(await page.locator("#sentence").textContent());
  await page.locator("#toml").fill(text.replace('rate = "10 Mbit/s"', 'rate = "0 bit/s"'));
  await page.locator("#run").click();
  await waitForSentence(page, "'0 bit/s'");
  console.log(await page.locator("#sentence").textContent());
  await page.locator("#step").click();
  await page.waitForFunction(() => document.getElementById("clock")?.textContent !== "0.000 s");
  await close(page);
});

test("space pauses and goes on, a point steps", async () => {
  const page = await open();
  await waitForClock(page, 0.3);
  await page.locator("h1").click();
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.getElementById("play")?.textContent === "Play");
  await page.waitForTimeout(200);
  const before = await clock(page);
  await page.waitForTimeout(300);
  assert.equal(await clock(page), before);
  for (let steps = 0; steps < 20; steps++) {
    await page.keyboard.press(".");
  }
  await page.waitForFunction((time) => Number.parseFloat(document.getElementById("clock")?.textContent ?? "") > time, before);
  assert.ok((await clock(page)) < before + 0.5);
  await page.keyboard.press("Space");
  await waitForClock(page, before + 0.5);
  await close(page);
});

test("a decision can be chosen, and stays while others come", async () => {
  const page = await open();
  await waitForClock(page, 1);
  // The list stands while somebody points at it.
  await page.locator("#decisions").hover();
  await page.locator("#decisions button").nth(3).click();
  const told = await page.locator("#decision").textContent();
  assert.match(told ?? "", /^At \d/);
  await page.waitForTimeout(700);
  assert.equal(await page.locator("#decision").textContent(), told);
  assert.ok((await page.locator("#view tbody tr").count()) > 0);
  await page.locator("#newest").click();
  await page.waitForFunction((text) => document.getElementById("decision")?.textContent !== text, told);
  await close(page);
});

test("a pause of the browser is not caught up, and is told", async () => {
  const page = await open();
  await waitForClock(page, 0.3);
  const before = await page.evaluate(() => {
    const time = document.getElementById("clock")?.textContent ?? "";
    const end = performance.now() + 3000;
    while (performance.now() < end);
    return time;
  });
  await waitForSentence(page, "goes on now");
  assert.ok((await clock(page)) < Number.parseFloat(before) + 1.5);
  await close(page);
});

/** How much of a picture is in the colour of packets of data. */
function packetPoints(page: Page): Promise<number> {
  return page.locator(".run canvas").first().evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    const probe = new OffscreenCanvas(1, 1).getContext("2d");
    const context = canvas.getContext("2d");
    if (probe === null || context === null) {
      return -1;
    }
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--data");
    probe.fillRect(0, 0, 1, 1);
    const colour = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
    const points = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return points.filter((point) => point === colour).length;
  });
}

test("with reduced motion it begins paused, and packets are not drawn", async () => {
  const page = await open("", { reducedMotion: "reduce" });
  await page.waitForTimeout(300);
  assert.equal(await page.locator("#clock").textContent(), "0.000 s");
  await page.locator("#play").click();
  await waitForClock(page, 1);
  assert.equal(await packetPoints(page), 0);
  await close(page);
  const moving = await open();
  await waitForClock(moving, 1);
  assert.ok((await packetPoints(moving)) > 0);
  await close(moving);
});

async function judge(page: Page): Promise<void> {
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "it scrolls sideways");
  await page.evaluate(AXE);
  const found = await page.evaluate("axe.run().then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0].html })))");
  const serious = (found as { id: string; impact: string }[]).filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious, []);
}

/** The pixel of a place of the MANET paper's mesh in the picture, which has 100 m around the nodes. */
async function pixelOf(page: Page, x: number, y: number): Promise<{ x: number; y: number }> {
  const box = await page.locator(".run canvas").first().boundingBox();
  assert.ok(box !== null);
  const scale = Math.min((box.width - 44) / 500, ((box.width > 700 ? 620 : 440) - 44) / 400);
  return { x: box.x + box.width / 2 + (x - 150) * scale, y: box.y + box.height / 2 - y * scale };
}

async function waitForNode(page: Page, expected: string): Promise<void> {
  await page.waitForFunction((text) => document.getElementById("about-node")?.textContent?.includes(text), expected);
}

test("an ad-hoc network is seen, and its nodes are dragged, moved by keys and let go", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("scenario=manet_homogeneous&policy=MMPxM&speed=5");
  await waitForClock(page, 5);
  await page.locator("#play").click();
  const { drawn, colours } = await ink(page, ".run canvas");
  assert.ok(drawn > 0.01 && colours > 6, `${drawn} drawn in ${colours} colours`);
  await page.locator(".run canvas").first().scrollIntoViewIfNeeded();
  const place = await pixelOf(page, 100, 0);
  await page.mouse.move(place.x, place.y);
  await page.mouse.down();
  await page.mouse.up();
  await waitForNode(page, "(100 m, 0 m)");
  assert.equal(await page.locator("#node").inputValue(), "2");
  assert.doesNotMatch((await page.locator("#about-node").textContent()) ?? "", /held/);
  // A click gives the keys to the node: an arrow is a twentieth of the range of 150 m.
  await page.keyboard.press("ArrowRight");
  await waitForNode(page, "(108 m, 0 m), held");
  await page.locator("#let-go").click();
  await waitForNode(page, "(100 m, 0 m);");
  // The buttons are further down.
  await page.locator(".run canvas").first().scrollIntoViewIfNeeded();
  const again = await pixelOf(page, 100, 0);
  const above = await pixelOf(page, 100, 150);
  await page.mouse.move(again.x, again.y);
  await page.mouse.down();
  await page.mouse.move(above.x, above.y, { steps: 5 });
  await page.mouse.up();
  await waitForNode(page, "(100 m, 150 m), held");
  assert.match((await page.locator("#links").textContent()) ?? "", /M2/);
  // Its old neighbours have not noticed yet.
  assert.match((await page.locator("#links").textContent()) ?? "", /gone, not yet noticed/);
  // The link has it, and begins with it.
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes("node=2=100,150"));
  const fragment = (await page.evaluate(() => location.hash)).slice(1);
  await page.locator("#let-all-go").click();
  await waitForNode(page, "(100 m, 0 m);");
  await page.waitForFunction(() => !location.hash.includes("node="));
  await close(page);
  const linked = await open(fragment);
  await linked.locator("#node").selectOption("2");
  await waitForNode(linked, "(100 m, 150 m), held");
  await close(linked);
  const wrong = await open("scenario=manet_homogeneous&node=8=1,1");
  await waitForSentence(wrong, "there is no node 8: nodes are 0 to 7");
  await close(wrong);
});

test("lanes, roles and goodput of an ad-hoc network are told as text", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("scenario=manet_homogeneous&policy=MPxM&speed=max");
  await page.waitForFunction(() => Number.parseFloat(document.getElementById("clock")?.textContent ?? "") >= 22, undefined, { timeout: 60_000 });
  await page.locator("#play").click();
  await page.waitForFunction(() => /^e1: M1 – M\d – M\d – M8$/m.test(document.querySelector("#ways li:nth-child(2)")?.textContent ?? ""));
  await page.locator("#mesh summary").click();
  assert.match((await page.locator("#nodes").textContent()) ?? "", /MDR/);
  assert.match((await page.locator("#charts .card:nth-child(1) figcaption b").first().textContent()) ?? "", /bit\/s/);
  assert.ok(await page.locator("#sliders").isHidden());
  await page.locator("#scenario").selectOption("two_paths");
  await page.locator("#sliders").waitFor();
  assert.ok(await page.locator("#mesh").isHidden());
  await close(page);
});

test("what is sent again, and what others carry, is seen", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("scenario=lm3_evaluation&speed=5");
  await page.waitForFunction(() => document.getElementById("key")?.classList.contains("has-again"), undefined, { timeout: 30_000 });
  await page.locator("#scenario").selectOption("harm");
  // Its own scenario has no others.
  await page.locator("#charts .card:nth-child(5)").waitFor();
  await page.locator("#scenario").selectOption("two_paths");
  await page.waitForFunction(() => location.hash.includes("scenario=two_paths&"));
  await waitForClock(page, 0.5);
  assert.ok(await page.locator("#charts .card:nth-child(5)").isHidden());
  await close(page);
});

test("moving nodes: probes have a curve, and ways between any two are told", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open("scenario=manet_moving&speed=max");
  await page.waitForFunction(() => /\d %/.test(document.querySelector("#charts .card:nth-child(6) figcaption b")?.textContent ?? ""), undefined, { timeout: 60_000 });
  await page.locator("#play").click();
  assert.ok(await page.locator("#charts .card:nth-child(1)").isHidden());
  await page.locator("#from").selectOption("3");
  await page.locator("#to").selectOption("9");
  await page.waitForFunction(() => /^route: (3 (–|to)|no way from 3 to 9)/.test(document.querySelector("#ways li")?.textContent ?? ""));
  await page.locator("#node").selectOption("3");
  await page.waitForFunction(() => (document.querySelectorAll("#links tbody tr").length ?? 0) > 0);
  await page.locator("#handle").press("ArrowLeft");
  await page.locator("#play").click();
  await page.locator("#hashes").waitFor({ timeout: 120_000 });
  assert.match((await page.locator("#hashes").textContent()) ?? "", /with nodes that were moved/);
  await close(page);
});

for (const [name, options] of [
  ["light", {}],
  ["dark", { colorScheme: "dark" }],
  ["a telephone", { viewport: { width: 390, height: 844 } }],
] as [string, BrowserContextOptions][]) {
  test(`axe finds nothing serious: ${name}`, async () => {
    const page = await open("", options);
    await waitForClock(page, 0.5);
    await page.locator("#text summary").click();
    await page.keyboard.press("Tab");
    await judge(page);
    await close(page);
  });

  test(`axe finds nothing serious in an ad-hoc network: ${name}`, async (context) => {
    if (!needsEngine(context)) {
      return;
    }
    const page = await open("scenario=manet_forecast&speed=max", options);
    await page.waitForFunction(() => Number.parseFloat(document.getElementById("clock")?.textContent ?? "") >= 20, undefined, { timeout: 60_000 });
    await page.locator("#node").selectOption("4");
    await page.locator("#mesh summary").click();
    await page.waitForFunction(() => (document.querySelectorAll("#links tbody tr").length ?? 0) > 0);
    await page.locator("#play").click();
    await judge(page);
    await close(page);
  });
}

const THREE_PATHS = `name = "three"
title = "Three paths of 20 Mbit/s"
duration = "60 s"

[transfer]
kind = "endless"

[connection]
receive_buffer = { initial = "128 KiB", max = "8 MiB" }
${[1, 2, 3]
  .map((path) => `\n[[paths]]\nname = "${path}"\nlinks = [{ name = "link", rate = "20 Mbit/s", delay = "${10 * path} ms", queue = "100 packets" }]\n`)
  .join("")}
[[policies]]
name = "plain"
label = "plain MPTCP"
`;

/** Bytes of the engine, and of the page's JavaScript after a collection. */
async function memoryOf(page: Page): Promise<{ engine: number; page: number }> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return { engine: Number(await page.evaluate(() => document.documentElement.dataset["engineBytes"])), page: usedSize };
}

const HOUR = THREE_PATHS.replace('duration = "60 s"', 'duration = "3600 s"').replaceAll("20 Mbit/s", "1 Mbit/s");

test("an hour takes no more memory than ten minutes, but for a sample a second", async (context) => {
  if (!needsEngine(context)) {
    return;
  }
  const page = await open(await toFragment({ ...FIRST, toml: HOUR, policies: ["plain"], speed: Infinity }));
  const seen = [];
  for (const minutes of [1, 10, 20, 40, 60]) {
    await page.waitForFunction((least) => Number.parseFloat(document.getElementById("clock")?.textContent ?? "") >= least, 60 * minutes, { timeout: 240_000 });
    seen.push({ minutes, ...(await memoryOf(page)) });
  }
  console.log(seen.map(({ minutes, engine, page }) => `after ${minutes} min ${(engine / 1e6).toFixed(1)} MB of the engine, ${(page / 1e6).toFixed(1)} MB of the page`).join("; "));
  const [, early] = seen;
  const last = seen.at(-1);
  assert.ok(early !== undefined && last !== undefined && early.engine > 1e6);
  // 3,000 samples of at most four series of 20 numbers are 2 MB, and vectors double.
  assert.ok(last.engine - early.engine < 6e6, `${last.engine - early.engine} bytes more`);
  assert.ok(last.page - early.page < 3e6, `${last.page - early.page} bytes more`);
  await close(page);
});

test("how long frames take, and how fast it goes (printed)", async () => {
  const three = { ...FIRST, toml: THREE_PATHS, policies: ["plain"] };
  const page = await open(await toFragment(three));
  await page.waitForTimeout(4000);
  const drawing = await page.evaluate(() => ({ ...document.documentElement.dataset }));
  const pace = await page.locator("#pace").textContent();
  console.log(`three paths of 20 Mbit/s at 1x: ${pace}; ms of drawing in 60 frames, median ${drawing["drawMedian"]}, most ${drawing["drawMost"]}`);
  await close(page);
  const begin = performance.now();
  const fast = await open(await toFragment({ ...three, speed: Infinity }));
  await fast.waitForFunction(() => document.getElementById("pace")?.textContent === "at the end", undefined, { timeout: 120_000 });
  console.log(`60 s of them, as fast as it can, with drawing and from a cold start: ${Math.round(performance.now() - begin)} ms`);
  await close(fast);
});
