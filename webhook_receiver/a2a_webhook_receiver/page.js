// The page: its state, the list and the dialog. Text from outside becomes text nodes. Pictures come from data URLs only.
import { $, badge, clock, copy, duration, el, ENDED, name, plain, size } from "./dom.js";
import { markdown } from "./markdown.js";

const KEEP = 300;
const KEEP_REASON = 10;
const KEEP_PARTS = 60;
const OPEN_ROWS = 12;
const POLL = 3000;
const BADGES = { late: "Late", duplicate: "Duplicate", challenge: "Challenge" };
const FILTERS = {
  all: ["All", ["accepted", "late", "challenge", "duplicate", "refused"]],
  accepted: ["Accepted", ["accepted", "late", "challenge"]],
  duplicate: ["Duplicates", ["duplicate"]],
  refused: ["Refused", ["refused"]],
};
const SNAPSHOT = "A snapshot is the whole task as of its event. Every webhook begins with one; a webhook that is far behind "
  + "gets one in place of the single events. In A2A 0.3 every notification is one.";
const state = { entries: new Map(), tasks: new Map(), groups: new Map(), tokens: [], outcomes: {}, refused: {}, checks: [], receiver: null,
  filter: "all", task: null, search: "", last: 0, refreshing: false };
const whole = new Map();

const button = (label, act, more = {}) => el("button", { type: "button", onclick: (event) => act(event.currentTarget), ...more }, label);

// Makes nodes the children of parent. Nodes that are there already stay where they are: open and focused ones remain so.
function arrange(parent, nodes) {
  nodes.forEach((node, at) => { if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] || null); });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const number = (value) => value.toLocaleString("en");
const many = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const verified = (entry) => entry.outcome === "accepted" || entry.outcome === "late";
const taskOf = (entry) => entry.taskId || (entry.claimed && entry.claimed.taskId) || "";

function title(taskId) {
  const { agent, prompt } = state.tasks.get(taskId) || {};
  const words = prompt ? name(prompt) : agent ? "" : `Task ${plain(taskId).slice(0, 8)}`;
  return [agent && el("span", { class: "agent" }, name(agent)), agent && words ? " " : "", words].filter(Boolean);
}

// The part of the documents about refused webhooks: a link if the receiver knows the site, else its place in the repository.
function documented(words) {
  const base = state.receiver.documentsUrl.replace(/\/$/, "");
  if (!base) return el("code", {}, "docs/webhooks.md#a-webhook-was-refused");
  return el("a", { href: `${base}/webhooks.html#a-webhook-was-refused`, target: "_blank", rel: "noopener noreferrer" }, words);
}

// ---- content ----

function loadPart(entry, at) {
  const key = `${entry.number}/${at}`;
  if (!whole.has(key)) {
    whole.set(key, ask(`api/notifications/${entry.number}/parts/${at}`));
    if (whole.size > KEEP_PARTS) whole.delete(whole.keys().next().value);
  }
  return whole.get(key);
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.json();
}

function picture(entry, value) {
  const place = el("div", {}, el("p", { class: "file" }, value.text));
  loadPart(entry, value.at).then(({ source }) => {
    if (source) place.replaceChildren(el("img", { src: source, alt: plain(value.name || "picture") }));
  }, () => place.append(el("p", { class: "file" }, "The picture is no longer kept here.")));
  return place;
}

// Gives the picture of the task that a Markdown text names, from pieces of its artifacts.
function pictureFrom(pieces) {
  return (url, label) => {
    const found = pieces.find(({ value, artifact }) => (value.name || artifact) === url);
    if (!found) return null;
    const image = el("img", { alt: plain(label || url) });
    loadPart(found.entry, found.value.at).then(({ source }) => { if (source) image.src = source; }, () => {});
    return image;
  };
}

function link(value) {
  const safe = /^https?:\/\//i.test(value.text) && !value.cut;
  const attributes = { href: value.text, target: "_blank", rel: "noopener noreferrer nofollow" };
  return el("p", { class: "file" }, "File behind a link: ", safe ? el("a", attributes, plain(value.text)) : plain(value.text));
}

function isMarkdown(value, title) {
  const type = (value.type || "").split(";", 1)[0].trim().toLowerCase();
  return value.kind === "text" && (type === "text/markdown" || (["", "text/plain"].includes(type) && /\.(md|markdown)$/i.test(value.name || title)));
}

const draw = (text, pictures) => (pictures ? markdown(text, pictureFrom(pictures)) : el("pre", { class: "words", dir: "auto", tabindex: "0" }, text));

// A text, or data as JSON. It is drawn as Markdown if ``pictures`` is given: the pictures that it may name.
function words(entry, value, pictures) {
  const text = el("div", { class: "text", tabindex: pictures ? "0" : null }, draw(value.text, pictures));
  if (!value.cut) return text;
  const more = button(`Show all ${number(value.length)} characters`, async () => {
    try {
      text.replaceChildren(draw((await loadPart(entry, value.at)).text, pictures));
      more.remove();
    } catch {
      more.replaceWith(el("p", { class: "file" }, "The rest is no longer kept here."));
    }
  });
  return el("div", {}, text, more);
}

