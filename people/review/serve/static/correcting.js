// Corrections: a field of the record, what stands there, and a new value of the kind that the field takes.

import { make, say } from "./words.js";

const WHOLE = /^[-+]?\d+$/u;
const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);

function number(text) {
  if (!WHOLE.test(text)) throw new Error(say("correct.wrong.number"));
  return Number(text);
}

/** How a value is written, and how what was written is read: by what the field takes. */
const FORMS = {
  text: { write: (value) => value ?? "", read: (text) => text || null },
  number: { write: (value) => String(value ?? ""), read: (text) => (text ? number(text) : null) },
  texts: { write: (lines) => lines.join("\n"), read: (text) => linesOf(text) },
  numbers: { write: (lines) => lines.join("\n"), read: (text) => linesOf(text.replaceAll(/[,;\s]+/gu, "\n")).map(number) },
};

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const isNothing = (value) => value === null || value === "" || (Array.isArray(value) && value.length === 0);

/** Return a value as it is shown. */
function shown(value) {
  if (isNothing(value)) return make("span", { className: "soft", textContent: say("correct.none") });
  if (Array.isArray(value)) return make("ul", {}, ...value.map((entry) => make("li", {}, shown(entry))));
  return make("span", { className: "passage", textContent: typeof value === "object" ? JSON.stringify(value) : String(value) });
}

export function correcting(field, changed, announce) {
  const part = (name) => field.querySelector(`[data-${name}]`);
  const add = part("add");
  if (!add) return { read: () => undefined, write: () => {} };
  const list = part("corrected"), box = part("correcting"), select = part("field");
  const area = part("new"), pick = part("pick"), wrong = part("wrong");
  const fields = new Map([...select.options].filter((option) => option.value).map((option) => [
    option.value, { label: option.textContent, ...JSON.parse(option.dataset.value) },
  ]));
  let edits = [];

  const draw = () => {
    list.replaceChildren(...edits.map((edit) => {
      const { label, value } = fields.get(edit.path);
      const button = (what, act) => {
        const made = make("button", { type: "button", className: "small", textContent: say(`correct.${what}`) },
          make("span", { className: "sr", textContent: ` ${label}` }));
        made.addEventListener("click", act);
        return made;
      };
      const remove = () => {
        edits = edits.filter((other) => other !== edit);
        draw();
        add.focus();
        announce(say("correct.removed", { label }));
        changed();
      };
      return make("li", {}, make("p", { className: "label", textContent: label }),
        make("del", {}, shown(value)), make("ins", {}, shown(edit.new)),
        make("div", { className: "row" }, button("change", () => open(edit)), button("remove", remove)));
    }));
    list.hidden = edits.length === 0;
  };

  // -- the form in which one is written

  const fault = (text) => {
    wrong.textContent = text;
    wrong.hidden = !text;
    for (const control of [area, pick]) {
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  };
  const written = () => {
    const chosen = fields.get(select.value);
    return chosen.options.length ? JSON.parse(pick.value) : FORMS[chosen.takes].read(area.value.trim());
  };
  const choose = () => {
    const chosen = fields.get(select.value);
    part("writing").hidden = !chosen;
    fault("");
    if (!chosen) return;
    const edit = edits.find((other) => other.path === select.value);
    const value = edit ? edit.new : chosen.value;
    part("now").replaceChildren(shown(chosen.value));
    area.hidden = area.labels[0].hidden = chosen.options.length > 0;
    pick.hidden = pick.labels[0].hidden = chosen.options.length === 0;
    if (chosen.options.length) {
      pick.replaceChildren(...chosen.options.map((option) => new Option(
        option === null ? say("correct.none") : String(option), JSON.stringify(option), false, same(option, value),
      )));
      part("how").textContent = "";
    } else {
      area.value = FORMS[chosen.takes].write(value);
      area.rows = Math.min(12, Math.max(2, area.value.split("\n").length + Math.ceil(area.value.length / 60)));
      part("how").textContent = [say(`correct.${chosen.takes}`), chosen.optional ? say("correct.empty") : ""].join(" ").trim();
    }
  };
  const open = (edit) => {
    box.hidden = false;
    add.hidden = true;
    select.value = edit ? edit.path : fields.size === 1 ? [...fields.keys()][0] : "";
    choose();
    (select.value ? [area, pick].find((control) => !control.hidden) : select).focus();
  };
  const shut = () => {
    box.hidden = true;
    add.hidden = false;
  };
  const check = (value) => {
    const chosen = fields.get(select.value);
    if (same(value, chosen.value)) throw new Error(say("correct.wrong.same"));
    if (isNothing(value) && !chosen.optional && !chosen.options.length) throw new Error(say("correct.wrong.nothing"));
  };
  /** Take what stands in the open form; return whether there is nothing wrong with it. What was not changed is let be. */
  const take = () => {
    if (box.hidden || !select.value) return true;
    try {
      const value = written();
      const before = edits.find((edit) => edit.path === select.value);
      if (!before || !same(before.new, value)) check(value);
      edits = [...edits.filter((edit) => edit !== before), { path: select.value, new: value }];
    } catch (error) {
      fault(error.message);
      [area, pick].find((control) => !control.hidden).focus();
      return false;
    }
    draw();
    shut();
    return true;
  };

  add.addEventListener("click", () => open(null));
  select.addEventListener("change", choose);
  part("keep").addEventListener("click", () => {
    if (!select.value) select.focus();
    else if (take()) {
      add.focus();
      announce(say("correct.kept"));
      changed();
    }
  });
  part("drop").addEventListener("click", () => {
    shut();
    add.focus();
  });
  return {
    take,
    read: () => (edits.length ? edits : undefined),
    write: (answer) => {
      edits = (Array.isArray(answer) ? answer : []).filter((edit) => fields.has(edit?.path));
      draw();
    },
    lock: (locked) => {
      add.disabled = locked;
      if (!locked) return;
      edits = [];
      shut();
      draw();
    },
  };
}
