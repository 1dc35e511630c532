// The page of an item: evidence, questions, and the vote, which is on its way until the server has it.

import { enlarging } from "./enlarge.js";
import { Media } from "./media.js";
import { Questions } from "./questions.js";
import { Lost, deliver, keep, post, waiting } from "./sending.js";
import { Timeline } from "./timeline.js";
import { make, newId, say } from "./words.js";

const DRAFT_AFTER = 700;
const byId = (id) => document.getElementById(id);

export class ItemPage {
  constructor() {
    this.form = byId("questions");
    this.key = this.form.dataset.key;
    this.said = byId("said");
    this.save = byId("save");
    this.timeline = new Timeline(this.key);
    this.questions = new Questions(this.form, { changed: () => this.begun(), announce: (text) => this.announce(text) });
    this.questions.fill(JSON.parse(this.form.dataset.answers) ?? {});
    this.media = new Media(byId("evidence"), this.timeline, {
      watched: "watched" in this.form.dataset, changed: () => this.showMedia(),
    });
    enlarging(byId("enlarged"), byId("evidence"), this.timeline);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.vote();
    });
    this.keepDrafts();
    this.scrolled();
    this.showMedia();
    this.teach(JSON.parse(this.form.dataset.told));
    this.resume();
  }

  announce(text) {
    byId("live").textContent = text;
  }

  tell(text, kind = "") {
    this.said.textContent = text;
    this.said.className = `said ${kind}`;
  }

  /** Evidence that scrolls can be reached by keyboard. */
  scrolled() {
    const box = byId("evidence");
    const check = () => {
      if (box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      box.classList.toggle("more", box.scrollTop + box.clientHeight < box.scrollHeight - 4);
    };
    box.addEventListener("scroll", check, { passive: true });
    new ResizeObserver(check).observe(box);
    for (const child of box.children) new ResizeObserver(check).observe(child);
  }

  // -- media

  showMedia() {
    const { media } = this;
    if (!media) return;
    const trouble = byId("trouble");
    const failed = media.failed.size > 0;
    if (failed && !trouble.firstChild) trouble.append(this.troubleBox());
    if (!failed) trouble.replaceChildren();
    this.save.setAttribute("aria-disabled", String(!media.ready));
    if (this.sending) return;
    if (failed) this.tell(say("media.failed"), "bad");
    else if (!media.loaded) this.tell(say("media.loading", { number: media.there, total: media.all.length }));
    else if (!media.ready) this.tell(say("media.watch"));
    else this.tell("");
  }

  troubleBox() {
    const retry = make("button", { type: "button", className: "quiet", textContent: say("media.retry") });
    const report = make("button", { type: "button", className: "quiet", textContent: say("media.report") });
    retry.addEventListener("click", () => this.media.retry());
    report.addEventListener("click", () => this.report());
    return make("div", { className: "notice bad" }, make("p", { textContent: say("media.trouble") }),
      make("div", { className: "row" }, retry, report));
  }

  report() {
    if (this.sending) return;
    const id = newId();
    const entry = { id, name: "broken", body: { id, place: this.key, what: this.media.trouble() } };
    keep(entry);
    this.send(entry);
  }

  // -- drafts

  begun() {
    clearTimeout(this.timer);
    byId("kept").textContent = "";
    this.timer = setTimeout(() => this.draft(), DRAFT_AFTER);
    this.unsaved = true;
  }

  async draft({ keepalive = false } = {}) {
    clearTimeout(this.timer);
    if (!this.unsaved || this.sending) return;
    this.unsaved = false;
    try {
      const answer = await post("draft", { place: this.key, answers: this.questions.answers }, { keepalive });
      if (answer.ok && !this.unsaved) byId("kept").textContent = say("draft.kept");
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      this.unsaved = true;
    }
  }

  keepDrafts() {
    addEventListener("pagehide", () => this.draft({ keepalive: true }));
    addEventListener("online", () => this.draft());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.draft({ keepalive: true });
    });
    document.querySelector("a[data-restores]")?.addEventListener("click", (event) => this.restore(event));
    for (const link of document.querySelectorAll(".menu a, a[data-leaves]")) {
      link.addEventListener("click", async (event) => {
        if (!this.unsaved || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        await this.draft();
        location.assign(link.href);
      });
    }
  }

  /** Go back and leave the saved answers as they are. */
  async restore(event) {
    event.preventDefault();
    clearTimeout(this.timer);
    this.unsaved = false;
    const saved = JSON.parse(this.form.dataset.saved);
    try {
      await post("draft", { place: this.key, answers: saved });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      this.tell(say("error.again"), "warn");
      return;
    }
    location.assign("/");
  }

  // -- the vote

  vote() {
    if (this.sending) return;
    if (!this.media.ready) {
      this.showMedia();
      if (this.media.failed.size) byId("trouble").querySelector("button").focus();
      return;
    }
    if (!this.questions.complete(byId("faults"))) return;
    for (const video of this.media.videos) {
      this.timeline.note(`played:${video.dataset.number}:${this.media.share(video).toFixed(2)}`);
    }
    const id = newId();
    const entry = { id, name: "vote", body: {
      id, place: this.key, answers: this.questions.answers, timeline: this.timeline.closed(),
      loaded: this.media.loaded, language: document.documentElement.lang,
    } };
    keep(entry);
    this.send(entry);
  }

  hold(on) {
    this.sending = on;
    clearTimeout(this.timer);
    if (on && byId("asked").contains(document.activeElement)) this.save.focus();
    byId("asked").inert = on;
    this.form.setAttribute("aria-busy", String(on));
    this.save.setAttribute("aria-disabled", String(on || !this.media.ready));
    this.save.textContent = say(on ? "saving" : "next");
  }

  async send(entry) {
    this.hold(true);
    this.tell("");
    const answer = await deliver(entry, (why) => this.tell(say(`error.${why}`), "warn"));
    if (answer.ok) this.saved(entry, answer.content);
    else this.refused(answer);
  }

  saved(entry, content) {
    this.timeline.forget();
    this.unsaved = false;
    this.tell(say("saved"), "good");
    if (entry.name === "vote" && content.right && this.teach(content)) return;
    location.assign("/"); // `navigator.onLine` is false on a machine that reaches nothing but itself
  }

  refused({ status, content }) {
    if (status === 403) {
      this.tell(say("error.expired.kept"), "bad");
      return;
    }
    if (content.why === "closed") {
      this.tell(`${say("error.closed")} `, "bad");
      this.said.append(make("a", { href: "/", textContent: say("error.home") }));
      return;
    }
    this.hold(false);
    if (content.why === "answers") this.questions.refuse(byId("faults"), content.fields ?? {});
    this.tell(say("error.refused"), "bad");
  }

  /** Send what was kept when the page was last open. An answer to this item is shown and holds the page. */
  async resume() {
    const kept = waiting();
    for (const entry of kept.filter((other) => other.body.place !== this.key)) await deliver(entry);
    const own = kept.filter((other) => other.body.place === this.key);
    if (!own.length) return;
    const last = own.at(-1);
    if (last.name === "vote") this.questions.fill(last.body.answers);
    for (const entry of own.slice(0, -1)) await deliver(entry);
    await this.send(last);
  }

  // -- training

  /** Show what training says of the answers; return whether it says anything. */
  teach(told) {
    if (!told?.right) return false;
    const language = document.documentElement.lang;
    for (const question of this.questions.all.filter((other) => other.place in told.right)) {
      const right = told.right[question.place];
      const verdict = make("p", { className: `verdict ${right ? "good" : "bad"}`,
        textContent: say(right ? "training.right" : "training.wrong") });
      question.field.querySelector(".verdict")?.remove();
      question.field.querySelector("legend").after(verdict);
    }
    const right = Object.values(told.right).filter(Boolean).length, total = Object.keys(told.right).length;
    const why = told.explained?.[language] ?? told.explained?.en ?? "";
    const box = byId("feedback");
    const onward = make("a", { href: "/", className: "button main", textContent: say("training.go") });
    box.replaceChildren(
      make("h2", { textContent: total ? say("training.count", { right, total }) : say("training.seen") }),
      ...why.split(/\n\s*\n/u).filter((text) => text.trim())
        .map((text) => make("p", { className: "passage", textContent: text.trim() })),
      make("div", { className: "row" }, onward));
    box.hidden = false;
    byId("asked").inert = true;
    this.form.querySelector(".foot").hidden = true;
    box.focus();
    return true;
  }
}
