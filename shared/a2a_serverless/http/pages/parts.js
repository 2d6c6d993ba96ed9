// Messages and artifacts, shown as what they are. Pictures come from the task's own data and from nowhere else.
import { copyButton, el, name, plain, size } from "./dom.js";
import { markdown } from "./markdown.js";

const SHOWN = 200_000;
const DATA_SHOWN = 100_000;
const DATA_OPEN = 1_500;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const BASE64 = /^[A-Za-z0-9+/\-_]*={0,2}$/;

const mediaType = (part) => String(part.mediaType ?? "").split(";", 1)[0].trim().toLowerCase();
const bytesOf = (base64) => Math.floor((base64.length * 3) / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
const isMarkdown = (type, title) => type === "text/markdown" || (!type.startsWith("text/") || type === "text/plain") && /\.(md|markdown)$/i.test(title);

// The nodes of a message's parts, or of an artifact's. ``title`` is the artifact's name; ``all`` are the task's artifacts.
export function parts(given, { title = "", all = [], prose = false, opens = false } = {}) {
  const nodes = [];
  let texts = [];
  const flush = () => {
    if (texts.length) nodes.push(text(texts.map((part) => part.text).join(""), { type: mediaType(texts[0]), title: texts[0].filename ?? title, all, prose }));
    texts = [];
  };
  for (const part of given) {
    if (typeof part.text === "string" && (!texts.length || (texts[0].filename === part.filename && texts[0].mediaType === part.mediaType))) texts.push(part);
    else {
      flush();
      if (typeof part.text === "string") texts.push(part);
      else nodes.push(other(part, title, opens));
    }
  }
  flush();
  return nodes;
}

function text(content, { type, title, all, prose }) {
  const rich = prose || isMarkdown(type, title);
  const draw = (shown) => (rich ? markdown(shown, (url, label) => pictureOf(url, label, all)) : el("pre", { class: "text", dir: "auto", tabindex: "0" }, shown));
  if (content.length <= SHOWN) return draw(content);
  const box = el("div", {}, draw(content.slice(0, SHOWN)));
  const more = el("button", { type: "button", onclick: () => box.replaceChildren(el("pre", { class: "text", dir: "auto", tabindex: "0" }, content)) },
    `Show all ${size(content.length)} as text`);
  box.append(el("p", { class: "note" }, `The first ${size(SHOWN)} are shown. `, more));
  return box;
}

function other(part, title, opens) {
  if (typeof part.raw === "string") return raw(part, part.filename ?? title);
  if (typeof part.url === "string") return address(part, title);
  return data(part.data, opens);
}

function raw(part, title) {
  const type = mediaType(part);
  if (!BASE64.test(part.raw)) return el("p", { class: "file" }, name(title || "file"), " is not valid base64.");
  return PICTURES.has(type) ? picture(part.raw, type, title) : file(part.raw, type, title);
}

const standard = (base64) => base64.replaceAll("-", "+").replaceAll("_", "/");

export function picture(base64, type, title) {
  const image = el("img", { src: `data:${type};base64,${standard(base64)}`, alt: plain(title || "picture"), decoding: "async" });
  const box = el("figure", {}, image, el("figcaption", {}, file(base64, type, title)));
  image.addEventListener("error", () => image.replaceWith(el("p", { class: "note" }, "This is not a picture that the browser can show.")));
  return box;
}

function file(base64, type, title) {
  return el("p", { class: "file" }, name(title || "file"), el("span", { class: "dim" }, `${plain(type || "unknown type", 80)}, ${size(bytesOf(base64))}`),
    el("button", { type: "button", class: "quiet", onclick: () => save(base64, title) }, "Download"));
}

function save(base64, title) {
  const bytes = Uint8Array.from(atob(standard(base64)), (one) => one.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  el("a", { href: url, download: plain(title || "file").replace(/[\\/:*?"<>|]/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function address(part, title) {
  const shown = name(part.filename ?? title ?? "file");
  const safe = /^https?:\/\//i.test(part.url);
  const link = safe ? el("a", { href: part.url, target: "_blank", rel: "noopener noreferrer nofollow" }, plain(part.url, 120)) : el("code", {}, plain(part.url, 120));
  return el("p", { class: "file" }, shown, el("span", { class: "dim" }, plain(mediaType(part) || "a file elsewhere", 80)), link);
}

const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function data(value, opens) {
  const count = value && typeof value === "object" ? Object.keys(value).length : 0;
  const told = Array.isArray(value) ? counted(count, "item") : value && typeof value === "object" ? counted(count, "member") : "a value";
  let text;
  const whole = () => (text ??= JSON.stringify(value, null, 2) ?? "null");
  const details = el("details", { class: "data" }, el("summary", {}, `Data: ${told}`));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    details.append(el("pre", { tabindex: "0" }, whole().length > DATA_SHOWN ? `${whole().slice(0, DATA_SHOWN)}…` : whole()), copyButton(whole()));
  });
  details.open = opens && whole().length <= DATA_OPEN;
  return details;
}

function pictureOf(url, label, all) {
  const found = all.flatMap((one) => one.parts.map((part) => ({ part, title: part.filename ?? one.name })))
    .find(({ part, title }) => title === url && typeof part.raw === "string" && PICTURES.has(mediaType(part)) && BASE64.test(part.raw));
  return found ? el("img", { src: `data:${mediaType(found.part)};base64,${standard(found.part.raw)}`, alt: plain(label || url) }) : null;
}

export function artifact(one, all) {
  const chars = one.parts.reduce((sum, part) => sum + (part.text?.length ?? (part.raw ? bytesOf(part.raw) : 0)), 0);
  const texts = one.parts.filter((part) => typeof part.text === "string").map((part) => part.text);
  return el("article", { class: "artifact", "data-artifact": one.artifactId },
    el("header", { class: "row" }, el("h3", {}, name(one.name || one.artifactId)), chars ? el("span", { class: "dim" }, size(chars)) : null, el("span", { class: "space" }),
      texts.length ? copyButton(() => texts.join("")) : null),
    one.description ? el("p", { class: "note" }, plain(one.description, 500)) : null,
    parts(one.parts, { title: one.name ?? "", all, opens: true }));
}
