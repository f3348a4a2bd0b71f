/** The page's end of the worker: sends commands, asks for one frame at a time, and starts another worker when the engine has failed. */

import type { Command, Load, Report } from "./protocol.ts";

export class Client {
  private readonly heard: (report: Report) => void;
  private worker: Worker;
  private ticket = 0;
  private waiting = false;
  private elapsed = 0;
  /** Whether a load has succeeded since the worker began. Without one, starting it again would not help. */
  private worked = false;

  constructor(heard: (report: Report) => void) {
    this.heard = heard;
    this.worker = this.start();
  }

  send(command: Command): void {
    this.worker.postMessage(command);
  }

  /** Only the answer to the last load counts. */
  load(wanted: Load): void {
    this.ticket += 1;
    this.send({ do: "load", ticket: this.ticket, ...wanted });
  }

  /** `elapsed` seconds of real time have passed. While a frame is awaited they are added up: frames never queue. */
  tick(elapsed: number): void {
    this.elapsed += elapsed;
    if (!this.waiting) {
      this.waiting = true;
      this.send({ do: "tick", elapsed: this.elapsed });
      this.elapsed = 0;
    }
  }

  private start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<Report>) => this.hear(event.data);
    worker.onerror = () => this.heard({ tell: "sentence", sentence: "The engine cannot be loaded." });
    this.waiting = false;
    return worker;
  }

  private hear(report: Report): void {
    if ((report.tell === "loaded" || report.tell === "failed") && report.ticket !== this.ticket) {
      return;
    }
    if (report.tell === "frame" || report.tell === "idle" || report.tell === "sentence") {
      this.waiting = false;
    }
    this.worked ||= report.tell === "loaded";
    this.heard(report);
    if (report.tell === "broken") {
      this.worker.terminate();
      if (this.worked) {
        this.worked = false;
        this.worker = this.start();
      }
    }
  }
}