function part(entry, value, pictures) {
  if (value.kind === "image") return picture(entry, value);
  if (value.kind === "link") return link(value);
  if (value.kind === "file") return el("p", { class: "file" }, plain(value.text));
  if (value.kind === "text") return words(entry, value, pictures);
  return el("details", { class: "data" }, el("summary", {}, `Data, ${many(value.length, "character")} of JSON`), words(entry, value));
}

// The message of an agent is Markdown.
const spoken = (entry) => (entry.message || []).map((value) => part(entry, value, value.kind === "text" ? [] : null));

function content(entry) {
  const nodes = spoken(entry);
  for (const artifact of entry.artifacts || []) {
    if (entry.kind === "task") nodes.push(el("p", { class: "file" }, name(artifact.name)));
    nodes.push(...artifact.parts.map((value) => part(entry, value, isMarkdown(value, artifact.name) ? [] : null)));
  }
  return nodes.length ? el("div", { class: "content" }, ...nodes) : null;
}

// ---- a task: its events joined ----

// The artifacts as they are after these entries, which are in the order of their events.
function joinArtifacts(entries) {
  let artifacts = new Map();
  for (const entry of entries) {
    if (entry.kind === "task") artifacts = new Map();
    for (const { id, name, parts } of entry.artifacts || []) {
      const known = entry.append && artifacts.get(id);
      const pieces = [...(known ? known.pieces : []), ...parts.map((value) => ({ entry, value, artifact: name }))];
      artifacts.set(id, { id, name, pieces, finished: entry.finished });
    }
  }
  return artifacts;
}

// Chunks of text that follow each other are one block; everything else is a block of its own.
function blocks(pieces) {
  const found = [];
  for (const { entry, value } of pieces) {
    const joins = value.kind === "text" && !value.cut;
    const before = found.at(-1);
    if (joins && before && before.joins) before.value = { ...before.value, text: before.value.text + value.text };
    else found.push({ key: `${entry.number}/${value.at}`, joins, entry, value });
  }
  return found;
}

function showArtifact(group, artifact, isOver, pictures) {
  const known = group.artifacts.get(artifact.id) || { node: el("div", { class: "artifact" }), blocks: new Map(), head: el("div", { class: "name" }) };
  group.artifacts.set(artifact.id, known);
  const amount = artifact.pieces.reduce((sum, { value }) => sum + (value.kind === "text" ? value.length : 0), 0);
  const about = [amount ? many(amount, "character") : "", artifact.finished ? "" : isOver ? "the last chunk is not marked" : "to be continued"].filter(Boolean).join(", ");
  known.toggle ??= button("As text", () => {
    known.asText = !known.asText;
    show();
  }, { class: "quiet" });
  known.toggle.hidden = !artifact.pieces.some(({ value }) => isMarkdown(value, artifact.name));
  known.toggle.setAttribute("aria-pressed", String(Boolean(known.asText)));
  known.title ??= known.head.appendChild(el("bdi"));
  known.about ??= known.head.appendChild(el("span", { class: "dim" }));
  if (!known.toggle.parentNode) known.head.append(known.toggle);
  setText(known.title, plain(artifact.name));
  setText(known.about, about);
  arrange(known.node, [known.head, ...blocks(artifact.pieces).map((block) => showBlock(known, block, artifact.name, pictures))]);
  return known.node;
}

function showBlock(known, { key, entry, value }, title, pictures) {
  const rich = !known.asText && isMarkdown(value, title);
  const drawn = `${rich && pictures.length} ${value.text}`;
  if (known.blocks.get(key)?.drawn !== drawn) known.blocks.set(key, { drawn, node: part(entry, value, rich ? pictures : null) });
  return known.blocks.get(key).node;
}

function showSaid(group, entries) {
  const speaking = entries.filter((entry) => entry.message && entry.message.length).at(-1);
  if (!speaking) return [];
  if (group.said !== speaking.number) {
    group.said = speaking.number;
    group.saidNode = el("div", { class: "said content" }, ...spoken(speaking));
  }
  return [group.saidNode];
}

function gapText(before, after) {
  const [from, to] = [before ? before.eventNumber + 1 : 1, after.eventNumber - 1];
  if (from > to || (!before && after.kind === "task") || after.version === "0.3") return "";
  const events = from === to ? `Event ${from}` : `Events ${from} to ${to}`;
  if (!before) return `${events}: not kept here. The first notification of a webhook is a snapshot.`;
  if (after.kind === "task") return `${events}: in the snapshot that follows. The sender was far behind and sent one instead.`;
  const [is, was] = from === to ? ["is", "was"] : ["are", "were"];
  return `${events}: not here. Either it ${is} still under way, or ${was} skipped: a working status without a message is, when a later status exists.`
    .replace("Either it are", "Either they are");
}

