/** Play, pause, step and speed; the clock and how fast it really goes. */

import { byId, radios, write } from "./dom.ts";
import * as format from "./format.ts";
import { SPEEDS } from "./state.ts";

export interface Transports {
  pause(paused: boolean): void;
  step(): void;
  again(): void;
  speed(speed: number): void;
}

/** Real seconds over which the pace is taken. */
const PACE_SPAN = 1;

export class Transport {
  private readonly play = byId("play", HTMLButtonElement);
  private readonly clock = byId("clock", HTMLOutputElement);
  private readonly progress = byId("progress", HTMLProgressElement);
  private readonly pace = byId("pace", HTMLOutputElement);
  private readonly speeds = byId("speed", HTMLFieldSetElement);
  private readonly act: Transports;
  private paused = true;
  private since = { real: 0, simulated: 0 };

  constructor(act: Transports) {
    this.act = act;
    this.play.addEventListener("click", () => act.pause(!this.paused));
    byId("step", HTMLButtonElement).addEventListener("click", () => act.step());
    byId("again", HTMLButtonElement).addEventListener("click", () => act.again());
    document.addEventListener("keydown", (event) => this.press(event));
  }

  show(paused: boolean, speed: number): void {
    this.paused = paused;
    write(this.play, paused ? "Play" : "Pause");
    const labels = SPEEDS.map((each) => (each === Infinity ? "max" : `${each}×`));
    if (this.speeds.querySelector("input") === null) {
      radios(this.speeds, "speed", labels, SPEEDS.indexOf(speed as never), (index) => this.act.speed(SPEEDS[index] ?? 1));
    }
    this.speeds.querySelectorAll("input").forEach((input, index) => (input.checked = SPEEDS[index] === speed));
    this.since = { real: 0, simulated: 0 };
    write(this.pace, "");
  }

  /** `time` and `duration` in simulated seconds, `now` in real milliseconds. */
  tell(time: number, duration: number, ended: boolean, now: number): void {
    write(this.clock, format.clock(time));
    this.progress.value = duration > 0 ? time / duration : 0;
    if (ended) {
      write(this.pace, "at the end");
      return;
    }
    const real = now / 1000 - this.since.real;
    if (real >= PACE_SPAN && !this.paused) {
      const pace = (time - this.since.simulated) / real;
      if (this.since.real > 0 && pace >= 0) {
        write(this.pace, `${pace >= 10 ? Math.round(pace) : pace.toFixed(2)}× real time`);
      }
      this.since = { real: now / 1000, simulated: time };
    }
  }

  private press(event: KeyboardEvent): void {
    const { target, key } = event;
    const writes = target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && ["seed", "policy"].includes(target.id));
    if (event.ctrlKey || event.metaKey || event.altKey || writes) {
      return;
    }
    // Space presses what has the focus.
    const presses = target instanceof HTMLElement && target.matches("button, summary, select, input[type=checkbox], input[type=radio]");
    if (key === " " && !presses) {
      event.preventDefault();
      this.act.pause(!this.paused);
    } else if (key === ".") {
      event.preventDefault();
      this.act.step();
    }
  }
}
