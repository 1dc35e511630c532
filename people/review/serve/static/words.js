// What the page says of itself: its token, whose answers it may send, the words of the interface.

const meta = (name) => document.querySelector(`meta[name="review-${name}"]`)?.content ?? "";

export const token = meta("token");
export const mark = meta("mark");
const words = JSON.parse(meta("words") || "{}");

/** Return words of the interface, with values in their places. */
export function say(name, values = {}) {
  return Object.entries(values).reduce(
    (text, [key, value]) => text.replaceAll(`{${key}}`, String(value)), words[name] ?? name,
  );
}

/** Return a new element with properties and children; texts are put in as text. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Return an id that nobody else draws. Without TLS browsers keep randomUUID back. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
