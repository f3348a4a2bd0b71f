/** The parts of the page that need no browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anotherPolicy, withPolicy } from "../src/additions.ts";
import type { Engine } from "../src/engine.ts";
import * as format from "../src/format.ts";
import { CAPACITY, History, Meter } from "../src/history.ts";
import { Runs } from "../src/runs.ts";
import { FIRST, fromFragment, toFragment, toSeed, withChange, withPlace, type State } from "../src/state.ts";
import * as fake from "./fake.ts";

const engine = fake as unknown as Engine;
const always = (): boolean => true;
const TWO = { toml: fake.scenario_text("two_paths"), policies: ["plain", "tcp"], lenient: false, seed: 7n, changes: [], nodes: [] };

test("a state survives its fragment, also the largest seed, commas in policies and a text of one's own", async () => {
  const state: State = {
    scenario: null,
    toml: 'name = "mine"\n# µ, &, =, +, %\n'.repeat(100),
    policies: ["plain", "linux,congestion=olia"],
    seed: 2n ** 64n - 1n,
    speed: Infinity,
    paused: true,
    changes: [{ path: 1, what: "loss", value: 0.015 }],
    nodes: withPlace([{ node: 3, x: 1, y: 2 }], { node: 3, x: -12.34, y: 100 }),
  };
  assert.deepEqual(await fromFragment(`#${await toFragment(state)}`), state);
  assert.deepEqual(await fromFragment(""), FIRST);
});

test("a text may also be stored, not compressed, as the command's links have it", async () => {
  // RFC 1951, 3.2.4: the last block, two bytes, their complement, "ab".
  assert.equal((await fromFragment("toml=AQIA_f9hYg&seed=1")).toml, "ab");
});

test("a fragment that cannot be is refused in a sentence", async () => {
  await assert.rejects(fromFragment("#toml=!!!"), /cannot be unpacked/);
  await assert.rejects(fromFragment("#seed=-1"), /whole number/);
  await assert.rejects(fromFragment("#speed=7"), /none of/);
  await assert.rejects(fromFragment("#set=0.colour=3"), /PATH.VALUE=NUMBER/);
  await assert.rejects(fromFragment("#set=0.rate=much"), /PATH.VALUE=NUMBER/);
  await assert.rejects(fromFragment("#node=3=1"), /NODE=X,Y/);
  assert.throws(() => toSeed("18446744073709551616"), /whole number/);
});

test("a link that unpacks to megabytes is refused", async () => {
  const fragment = await toFragment({ ...FIRST, toml: "#".repeat(3_000_000) });
  assert.ok(fragment.length < 10_000);
  await assert.rejects(fromFragment(fragment), /cannot be unpacked/);
});

test("of two changes of one slider the last counts", () => {
  const first = withChange([], { path: 0, what: "rate", value: 1e6 });
  const other = withChange(first, { path: 0, what: "loss", value: 0.1 });
  assert.deepEqual(withChange(other, { path: 0, what: "rate", value: 2e6 }), [
    { path: 0, what: "loss", value: 0.1 },
    { path: 0, what: "rate", value: 2e6 },
  ]);
});

test("an hour of curves stays within the capacity, and reaches over the whole hour", () => {
  const history = new History(1);
  for (let frame = 0; frame < 3600 * 60; frame++) {
    history.push(frame / 60, [frame]);
  }
  assert.ok(history.times.length <= CAPACITY && history.times.length >= CAPACITY / 2);
  assert.equal(history.curves[0]?.length, history.times.length);
  assert.equal(history.times[0], 0);
  assert.ok((history.times.at(-1) ?? 0) > 3590);
});

test("a curve that begins late has no values before", () => {
  const history = new History(0);
  history.push(0, []);
  history.push(1, [5]);
  assert.deepEqual(history.curves, [[null, 5]]);
});

test("a meter tells the rate of the last half second", () => {
  const meter = new Meter();
  assert.equal(meter.rate(0, 0), null);
  assert.equal(meter.rate(1, 1000), 8000);
  // From (1 s, 1000 B): 500 B in half a second.
  assert.equal(meter.rate(1.5, 1500), 8000);
  assert.equal(meter.rate(2, 1500), 0);
});

test("a meter begins anew with the count of another connection, and takes a longer span", () => {
  const meter = new Meter(5);
  meter.rate(1, 1000);
  // From (0 s, 0 B).
  assert.equal(meter.rate(4, 2000), 4000);
  assert.equal(meter.rate(5, 100), null);
  assert.equal(meter.rate(6, 600), 4800);
});

test("numbers have units and three digits", () => {
  assert.equal(format.rate(12_345_678), "12.3 Mbit/s");
  assert.equal(format.duration(0.0005), "500 µs");
  assert.equal(format.duration(0), "0 s");
  assert.equal(format.share(0.015), "1.5 %");
  assert.equal(format.bytes(999), "999 B");
});

test("all runs stand at one time, also after a step of one", () => {
  const runs = new Runs(engine, TWO);
  assert.equal(runs.advance(1, always), 1);
  runs.step(1);
  const [one, other] = runs.frames(false);
  assert.ok((one?.frame.time ?? 0) > 1);
  assert.equal(one?.frame.time, other?.frame.time);
  runs.free();
});

test("what does not fit into real time is left out", () => {
  const runs = new Runs(engine, TWO);
  let looks = 3;
  const advanced = runs.advance(20, () => --looks > 0);
  assert.ok(advanced > 0 && advanced < 0.1, `${advanced} s`);
  runs.free();
});

test("runs end at the end of the scenario, however far they are asked to go", () => {
  const runs = new Runs(engine, { ...TWO, toml: 'duration = "2 s"\n' });
  runs.advance(Infinity, always);
  assert.ok(runs.ended);
  assert.equal(runs.now, 2);
  runs.free();
});

test("lanes are told only when they have changed", () => {
  const runs = new Runs(engine, TWO);
  assert.equal(runs.frames(false)[0]?.lanes?.length, 4);
  assert.equal(runs.frames(false)[0]?.lanes, undefined);
  runs.change({ path: 1, what: "up", value: 0 });
  assert.equal(runs.frames(false)[0]?.lanes?.[2]?.up, false);
  runs.free();
});

test("an unknown policy is refused, but left out of a preset's", () => {
  assert.throws(() => new Runs(engine, { ...TWO, policies: ["nothing"] }), /no policy "nothing"/);
  const lenient = new Runs(engine, { ...TWO, policies: ["nothing", "tcp"], lenient: true });
  assert.deepEqual(lenient.policies, ["tcp"]);
  lenient.free();
});

test("a policy is added as a table, also to a text without any", () => {
  const table = '\n[[policies]]\nname = "anabranch,congestion=olia"\ncongestion = "olia"\nscheduler = "anabranch"\npath_manager = "anabranch"\n';
  assert.equal(anotherPolicy("anabranch,congestion=olia"), table);
  assert.equal(withPolicy("a = 1\n\n[[policies]]\n", "anabranch,congestion=olia"), `a = 1\n\n[[policies]]\n${table}`);
  assert.equal(withPolicy("a = 1", "anabranch,congestion=olia"), `a = 1\n\n[[policies]]\nname = "plain"\n${table}`);
  assert.throws(() => anotherPolicy("colour=red"), /"colour=red" is no policy/);
  assert.throws(() => anotherPolicy('scheduler="'), /is no policy/);
});