function rowsWithGaps(group, entries) {
  const nodes = [];
  let before = null;
  for (const entry of entries) {
    const text = verified(entry) ? gapText(before, entry) : "";
    if (text && !state.search) {
      const gap = group.gaps.get(text) || el("li", { class: "gap" }, text);
      group.gaps.set(text, gap);
      nodes.push(gap);
    }
    nodes.push(state.entries.get(entry.number).row);
    if (verified(entry)) before = entry;
  }
  return nodes;
}

function makeGroup(taskId) {
  const group = { artifacts: new Map(), gaps: new Map(), heading: el("h3", {}), badge: el("span", {}), facts: el("div", { class: "facts" }),
    joined: el("div", { class: "joined" }), count: el("summary", {}), rows: el("ol", {}), touched: false };
  group.details = el("details", { class: "rows" }, group.count, group.rows);
  group.count.addEventListener("click", () => { group.touched = true; });
  group.node = el("article", { class: "group", "data-task": taskId },
    el("header", {}, el("div", { class: "headline" }, group.heading, group.badge), group.facts), group.joined, group.details);
  return group;
}

function showGroup(taskId, entries) {
  const group = state.groups.get(taskId) || makeGroup(taskId);
  state.groups.set(taskId, group);
  const all = [...entries].sort((a, b) => (a.eventNumber || 0) - (b.eventNumber || 0) || a.number - b.number);
  const shown = all.filter(visible);
  group.node.hidden = !shown.length;
  arrange(group.rows, rowsWithGaps(group, all));
  setText(group.count, `${many(shown.length, "notification")}${shown.length < all.length ? ` of ${all.length}` : ""}`);
  if (taskId) showTask(group, taskId, all.filter(verified));
  else setText(group.heading, "Ownership challenges");
  if (!group.touched) group.details.open = all.length <= OPEN_ROWS || state.search !== "";
  return group.node;
}

function showTask(group, taskId, entries) {
  const line = state.tasks.get(taskId) || {};
  group.heading.replaceChildren(...title(taskId));
  group.badge.replaceChildren(badge(line.state || "in progress"));
  const times = entries.map((entry) => entry.receivedAt);
  const took = Math.max(...times) - Math.min(...times);
  group.facts.replaceChildren(...[
    entries.length > 0 && el("span", {}, `✓ ${number(entries.length)} verified`),
    entries.length > 0 && el("span", {}, `from ${clock(Math.min(...times))}${took < 100 ? "" : `, in ${duration(took)}`}`),
    entries.length > 0 && el("span", {}, `A2A ${entries[0].version}`),
    el("span", {}, "Task ", el("span", { class: "mono" }, plain(taskId))),
    /^[\w-]+$/.test(line.agent || "") && linkTo(`?agent=${line.agent}&task=${encodeURIComponent(taskId)}`, "Show in the console"),
    missing(group),
  ].filter(Boolean));
  const isOver = ENDED.has(line.state);
  const joined = [...joinArtifacts(entries).values()];
  const pictures = joined.flatMap(({ pieces }) => pieces).filter(({ value }) => value.kind === "image");
  const artifacts = joined.map((artifact) => showArtifact(group, artifact, isOver, pictures));
  arrange(group.joined, [...showSaid(group, entries), ...artifacts]);
}

const linkTo = (query, text) => el("a", { href: `${state.receiver.issuer.replace(/\/$/, "")}/${query}`, target: "_blank", rel: "noopener noreferrer" }, text);

// A button that shows the first gap in the order of the events, if there is one.
function missing(group) {
  const gaps = [...group.rows.children].filter((row) => row.className === "gap");
  const show = () => {
    group.details.open = group.touched = true;
    gaps[0].scrollIntoView({ block: "center" });
  };
  return gaps.length > 0 && button(`${many(gaps.length, "gap")} in the order of events`, show, { class: "quiet" });
}

// ---- one notification ----

function amounts(parts) {
  const text = parts.reduce((sum, value) => sum + (value.bytes === undefined ? value.length || 0 : 0), 0);
  const bytes = parts.reduce((sum, value) => sum + (value.bytes || 0), 0);
  return [text ? many(text, "character") : "", bytes ? size(bytes) : ""].filter(Boolean).join(", ");
}

