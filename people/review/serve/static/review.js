// What a page does, by its name. Without script a page says so and nothing else.

import { ItemPage } from "./item.js";
import { Lost, deliver, post, waiting } from "./sending.js";
import { newId, say } from "./words.js";

const byId = (id) => document.getElementById(id);

/** Send a change once; on success open what comes next, else say what is wrong. */
async function act(name, body, form) {
  const said = form.querySelector("[data-said]");
  const buttons = [...form.querySelectorAll("button")];
  const tell = (why) => { said.textContent = say(why); };
  for (const button of buttons) button.disabled = true;
  tell("saving");
  try {
    const answer = await post(name, body);
    if (answer.ok) return location.assign("/");
    if (answer.status === 403) tell("error.expired");
    else tell(answer.content.why === "unfinished" ? "error.incomplete" : "error.refused");
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    tell(error.message === "network" ? "error.again" : "error.busy");
  }
  for (const button of buttons) button.disabled = false;
  return undefined;
}

function onSubmit(id, send) {
  byId(id)?.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.currentTarget);
  });
}

function consent() {
  onSubmit("agreeing", (form) => {
    const wanted = byId("expertise"), chosen = form.elements.expertise?.value;
    if (wanted && !chosen) {
      const fault = byId("expertise-fault");
      fault.textContent = say("error.missing");
      fault.hidden = false;
      wanted.classList.add("faulty");
      return wanted.querySelector("input").focus();
    }
    return act("agree", { publish: form.elements.publish?.checked === true, expertise: chosen ?? null }, form);
  });
}

function countdown() {
  const clock = byId("clock"), onward = byId("onward");
  const end = performance.now() + 1000 * Number(clock.dataset.seconds);
  const open = () => {
    onward.hidden = false;
    clock.textContent = "";
    document.querySelector("[data-said]").textContent = say("break.over");
  };
  const step = () => {
    const left = Math.ceil((end - performance.now()) / 1000);
    if (left <= 0) return open();
    const time = left < 60 ? say("break.seconds", { seconds: left })
      : say("break.minutes", { time: `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` });
    if (clock.textContent !== time) clock.textContent = time;
    return setTimeout(step, 250);
  };
  onward.hidden = true;
  step();
}

function dialogs() {
  for (const opener of document.querySelectorAll("[data-opens]")) {
    const dialog = byId(opener.dataset.opens);
    opener.addEventListener("click", () => dialog.showModal());
  }
  for (const button of document.querySelectorAll("[data-closes]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  const leave = document.querySelector('[data-act="leave"]');
  leave?.addEventListener("click", () => act("leave", {}, leave.closest("dialog")));
}

/** Send what was kept before; an item sees to that itself. */
async function flush() {
  const kept = waiting();
  for (const entry of kept) {
    const answer = await deliver(entry);
    if (answer.status === 403) return;
  }
  if (kept.length) location.reload();
}

function start() {
  byId("unscripted").remove();
  for (const element of document.querySelectorAll("[data-scripted]")) element.hidden = false;
  dialogs();
  consent();
  const closing = newId();
  onSubmit("closing", (form) => act("close", { id: closing, block: form.dataset.block }, form));
  onSubmit("more", (form) => act("more", {}, form));
  const page = document.body.dataset.page;
  if (page === "break") countdown();
  if (page === "item") new ItemPage();
  else flush();
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
}

start();
