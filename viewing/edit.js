"use strict";
// Editing: one form for the field that is being changed, one on lists for a change to all records that are shown.
(() => {
  const token = document.body.dataset.token;
  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
  const own = (name) => sessionStorage.getItem(`fabula-${name}`) ?? "";

  async function post(body, signal) {
    const answer = await fetch("/api/change", {
      method: "POST", body: JSON.stringify(body), signal, redirect: "error",
      headers: { "content-type": "application/json", "x-review-token": token },
    });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.why);
    return content;
  }

  const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  /** Say in a form what a change does, or did. */
  function tell(form, made, many) {
    const lines = [];
    if (!made.fields) lines.push("Nothing changes.");
    else if (many) lines.push(`${made.saved ? "Saved" : "Would change"}: ${counted(made.fields, "field")} of ${counted(made.records, "record")}.`);
    else if (made.saved) lines.push("Saved.");
    const listed = many ? made.edits.map((edit) => `${edit.id} ${edit.path}: ${shown(edit.old)} → ${shown(edit.new)}`)
      : made.also.map((edit) => `also, because it follows from it: ${edit.path} = ${shown(edit.new)}`);
    lines.push(...listed, ...made.notes.map((note) => `note: ${note}`));
    lines.push(...made.findings.map((one) => `${one.level}: ${one.where} ${one.path}: ${one.message}`));
    if (made.fields && !made.findings.length) lines.push("No rule finds anything.");
    if (made.saved && made.fields) lines.push(`Apply it with: ${made.next}`);
    form.querySelector("ul").replaceChildren(...lines.map((line) => make("li", line)));
  }

  /** Give a form its try and save: `ask` says what is changed. */
  function working(form, ask, many, saved = () => {}) {
    let asking = new AbortController(), timer = 0;
    for (const name of ["who", "why"]) form.elements[name].value = own(name);
    const send = async (save) => {
      asking.abort();
      clearTimeout(timer);
      asking = new AbortController();
      const { who, why } = Object.fromEntries(new FormData(form));
      for (const [name, value] of [["who", who], ["why", why]]) sessionStorage.setItem(`fabula-${name}`, value);
      try {
        const body = ask();
        const made = await post({ ...body, who: who || (save ? "" : "?"), why: why || (save ? "" : "?"), save }, asking.signal);
        tell(form, made, many);
        if (save && made.fields) saved(made);
      } catch (error) {
        if (error.name !== "AbortError") form.querySelector("ul").replaceChildren(make("li", error.message));
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(event.submitter?.value !== "try");
    });
    return () => {
      clearTimeout(timer);
      timer = setTimeout(() => send(false), 400);
    };
  }

  // -- one field
  const dialog = document.querySelector("dialog.editing");
  if (dialog) {
    const form = dialog.querySelector("form"), area = form.elements.new;
    let field = null, value = null;
    const read = () => {
      if (Array.isArray(value)) return area.value.split("\n").map((line) => line.trim()).filter(Boolean)
        .map((line) => (value.every(Number.isFinite) && value.length ? Number(line) : line));
      if (typeof value === "number") return Number(area.value);
      return area.value === "" && value === null ? null : area.value;
    };
    const ask = () => ({ item: dialog.dataset.item, path: field.dataset.path, new: read() });
    const soon = working(form, ask, false, (made) => {
      value = made.edits[0].new;
      field.dataset.value = JSON.stringify(value);
      field.replaceChildren(make("bdi", Array.isArray(value) ? value.join("\n") : shown(value), { className: "text" }),
        make("span", "waits", { className: "badge" }), button(field));
    });
    area.addEventListener("input", soon);
    form.querySelector("[value=close]").addEventListener("click", () => dialog.close());
    const button = (place) => {
      const made = make("button", "edit", { type: "button", className: "edit" });
      made.setAttribute("aria-label", `edit ${place.dataset.path}`);
      made.addEventListener("click", () => {
        field = place;
        value = JSON.parse(place.dataset.value);
        dialog.querySelector("h2").textContent = place.dataset.path;
        area.value = Array.isArray(value) ? value.join("\n") : value ?? "";
        form.querySelector("ul").replaceChildren();
        dialog.showModal();
        area.focus();
      });
      return made;
    };
    for (const place of document.querySelectorAll("[data-path]")) place.append(button(place));
  }

  // -- many records
  const all = document.querySelector("form.all");
  if (all) working(all, () => {
    const { path, find, new: text } = Object.fromEntries(new FormData(all));
    return { list: JSON.parse(all.dataset.list), path, find, new: text };
  }, true);
})();