function headline(entry) {
  if (entry.refusal) return plain(`${entry.taskId ? `Task ${entry.taskId.slice(0, 8)}: ` : ""}${sentence(entry.refusal.reason)}`, 400);
  if (entry.outcome === "challenge") return "Answered: this URL wants webhooks";
  if (entry.outcome === "duplicate") return "Came again, no effect";
  const said = entry.message && entry.message.length && entry.message[0].kind === "text" ? `: ${plain(markdown(entry.message[0].text.slice(0, 400)).textContent)}` : "";
  if (entry.kind === "task") return `Snapshot: ${entry.state}`;
  if (entry.kind === "message") return `Message${said}`;
  if (entry.kind === "statusUpdate") return `Status ${entry.state}${said}`;
  const [artifact] = entry.artifacts;
  return `${entry.append ? "More of " : ""}${plain(artifact.name)}, ${amounts(artifact.parts)}${entry.finished ? ", complete" : ""}`;
}

function checks(entry) {
  const failed = entry.refusal ? state.checks.indexOf(entry.refusal.step) : state.checks.length;
  const kind = (at) => (at < failed ? "" : at === failed ? "failed" : "skipped");
  const spoken = { "": "passed", failed: "failed", skipped: "not reached" };
  return el("ul", { class: "checks", "aria-label": "Checks" }, ...state.checks.map((name, at) =>
    el("li", { class: kind(at), title: `${name}: ${spoken[kind(at)]}` }, name)));
}

function explanation(entry) {
  if (entry.outcome === "late") return "A later event of this webhook was here before this one.";
  if (entry.outcome === "duplicate") return "The sender got no answer to an earlier attempt, or lost it, and sent the notification again.";
  if (entry.outcome === "challenge") return "Before its first event to a URL, the sender asks whether the URL wants webhooks.";
  return entry.kind === "task" ? SNAPSHOT : "";
}

function fetched(entry) {
  const task = entry.task;
  if (!task) return "";
  if (task.trouble) return `The task could not be fetched: ${task.trouble}.`;
  const names = task.artifacts.map((artifact) => artifact.name).join(", ");
  return `Fetched the task: ${task.state}${names ? `, with ${names}` : ""}.`;
}

// The values that differ, if the refusal has any: they are no secrets.
function difference({ refusal }) {
  return ["expected", "received"].filter((which) => refusal?.[which]).flatMap((which) => [el("dt", {}, sentence(which)), el("dd", {}, plain(refusal[which], 400))]);
}

function listing(label, rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const cells = shown.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, plain(value, 2100))]);
  return shown.length ? el("details", { class: "claims" }, el("summary", {}, label), el("dl", {}, ...cells)) : null;
}

// Unverified claims can hold anything: only a valid time is also shown as a date.
function timed([name, value]) {
  const isTime = ["iat", "exp", "nbf"].includes(name) && /^\d{1,11}$/.test(value);
  return [name, isTime ? `${value} (${new Date(value * 1000).toISOString()})` : value];
}

function claims(entry) {
  if (entry.refusal) return listing("What the token claims, not proven", Object.entries(entry.claimed).map(timed));
  return listing("Claims", [
    ["Key", entry.kid], ["Token id", entry.jti], ["Notification", entry.notificationId], ["Configuration", entry.configId],
    ["Context", entry.contextId], ["Issuer", entry.issuer], ["Audience", entry.audience],
    ["Issued", entry.issuedAt && new Date(entry.issuedAt).toISOString()],
    ["Expires", entry.expiresAt && new Date(entry.expiresAt).toISOString()], ["SHA-256 of the body", entry.bodySha256],
  ]);
}

function raw(entry) {
  const place = el("div", { class: "raw" });
  const details = el("details", { class: "request" }, el("summary", {}, "Request as received"), place);
  details.addEventListener("toggle", async () => {
    if (!details.open || place.children.length) return;
    try {
      showRaw(place, await ask(`api/notifications/${entry.number}`));
    } catch {
      place.replaceChildren(el("p", { class: "note" }, "This request is no longer kept here."));
    }
  });
  return details;
}

