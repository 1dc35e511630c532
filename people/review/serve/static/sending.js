// Sending: one request, and answers that are kept on this device until the server says that it has them.

import { mark, token } from "./words.js";

const KEY = "fabula-review-waiting";
const LONGEST_PAUSE = 10_000;
const PATIENCE = 20_000;

/** No answer came, or one that says "later": nobody knows whether the request was carried out. */
export class Lost extends Error {}

/** Send a request; return status and content of its answer. Throws Lost ("network" or "server"). */
export async function post(name, body, { keepalive = false } = {}) {
  let answer, content = {};
  try {
    answer = await fetch(`/api/${name}`, {
      method: "POST", body: JSON.stringify(body), keepalive, cache: "no-store", credentials: "same-origin",
      headers: { "content-type": "application/json", "x-review-token": token },
      redirect: "error", signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Lost("network");
  }
  if (answer.status >= 500 || answer.status === 408 || answer.status === 429) throw new Lost("server");
  try {
    content = await answer.json();
  } catch {
    if (answer.ok) throw new Lost("network");
  }
  if (!answer.ok && typeof content.why !== "string") throw new Lost("server"); // something between us and the server
  return { ok: answer.ok, status: answer.status, content };
}

/** Wait before the next try: longer each time, and no longer than until the network is back. */
function pause(turn) {
  const most = Math.min(LONGEST_PAUSE, 1000 * 2 ** turn);
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer);
      removeEventListener("online", go);
      resolve();
    };
    const timer = setTimeout(go, most * (0.75 + Math.random() / 2));
    addEventListener("online", go);
  });
}

// -- what waits on this device, of whom

let memory = [];

function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored : [];
  } catch {
    return memory;
  }
}

function store(entries) {
  memory = entries;
  try {
    if (entries.length) localStorage.setItem(KEY, JSON.stringify(entries));
    else localStorage.removeItem(KEY);
  } catch {
    // Storage is switched off or full: the answer waits in this page only, which stays until it is sent.
  }
}

/** Keep a request until the server has it: {id, name, body}. */
export function keep(entry) {
  store([...load().filter((other) => other.id !== entry.id), { ...entry, mark }]);
}

function forget(entry) {
  store(load().filter((other) => other.id !== entry.id));
}

/** Return what waits of whoever reads this page, oldest first. */
export function waiting() {
  return mark ? load().filter((entry) => entry.mark === mark) : [];
}

/**
 * Send what was kept until there is an answer; it counts once, since its id stays the same.
 *
 * Return the answer. After a lost session it stays kept; after any other answer it is forgotten.
 * `tell` is called with "network" or "server" whenever a try was in vain.
 */
export async function deliver(entry, tell = () => {}) {
  for (let turn = 0; ; turn += 1) {
    try {
      const answer = await post(entry.name, entry.body);
      if (answer.status !== 403) forget(entry);
      return answer;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      tell(error.message);
    }
    await pause(turn);
  }
}
