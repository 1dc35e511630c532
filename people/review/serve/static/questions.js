// All questions of an item: which of them are asked, what was answered, what is missing, and their keys.

import { answering } from "./answering.js";
import { make, say } from "./words.js";

const DIGIT = /^[0-9]$/;

export class Questions {
  constructor(form, { changed, announce }) {
    this.form = form;
    this.announce = announce;
    this.changed = changed;
    this.relist = () => {};
    this.all = [...form.querySelectorAll("fieldset.question")].map((field) => this.question(field));
    form.addEventListener("keydown", (event) => this.key(event));
  }

  question(field) {
    const { place, name, part, when } = field.dataset;
    const question = {
      field, place, name, part, when: Object.entries(JSON.parse(when)), optional: "optional" in field.dataset,
      title: titleOf(field),
    };
    const changed = () => {
      field.classList.remove("full");
      if (question.answer.read() !== undefined) this.mark(question, "");
      this.ask(true);
      this.relist();
      this.changed();
    };
    question.answer = answering(field, changed, this.announce);
    return question;
  }

  // -- which are asked

  /** Return the questions that are asked after the answers; what is hidden answers nothing. */
  due() {
    let asked = this.all.filter((question) => !question.when.length);
    for (let turn = 0; turn <= this.all.length; turn += 1) {
      const answers = this.read(asked);
      const now = this.all.filter((question) => isDue(question, answers));
      if (now.length === asked.length && now.every((question, at) => question === asked[at])) break;
      asked = now;
    }
    return asked;
  }

  /** Show what is asked and hide the rest. */
  ask(tell = false) {
    const due = new Set(this.due());
    for (const question of this.all) {
      const isNew = due.has(question) && question.field.hidden;
      question.field.hidden = question.field.disabled = !due.has(question);
      if (isNew && tell) this.announce(say("question.appeared", { title: question.title }));
    }
    for (const group of this.form.querySelectorAll(".group, .part")) {
      group.hidden = !group.querySelector("fieldset.question:not([hidden])");
    }
  }

  // -- answers

  read(questions) {
    const given = questions.map((question) => [question.place, question.answer.read()]);
    return Object.fromEntries(given.filter(([, answer]) => answer !== undefined));
  }

  get answers() {
    return this.read(this.due());
  }

  fill(answers) {
    for (const question of this.all) question.answer.write(answers[question.place]);
    this.ask();
  }

  // -- what is missing

  mark(question, text) {
    const { field } = question;
    const fault = field.querySelector(`#${CSS.escape(field.id)}-fault`);
    fault.textContent = text;
    fault.hidden = !text;
    field.classList.toggle("faulty", Boolean(text));
    for (const control of field.querySelectorAll("input, textarea")) {
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  /** Mark what is not answered, list it, go to the first; return whether all is well. */
  complete(summary) {
    const due = this.due();
    for (const question of due) if (question.answer.take && !question.answer.take()) return false;
    const missing = due.filter((question) => !question.optional && question.answer.read() === undefined);
    for (const question of this.all) this.mark(question, missing.includes(question) ? say("error.missing") : "");
    this.relist = () => {
      const left = missing.filter((question) => !question.field.hidden && question.answer.read() === undefined);
      this.list(summary, left, say("error.unfinished", { count: left.length }));
    };
    this.relist();
    if (missing.length) {
      this.announce(say("error.unfinished", { count: missing.length }));
      this.enter(missing[0]);
    }
    return missing.length === 0;
  }

  /** Mark what the server did not take. */
  refuse(summary, places) {
    const refused = this.all.filter((question) => question.place in places);
    for (const question of this.all) this.mark(question, refused.includes(question) ? say("error.answer") : "");
    this.relist = () => {};
    this.list(summary, refused, say("error.refused"));
    if (refused.length) this.enter(refused[0]);
  }

  list(summary, questions, heading) {
    if (!questions.length) return summary.replaceChildren();
    const links = questions.map((question) => {
      const link = make("a", { href: `#${question.field.id}`, textContent: question.title });
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.enter(question);
      });
      return make("li", {}, link);
    });
    summary.replaceChildren(make("div", { className: "notice bad" },
      make("p", { textContent: heading }), make("ul", {}, ...links)));
    return undefined;
  }

  enter(question) {
    const controls = [...question.field.querySelectorAll("input, textarea, select, button")];
    const open = controls.filter((control) => !control.disabled && control.getClientRects().length);
    (open.find((control) => control.checked) ?? open[0])?.focus();
    question.field.scrollIntoView({ block: "nearest" });
  }

  // -- keys

  key(event) {
    const isBox = event.target.matches('input[type="radio"], input[type="checkbox"]');
    if (event.isComposing || event.altKey) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit();
    } else if (isBox && !event.ctrlKey && !event.metaKey) {
      if (DIGIT.test(event.key)) this.choose(event);
      if (event.key === "Enter") this.goOn(event);
    }
  }

  /** Choose by a number: the option that bears it on a scale, else the option at that position. */
  choose(event) {
    const field = event.target.closest("fieldset.question");
    if (!field) return;
    const boxes = [...field.querySelectorAll('.options input, .unclear input')].filter((box) => !box.disabled);
    const values = boxes.map((box) => (box.type === "radio" ? JSON.parse(box.value) : null));
    const isNumbered = field.dataset.type === "scale" && values.every((value) => value === "unclear" || value >= 0);
    const byValue = () => boxes[values.indexOf(Number(event.key))] ?? (event.key === "0" ? boxes[values.indexOf(10)] : null);
    const box = isNumbered ? byValue() : boxes[Number(event.key) - 1];
    if (!box) return;
    event.preventDefault();
    box.focus();
    box.click();
  }

  /** Go to the next question, or after the last to the button; nothing is sent. */
  goOn(event) {
    event.preventDefault();
    const field = event.target.closest("fieldset.question");
    const due = this.due();
    const next = due[due.findIndex((question) => question.field === field) + 1];
    if (next) this.enter(next);
    else this.form.querySelector('[type="submit"]').focus();
  }
}

/** Return what a question is called in a list: with the part that it is about. */
function titleOf(field) {
  const part = field.closest(".part")?.querySelector("h3").textContent;
  const title = field.querySelector("legend span").textContent;
  return part ? `${part} ${title}` : title;
}

function isDue(question, answers) {
  return question.when.every(([name, wanted]) => {
    const own = question.part ? answers[`${name}/${question.part}`] : answers[name];
    return wanted.includes(own ?? answers[name]);
  });
}