// The claims of the signed token are shown above it, and nobody should copy it from a picture of the page.
const withoutToken = (value) => value.replace(/(?<![\w-])[\w-]{10,}\.[\w-]+\.[\w-]+/, "<the signed token>");

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function showRaw(place, { request }) {
  if (!request) throw new Error("not kept");
  const headers = request.headers.map(([field, value]) => `${field}: ${/auth|jwt/i.test(field) ? withoutToken(value) : value}`).join("\n");
  const received = request.body ?? request.bodyBase64;
  const body = el("pre", { tabindex: "0", "aria-label": "Body" }, pretty(received));
  const toggle = button("As received", (node) => {
    const isReceived = node.getAttribute("aria-pressed") === "false";
    node.setAttribute("aria-pressed", String(isReceived));
    body.textContent = isReceived ? received : pretty(received);
  }, { class: "quiet", "aria-pressed": "false" });
  place.replaceChildren(el("pre", { tabindex: "0", "aria-label": "Headers" }, headers),
    el("p", { class: "note" }, `Body, ${size(request.bytes)}${request.body === undefined ? ", in base64" : ""}`, toggle), body);
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function headerArgument([field, value]) {
  if (value !== "<redacted>") return `-H ${quoted(`${field}: ${value}`)}`;
  const variable = field.toLowerCase() === "x-a2a-notification-token" ? "WEBHOOK_TOKEN" : field.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
  return `-H ${quoted(`${field}: `)}"$${variable}"`;
}

// The same request again. A secret that is not shown is a variable of the shell.
function curl(url, request) {
  const set = request.headers.filter(([field]) => !["host", "content-length", "connection", "accept-encoding"].includes(field.toLowerCase()));
  const text = request.body !== undefined && !request.body.includes("\0");
  const bytes = request.bodyBase64 ?? (text ? "" : btoa(String.fromCharCode(...new TextEncoder().encode(request.body))));
  const lines = [`curl -i -X POST ${quoted(url)}`, ...set.map(headerArgument), `--data-binary ${text ? quoted(request.body) : "@-"}`];
  return `${text ? "" : `printf %s ${bytes} | base64 -d | `}${lines.join(" \\\n  ")}`;
}

async function curlOf(entry) {
  const { request } = await ask(`api/notifications/${entry.number}`);
  return curl(state.receiver.audience, request);
}

const address = (entry) => `${location.href.split("#")[0]}#n${entry.number}`;

function actions(entry) {
  return el("div", { class: "actions" },
    button("Copy as curl", async (node) => copy(await curlOf(entry).catch(() => ""), node), { class: "curl" }),
    button("Copy link", (node) => copy(address(entry), node), { class: "link" }));
}

// The answer is known a moment after the entry: only these change then, and what is open in the row stays open.
function facts(entry) {
  const answer = entry.answer ? `Answered ${entry.answer.status} in ${number(entry.answer.ms)} ms` : "";
  const told = [answer, entry.eventNumber && `Event ${entry.eventNumber}`, entry.version && `A2A ${entry.version}`,
    entry.refusal && entry.taskId && `Task ${plain(entry.taskId)}`];
  return told.filter(Boolean).map((fact) => el("span", {}, fact));
}

function inside(kept) {
  const { entry } = kept;
  const notes = [explanation(entry), fetched(entry)].filter(Boolean).map((text) => el("p", { class: "note" }, text));
  kept.facts = el("div", { class: "facts" }, facts(entry));
  return [kept.facts, el("dl", {}, difference(entry)), entry.outcome === "challenge" ? null : checks(entry), ...notes, content(entry), actions(entry), claims(entry), raw(entry)]
    .filter(Boolean);
}

function makeRow(kept) {
  const { entry } = kept;
  const label = BADGES[entry.outcome];
  const body = el("div", { class: "inside" });
  const details = el("details", {}, el("summary", {}, el("span", { class: "event" }, entry.eventNumber ? String(entry.eventNumber) : ""),
    el("span", { class: "what" }, headline(entry)), label ? el("span", { class: "badge", "data-state": entry.outcome }, label) : el("span"),
    el("time", { datetime: new Date(entry.receivedAt).toISOString() }, clock(entry.receivedAt))), body);
  details.addEventListener("toggle", () => { if (details.open && !body.children.length) body.append(...inside(kept)); });
  return el("li", { class: "row", id: `n${entry.number}`, "data-outcome": entry.outcome }, details);
}

// ---- the refused ones: one line, and inside a section for each reason ----

const refusedGroup = { summary: el("summary"), body: el("div"), reasons: new Map(), more: el("p", { class: "note more" }) };
refusedGroup.node = el("details", { class: "group refused", id: "refused" }, refusedGroup.summary, refusedGroup.body);

function showRefused(entries) {
  const shown = entries.filter(visible);
  const reasons = Map.groupBy(shown, (entry) => entry.refusal.code);
  const total = (code) => (isNarrowed() ? 0 : state.refused[code] || 0);
  const counts = [...reasons].map(([code, found]) => [code, Math.max(total(code), found.length)]).sort((a, b) => b[1] - a[1]);
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  refusedGroup.node.hidden = !shown.length;
  refusedGroup.summary.replaceChildren(el("b", {}, many(all, "refused request")), ...counts.map(([code, count]) => el("span", { class: "badge" }, `${code} ${number(count)}`)));
  arrange(refusedGroup.body, [...counts.map(([code, count]) => showReason(code, count, reasons.get(code))), ...(state.receiver.documentsUrl ? [] : [refusedGroup.more])]);
  return refusedGroup.node;
}

// A reason: how often, the remedy, the values of the newest request, and the requests.
function showReason(code, count, entries) {
  const known = refusedGroup.reasons.get(code) || { heading: el("h4"), facts: el("dl"), list: el("ol") };
  known.node ??= el("section", { class: "reason" }, known.heading, known.facts, known.list);
  refusedGroup.reasons.set(code, known);
  const newest = [...entries].sort((a, b) => b.number - a.number);
  const kept = count > entries.length ? `, the newest ${entries.length} are kept` : "";
  known.heading.replaceChildren(code, el("span", {}, `${number(count)}${kept}`));
  if (known.newest !== newest[0].number) {
    known.newest = newest[0].number;
    const remedies = [...new Set(newest.map((entry) => entry.refusal.remedy))].join(" ");
    known.facts.replaceChildren(el("dt", {}, "Remedy"), el("dd", { class: "remedy" }, `${remedies} `, state.receiver.documentsUrl && documented("More about it")), ...difference(newest[0]));
  }
  arrange(known.list, newest.map((entry) => state.entries.get(entry.number).row));
  return known.node;
}

// ---- the list ----

function matches(entry) {
  const inTask = state.task === null || taskOf(entry) === state.task;
  if (!inTask || !state.search) return inTask;
  const line = state.tasks.get(entry.taskId) || {};
  const kept = state.entries.get(entry.number);
  kept.text ??= JSON.stringify(entry).toLowerCase();
  return kept.text.includes(state.search) || `${line.agent || ""} ${line.prompt || ""}`.toLowerCase().includes(state.search);
}

const visible = (entry) => FILTERS[state.filter][1].includes(entry.outcome) && matches(entry);
const isNarrowed = () => state.task !== null || state.search !== "";

function keep(entry) {
  const known = state.entries.get(entry.number);
  if (known) {
    const isNews = !known.entry.answer && entry.answer;
    known.entry.answer = entry.answer;
    if (isNews) known.facts?.replaceChildren(...facts(known.entry));
    return;
  }
  const kept = { entry };
  kept.row = makeRow(kept);
  state.entries.set(entry.number, kept);
  state.last = Math.max(state.last, entry.number);
  if (verified(entry)) noteTask(entry);
  forget(entry);
}

function forget(entry) {
  const alike = [...state.entries.values()].map((kept) => kept.entry)
    .filter((each) => (entry.refusal ? each.refusal && each.refusal.code === entry.refusal.code : !each.refusal));
  if (alike.length <= (entry.refusal ? KEEP_REASON : KEEP)) return;
  state.entries.delete(Math.min(...alike.map((each) => each.number)));
}

function noteTask(line) {
  const known = state.tasks.get(line.taskId) || {};
  const [old, now] = line.eventNumber >= (known.eventNumber || 0) ? [known, line] : [line, known];
  state.tasks.delete(line.taskId);
  state.tasks.set(line.taskId, { taskId: now.taskId, eventNumber: now.eventNumber, state: now.state || old.state,
    agent: known.agent || line.agent, prompt: known.prompt || line.prompt });
}

function choose(change) {
  Object.assign(state, change);
  show();
}

// Buttons are made once: a button that has the focus keeps it when webhooks come.
const buttons = new Map();

function keptButton(key, attributes, act) {
  if (!buttons.has(key)) buttons.set(key, button("", act, attributes));
  return buttons.get(key);
}

function chooseTask(task) {
  history.replaceState(null, "", task === null ? location.pathname : `#task=${encodeURIComponent(task)}`);
  choose({ task });
}

function taskButton(line) {
  const node = keptButton(`task ${line.taskId}`, {}, () => chooseTask(state.task === line.taskId ? null : line.taskId));
  node.setAttribute("aria-pressed", String(state.task === line.taskId));
  node.replaceChildren(el("span", { class: "id" }, ...title(line.taskId)),
    el("span", { class: "now" }, badge(line.state || "in progress"), el("span", {}, `event ${line.eventNumber}`)));
  return node.parentNode || el("li", {}, node);
}

// All requests since the receiver's start count, kept or not; of a task or a search only those that are kept.
function count(outcomes) {
  const kept = [...state.entries.values()].filter(({ entry }) => outcomes.includes(entry.outcome) && matches(entry)).length;
  return isNarrowed() ? kept : Math.max(kept, outcomes.reduce((sum, outcome) => sum + (state.outcomes[outcome] || 0), 0));
}

function filterButton(filter) {
  const node = keptButton(filter, { "data-filter": filter }, () => {
    choose({ filter });
    refusedGroup.node.open = filter === "refused";
  });
  const [label, outcomes] = FILTERS[filter];
  node.setAttribute("aria-pressed", String(state.filter === filter));
  node.replaceChildren(label, el("span", { class: "count" }, number(count(outcomes))));
  return node;
}

function tokenItem(token) {
  const bound = token.taskId && state.tasks.has(token.taskId) ? title(token.taskId) : token.taskId ? [`task ${plain(token.taskId)}`] : [];
  const use = token.standing ? ["Valid for every task"] : bound.length ? ["Used by ", ...bound] : ["Not used yet"];
  const until = token.standing ? "Does not expire" : `Until ${new Date(token.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })}`;
  return el("li", {}, el("strong", {}, token.standing ? "WEBHOOK_TOKEN" : plain(token.agent || token.agentUrl) || "Token without an agent's address"),
    el("span", {}, ...use), el("span", { class: "dim" }, until));
}

function showTokens() {
  $("tokens").hidden = !state.tokens.length;
  $("token-count").textContent = String(state.tokens.length);
  $("token-list").replaceChildren(...state.tokens.map(tokenItem));
  $("unused").hidden = state.tokens.every((token) => token.standing || state.tasks.has(token.taskId));
}

function showFeed() {
  const entries = [...state.entries.values()].map((kept) => kept.entry);
  const tasks = Map.groupBy(entries.filter((entry) => !entry.refusal), (entry) => entry.taskId || "");
  const newest = ([, found]) => Math.max(...found.map((entry) => entry.number));
  for (const { entry, row } of state.entries.values()) row.hidden = !visible(entry);
  for (const taskId of state.groups.keys()) if (!tasks.has(taskId)) state.groups.delete(taskId);
  const groups = [...tasks].sort((a, b) => newest(b) - newest(a)).map(([taskId, found]) => showGroup(taskId, found));
  arrange($("feed"), [showRefused(entries.filter((entry) => entry.refusal)), ...groups]);
  return entries.some(visible);
}

function show() {
  const some = state.entries.size > 0;
  $("frame").classList.toggle("alone", !state.tasks.size && !state.tokens.length);
  $("list").hidden = !some;
  $("start").hidden = some;
  $("aside").hidden = !state.tasks.size && !state.tokens.length;
  $("tasks-section").hidden = !state.tasks.size;
  arrange($("tasks"), [...state.tasks.values()].reverse().map(taskButton));
  arrange($("filter"), Object.keys(FILTERS).map(filterButton));
  showTokens();
  const found = showFeed();
  $("all").hidden = state.task === null;
  const which = state.filter === "all" ? "" : `${FILTERS[state.filter][0].toLowerCase()}: `;
  setText($("none"), `${sentence(`${which}no notification`)}${state.task ? " of this task" : ""}${state.search ? ` with “${state.search}”` : ""}.`);
  const all = count(FILTERS.all[1]);
  $("forgotten").hidden = isNarrowed() || all <= state.entries.size;
  setText($("forgotten"), `Of ${number(all)} requests the newest are kept: ${number(state.entries.size)}.`);
  document.title = some ? `(${number(all)}) Webhook inbox` : "Webhook inbox";
  $("none").hidden = sayGone() || found;
}

// ---- links: #n and the number of a notification, or #task= and the id of a task ----

const linked = () => Number(/^#n(\d{1,16})$/.exec(location.hash)?.[1] ?? 0);

// Says what a link leads to in vain; gives whether it is a task.
function sayGone() {
  const noTask = state.task !== null && ![...state.entries.values()].some(({ entry }) => taskOf(entry) === state.task);
  const noEntry = linked() > 0 && !state.entries.has(linked());
  $("gone").hidden = !noTask && !noEntry;
  if (noEntry) setText($("gone"), "The notification of this link is no longer kept here.");
  if (noTask) setText($("gone"), `No notification of task ${plain(state.task)} is here: none has come since the receiver’s start, or it is no longer kept. The sender knows more: a2a-serverless deliveries AGENT TASK`);
  return noTask;
}

function goTo() {
  document.querySelector(".row.chosen")?.classList.remove("chosen");
  const task = /^#task=(.+)$/.exec(location.hash)?.[1];
  const kept = state.entries.get(linked());
  if (task) choose({ filter: "all", search: "", task: decoded(task) });
  else if (kept && !visible(kept.entry)) choose({ filter: "all", search: "", task: null });
  else show();
  $("search").value = state.search;
  if (!kept) return;
  for (let node = kept.row.firstElementChild; node; node = node.parentElement.closest("details")) node.open = true;
  kept.row.classList.add("chosen");
  kept.row.scrollIntoView({ block: "center" });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// ---- the receiver ----

function showReceiver(receiver) {
  state.receiver = receiver;
  $("audience").textContent = receiver.audience;
  $("issuer").textContent = receiver.issuer;
  $("jwks").textContent = receiver.jwksUrl;
  $("command").textContent = `a2a-serverless send AGENT "Hello" \\\n  --url ${receiver.issuer} \\\n  --inbox ${location.origin}`;
  $("nothing").replaceChildren("The answer to the message was a message and no task, or the sender could not reach this address: ", documented("what to look at"), ".");
  refusedGroup.more.replaceChildren("More about refused webhooks: ", documented(""));
  $("console").href = `${receiver.issuer.replace(/\/$/, "")}/`;
  $("documents").href = receiver.documentsUrl;
  $("console").hidden = false;
  $("documents").hidden = !receiver.documentsUrl;
  $("sample").textContent = JSON.stringify({ taskPushNotificationConfig: { url: receiver.audience, token: "<the token that you get>" } }, null, 2);
}

function tell(name, text) {
  $("status").dataset.state = name;
  $("status").textContent = text;
}

async function load(after = 0) {
  const [inbox, { expectations }] = await Promise.all([ask(`api/notifications?after=${after}`), ask("expectations")]);
  const first = state.receiver === null;
  Object.assign(state, { checks: inbox.checks, outcomes: inbox.outcomes, refused: inbox.refused, tokens: expectations });
  showReceiver(inbox.receiver);
  inbox.tasks.reverse().forEach(noteTask);
  inbox.entries.forEach(keep);
  show();
  if (first) goTo();
}

async function poll() {
  try {
    await load();
    tell("polling", "Checking every 3 s");
  } catch {
    tell("offline", "Not reachable");
  }
  setTimeout(poll, POLL);
}

// The feed has no answers, titles and totals: they are read once more, soon after something has come.
function refreshSoon() {
  if (state.refreshing) return;
  state.refreshing = true;
  setTimeout(async () => {
    state.refreshing = false;
    const open = [...state.entries.values()].filter(({ entry }) => !entry.answer).map(({ entry }) => entry.number);
    try {
      await load(Math.min(state.last, ...open.map((each) => each - 1)));
    } catch { /* the feed says that the receiver cannot be reached */ }
  }, 500);
}

const add = (counts, name) => { counts[name] = (counts[name] || 0) + 1; };

function follow() {
  const feed = new EventSource(`events?after=${state.last}`);
  feed.addEventListener("open", () => tell("live", "Live"));
  feed.addEventListener("message", (event) => {
    const entry = JSON.parse(event.data);
    if (!state.entries.has(entry.number)) {
      add(state.outcomes, entry.outcome);
      if (entry.refusal) add(state.refused, entry.refusal.code);
    }
    keep(entry);
    show();
    refreshSoon();
  });
  feed.addEventListener("error", () => {
    if (feed.readyState === EventSource.CLOSED) poll();
    else tell("offline", "Reconnecting");
  });
}

async function start() {
  try {
    await load();
  } catch {
    poll();
    return;
  }
  if (state.receiver.live) follow();
  else poll();
}

// ---- the dialog ----

function openDialog() {
  $("form").reset();
  $("form").hidden = false;
  $("result").hidden = $("problem").hidden = true;
  $("dialog").setAttribute("aria-labelledby", "dialog-title");
  $("dialog").showModal();
  $("agent").focus();
}

async function expect(event) {
  event.preventDefault();
  const wanted = Object.fromEntries([...new FormData($("form"))].filter(([, value]) => value.trim()).map(([k, v]) => [k, v.trim()]));
  const answer = await fetch("expectations", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted),
  });
  const made = await answer.json();
  if (!answer.ok) {
    $("problem").textContent = typeof made.detail === "string" ? made.detail
      : made.detail.map((problem) => `${problem.loc.at(-1)}: ${problem.msg.replace("Value error, ", "")}`).join("; ");
    $("problem").hidden = false;
    return;
  }
  showExpected(made, wanted.agentUrl || `${state.receiver.issuer}/AGENT`);
  load(state.last).catch(() => {});
}

function sendCommand(agentUrl, config) {
  const message = { messageId: crypto.randomUUID?.() || String(Date.now()), role: "ROLE_USER", parts: [{ text: "Hello" }] };
  const params = { message, configuration: { returnImmediately: true, taskPushNotificationConfig: config } };
  return [`curl ${quoted(agentUrl)}`, "-H 'Content-Type: application/json'", "-H 'A2A-Version: 1.0'",
    `-d ${quoted(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params }))}`].join(" \\\n  ");
}

function showExpected(made, agentUrl) {
  const { token } = made.pushNotificationConfig;
  $("form").hidden = true;
  $("result").hidden = false;
  $("dialog").setAttribute("aria-labelledby", "result-title");
  setText($("result-title"), token ? "Send this with your message" : "Registered");
  $("result-text").textContent = token
    ? "The token is shown once. It is part of the request's configuration, as taskPushNotificationConfig."
    : `Notifications about task ${made.taskId} are accepted.`;
  $("config").textContent = JSON.stringify(made.pushNotificationConfig, null, 2);
  $("sending").hidden = !token;
  $("curl").textContent = sendCommand(agentUrl, made.pushNotificationConfig);
  $("done").focus();
}

for (const id of ["expect", "expect-first"]) $(id).addEventListener("click", openDialog);
for (const id of ["cancel", "done"]) $(id).addEventListener("click", () => $("dialog").close());
for (const node of document.querySelectorAll("[data-copy]")) node.addEventListener("click", () => copy($(node.dataset.copy).textContent, node));
$("form").addEventListener("submit", expect);
$("all").addEventListener("click", () => { chooseTask(null); $("main").focus(); });
$("search").addEventListener("input", () => choose({ search: $("search").value.trim().toLowerCase() }));
addEventListener("hashchange", goTo);
start();
