// The page of a case: what is decided, and why. A decision is kept on this device until the server has it.

import { enlarging } from "./enlarge.js";
import { Questions } from "./questions.js";
import { deliver, keep } from "./sending.js";
import { newId, say } from "./words.js";

const REASON = "case_reason";
const byId = (id) => document.getElementById(id);
const form = byId("questions"), said = byId("said"), save = byId("save");
const questions = new Questions(form, { changed: () => {}, announce: (text) => { byId("live").textContent = text; } });

function tell(text, kind = "") {
  said.textContent = text;
  said.className = `said ${kind}`;
}

function hold(on) {
  byId("asked").inert = save.disabled = on;
  form.setAttribute("aria-busy", String(on));
}

/** Return a decision as the server takes it. */
function decision() {
  const { [form.dataset.place]: value, [REASON]: reason, ...rest } = questions.answers;
  return { id: newId(), case: form.dataset.case, value, reason, edits: Object.values(rest)[0] ?? [] };
}

async function decide() {
  if (!questions.complete(byId("faults"))) return;
  const body = decision(), entry = { id: body.id, name: "decide", body };
  keep(entry);
  hold(true);
  tell(say("saving"));
  const answer = await deliver(entry, (why) => tell(say(`error.${why}`), "warn"));
  if (answer.ok) return location.assign(form.dataset.next);
  hold(answer.status === 403);
  if (answer.status === 403) return tell(say("error.expired.kept"), "bad");
  if (answer.content.why === "closed") return tell(say("case.gone"), "bad");
  questions.refuse(byId("faults"), answer.content.fields ?? {});
  return tell(say("error.refused"), "bad");
}

questions.fill(JSON.parse(form.dataset.answers) ?? {});
enlarging(byId("enlarged"), byId("evidence"), { note: () => {} });
for (const button of document.querySelectorAll("[data-take]")) {
  button.addEventListener("click", () => {
    const reason = questions.answers[REASON];
    questions.fill({ ...JSON.parse(button.dataset.take), ...(reason === undefined ? {} : { [REASON]: reason }) });
    form.scrollIntoView({ block: "nearest" });
    form.querySelector("input:checked")?.focus();
  });
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  decide();
});
