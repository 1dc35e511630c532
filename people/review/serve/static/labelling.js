// Labels: up to so many, in an order that is shown and can be changed.

import { make, say } from "./words.js";

export function labelling(field, changed, announce) {
  const most = Number(field.dataset.most);
  const boxes = [...field.querySelectorAll('.labels input[type="checkbox"]')];
  const list = field.querySelector("[data-chosen]");
  const wordsOf = (box) => box.closest("label").querySelector("[data-words]").textContent;
  let chosen = [], locked = false;

  const move = (box, by, what) => {
    const from = chosen.indexOf(box), to = from + by;
    chosen.splice(from, 1);
    chosen.splice(to, 0, box);
    draw();
    const row = list.children[to];
    const button = row.querySelector(`[data-move="${what}"]`);
    (button.disabled ? row.querySelector("button:not(:disabled)") : button).focus();
    announce(say("labels.now", { words: wordsOf(box), number: to + 1, total: chosen.length }));
    changed();
  };
  const button = (box, words, what, sign, disabled, act) => {
    const made = make("button", { type: "button", className: "small", disabled: disabled || locked },
      make("span", { textContent: sign, ariaHidden: "true" }),
      make("span", { className: "sr", textContent: say(`labels.${what}`, { words }) }));
    made.dataset.move = what;
    made.addEventListener("click", act);
    return made;
  };
  const draw = () => {
    list.replaceChildren(...chosen.map((box, number) => {
      const words = wordsOf(box);
      return make("li", {}, make("span", { className: "words", textContent: words }),
        button(box, words, "earlier", "↑", number === 0, () => move(box, -1, "earlier")),
        button(box, words, "later", "↓", number === chosen.length - 1, () => move(box, 1, "later")),
        button(box, words, "remove", "×", false, () => {
          box.checked = false;
          drop(box);
          box.focus();
        }));
    }));
    list.hidden = most < 2 || chosen.length === 0;
    for (const box of boxes) {
      const turn = chosen.indexOf(box) + 1;
      box.checked = turn > 0;
      box.closest("label").querySelector(".turn").textContent = most > 1 && turn ? String(turn) : "";
      box.disabled = locked;
    }
  };
  const drop = (box) => {
    chosen = chosen.filter((other) => other !== box);
    draw();
    changed();
  };

  for (const box of boxes) box.addEventListener("change", () => {
    if (!box.checked) return drop(box);
    if (chosen.length >= most && most > 1) {
      box.checked = false;
      announce(say("labels.full", { most }));
      field.classList.add("full");
      return undefined;
    }
    chosen = most > 1 ? [...chosen, box] : [box];
    draw();
    if (most > 1) announce(say("labels.now", { words: wordsOf(box), number: chosen.length, total: chosen.length }));
    changed();
    return undefined;
  });
  return {
    read: () => (chosen.length ? chosen.map((box) => JSON.parse(box.value)) : undefined),
    write: (answer) => {
      const wanted = Array.isArray(answer) ? answer.map((value) => JSON.stringify(value)) : [];
      chosen = wanted
        .map((value) => boxes.find((box) => JSON.stringify(JSON.parse(box.value)) === value))
        .filter(Boolean).slice(0, most);
      draw();
    },
    lock: (shut) => {
      locked = shut;
      if (shut) chosen = [];
      draw();
    },
  };
}
