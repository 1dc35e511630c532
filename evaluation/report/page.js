"use strict";
// Sorting and filtering. The page is complete without it.
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    const heads = Array.from(table.tHead.rows[0].cells);
    const key = (row, column) => {
      const cell = row.cells[column];
      const value = cell.dataset.value;
      if (value === undefined) return cell.textContent.trim();
      return value === "" ? null : Number(value);
    };
    const compare = (a, b, column, sign) => {
      const x = key(a, column), y = key(b, column);
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort"));
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        body.append(...Array.from(body.rows).sort((a, b) => compare(a, b, column, up ? 1 : -1)));
      });
    });
  }

  addEventListener("beforeprint", () => document.querySelectorAll("details.table").forEach((one) => { one.open = true; }));

  const form = document.getElementById("filter");
  if (!form) return;
  const cases = Array.from(form.closest("section").querySelectorAll(".case")); // other sections have cards, too
  const texts = new Map(cases.map((one) => [one, one.textContent.toLowerCase()]));
  const count = form.querySelector("output");
  const apply = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const words = (wanted.words || "").toLowerCase().trim();
    let shown = 0;
    for (const one of cases) {
      let items = 0;
      for (const item of one.querySelectorAll(".item")) {
        const fits = (!wanted.group || item.dataset.group === wanted.group)
          && (!wanted.wrong || item.dataset.wrong.split(" ").includes(wanted.wrong));
        item.hidden = !fits;
        items += fits;
      }
      const fits = items > 0
        && (!wanted.method || one.dataset.method === wanted.method)
        && (!wanted.why || one.dataset.why === wanted.why)
        && (!words || texts.get(one).includes(words));
      one.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${cases.length} shown`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
})();
