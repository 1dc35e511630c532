// What happens on a page, in milliseconds since it was first opened. Opened again before a vote, it goes on.

import { mark } from "./words.js";

const MOST = 4900;
const BETWEEN_ACTIVE = 1000;
const ACTIONS = ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "input"];

export class Timeline {
  constructor(key) {
    this.name = `fabula-review-time:${mark}:${key}`;
    this.events = [];
    this.start = this.clock();
    this.active = -Infinity;
    this.restore();
    this.note(document.hidden ? "hidden" : "visible");
    this.listen();
  }

  /** Return the time of day in milliseconds; setting the clock does not turn it back while the page is open. */
  clock() {
    return performance.timeOrigin + performance.now();
  }

  now() {
    const last = this.events.at(-1)?.[0] ?? 0;
    return Math.max(last, Math.round(this.clock() - this.start));
  }

  note(what) {
    if (this.events.length < MOST) this.events.push([this.now(), what]);
  }

  /** Return all events, the last of which is that the answer is sent. */
  closed() {
    return [...this.events, [this.now(), "sent"]];
  }

  forget() {
    this.gone = true;
    try {
      sessionStorage.removeItem(this.name);
    } catch { /* storage is switched off */ }
  }

  restore() {
    try {
      const stored = JSON.parse(sessionStorage.getItem(this.name) ?? "null");
      if (stored && Array.isArray(stored.events) && stored.start <= this.start) Object.assign(this, stored);
    } catch { /* storage is switched off */ }
  }

  persist() {
    if (this.gone) return;
    try {
      sessionStorage.setItem(this.name, JSON.stringify({ start: this.start, events: this.events }));
    } catch { /* storage is switched off or full */ }
  }

  listen() {
    document.addEventListener("visibilitychange", () => {
      this.note(document.hidden ? "hidden" : "visible");
      if (document.hidden) this.persist();
    });
    addEventListener("focus", () => this.note("focus"));
    addEventListener("blur", () => this.note("blur"));
    addEventListener("pagehide", () => {
      if (!document.hidden) this.note("hidden");
      this.persist();
    });
    const act = () => {
      const now = performance.now();
      if (now - this.active < BETWEEN_ACTIVE) return;
      this.active = now;
      this.note("active");
    };
    for (const action of ACTIONS) document.addEventListener(action, act, { capture: true, passive: true });
  }
}
