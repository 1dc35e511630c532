// A picture enlarged: larger, smaller, next, previous, moved about, with the keyboard as well.

const MOST = 4;

export function enlarging(dialog, root, timeline) {
  const openers = [...root.querySelectorAll("[data-enlarge]")];
  const stage = dialog.querySelector(".stage");
  const shown = stage.querySelector("img");
  const name = dialog.querySelector("h2");
  const button = (what) => dialog.querySelector(`[data-do="${what}"]`);
  let at = 0, scale = 1;

  const resize = (to) => {
    const before = { x: stage.scrollLeft + stage.clientWidth / 2, y: stage.scrollTop + stage.clientHeight / 2 };
    const ratio = Math.min(MOST, Math.max(1, to)) / scale;
    scale = Math.min(MOST, Math.max(1, to));
    stage.dataset.scale = String(scale);
    stage.scrollTo(before.x * ratio - stage.clientWidth / 2, before.y * ratio - stage.clientHeight / 2);
    button("smaller").disabled = scale === 1;
    button("larger").disabled = scale === MOST;
  };
  const show = (number) => {
    at = (number + openers.length) % openers.length;
    const picture = openers[at].querySelector("img");
    shown.src = picture.src;
    shown.alt = name.textContent = picture.alt;
    resize(1);
    timeline.note("zoom");
  };
  const acts = {
    smaller: () => resize(scale - 1), larger: () => resize(scale + 1), close: () => dialog.close(),
    previous: () => show(at - 1), next: () => show(at + 1),
  };
  for (const [what, act] of Object.entries(acts)) button(what).addEventListener("click", act);
  for (const what of ["previous", "next"]) button(what).hidden = openers.length < 2;
  openers.forEach((opener, number) => {
    opener.addEventListener("click", () => {
      show(number);
      dialog.showModal();
      stage.focus();
    });
  });

  const pan = (x, y) => stage.scrollBy({ left: x * stage.clientWidth / 5, top: y * stage.clientHeight / 5 });
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "+": () => resize(scale + 1), "=": () => resize(scale + 1), "-": () => resize(scale - 1), 0: () => resize(1),
      ArrowLeft: () => (scale > 1 ? pan(-1, 0) : show(at - 1)),
      ArrowRight: () => (scale > 1 ? pan(1, 0) : show(at + 1)),
      ArrowUp: () => pan(0, -1), ArrowDown: () => pan(0, 1),
      PageUp: () => show(at - 1), PageDown: () => show(at + 1),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  stage.addEventListener("dblclick", () => resize(scale > 1 ? 1 : 2));
  draggable(stage);
}

function draggable(stage) {
  stage.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    event.preventDefault();
    stage.focus();
    stage.setPointerCapture(event.pointerId);
    stage.classList.add("dragged");
  });
  stage.addEventListener("pointermove", (event) => {
    if (stage.hasPointerCapture(event.pointerId)) stage.scrollBy(-event.movementX, -event.movementY);
  });
  const end = () => stage.classList.remove("dragged");
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
}
