// Elements and texts. What comes from outside becomes text nodes, never markup.

export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) { // one by one: a call takes only so many arguments
    if (child !== null && child !== undefined && child !== "") node.append(child);
  }
  return node;
}

export const $ = (id) => document.getElementById(id);

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// A name in one line: characters that are not seen, or turn the direction of others, are written as their number.
export function plain(text, most = 200) {
  const given = String(text ?? "");
  return numbered(given.length > most ? `${given.slice(0, most)}…` : given);
}

const numbered = (text) => text.replace(UNSEEN, (one) => `<${one.charCodeAt(0).toString(16).padStart(4, "0")}>`);

// The same for a text of several lines.
export const lines = (text) => text.split("\n").map((line) => line.split("\t").map(numbered).join("\t")).join("\n");

const PIECE = 500;

// A text for a ``pre``, in pieces of so many lines. A browser lays out those that are in view.
export function pieces(text) {
  const rows = text.split("\n");
  if (rows.length <= PIECE) return [text];
  const nodes = [];
  for (let at = 0; at < rows.length; at += PIECE) {
    const end = at + PIECE < rows.length ? "\n" : "";
    nodes.push(el("span", { class: "piece" }, rows.slice(at, at + PIECE).join("\n") + end));
  }
  return nodes;
}

export const name = (text, most) => el("bdi", {}, plain(text, most));

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export function clock(time, options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }) {
  const then = new Date(time);
  if (Number.isNaN(then.getTime())) return "";
  const told = then.toLocaleTimeString([], options);
  return then.toDateString() === new Date().toDateString() ? told : `${then.toLocaleDateString()} ${told}`;
}

export const stateName = (state) => String(state ?? "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-");
export const MESSAGE = "message, no task";
export const ENDED = new Set(["completed", "failed", "canceled", "rejected", MESSAGE]);
export const WAITS = new Set(["input-required", "auth-required"]);

export const badge = (state) => el("span", { class: "badge", "data-state": state }, state);

export async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

export const copyButton = (text, label = "Copy") =>
  el("button", { type: "button", class: "quiet", onclick: (event) => copy(typeof text === "function" ? text() : text, event.currentTarget) }, label);
