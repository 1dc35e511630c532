// How each type of question is read from the page and written to it. An answer that is not given is undefined.

import { correcting } from "./correcting.js";
import { labelling } from "./labelling.js";

const UNCLEAR = "unclear";
const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);

/** A choice among radio buttons, whose values are JSON. */
function choosing(field, changed) {
  const radios = [...field.querySelectorAll('input[type="radio"]')];
  const clear = field.querySelector("[data-clear]");
  const chosen = () => radios.find((radio) => radio.checked);
  const show = () => {
    if (clear) clear.hidden = !chosen();
  };
  for (const radio of radios) radio.addEventListener("change", () => {
    show();
    changed();
  });
  clear?.addEventListener("click", () => {
    chosen().checked = false;
    radios[0].focus();
    show();
    changed();
  });
  return {
    read: () => (chosen() ? JSON.parse(chosen().value) : undefined),
    write: (answer) => {
      for (const radio of radios) radio.checked = same(JSON.parse(radio.value), answer);
      show();
    },
  };
}

function writing(field, changed) {
  const area = field.querySelector("textarea");
  area.addEventListener("input", changed);
  return {
    read: () => area.value.trim() || undefined,
    write: (answer) => { area.value = typeof answer === "string" ? answer : ""; },
    lock: (locked) => { area.disabled = locked; },
  };
}

const TYPES = { choice: choosing, scale: choosing, labels: labelling, text: writing, edits: correcting };

/** Return how a question is read and written, Unclear included. */
export function answering(field, changed, announce) {
  const own = TYPES[field.dataset.type](field, changed, announce);
  const unclear = field.querySelector("[data-unclear]");
  if (!unclear) return own;
  const lock = () => own.lock?.(unclear.checked);
  unclear.addEventListener("change", () => {
    lock();
    changed();
  });
  return {
    ...own,
    read: () => (unclear.checked ? UNCLEAR : own.read()),
    write: (answer) => {
      unclear.checked = answer === UNCLEAR;
      own.write(unclear.checked ? undefined : answer);
      lock();
    },
  };
}
