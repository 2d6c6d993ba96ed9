"use strict";
// Everything from outside is inserted as text, never as markup. Pictures are shown from data URLs only.
const KEEP = 300;
const KEEP_REASON = 10;
const KEEP_PARTS = 60;
const OPEN_ROWS = 12;
const POLL = 3000;
const BADGES = { late: ["Late", "warn"], duplicate: ["Duplicate", ""], challenge: ["Challenge", ""] };
const STATES = { completed: "good", failed: "bad", rejected: "bad", canceled: "", "input-required": "warn", "auth-required": "warn" };
const ENDED = new Set(["completed", "failed", "rejected", "canceled"]);
const FILTERS = {
  all: ["All", () => true],
  accepted: ["Accepted", (entry) => entry.outcome !== "refused"],
  refused: ["Refused", (entry) => entry.outcome === "refused"],
};
const SNAPSHOT = "A snapshot is the whole task as of its event. Every webhook begins with one; a webhook that is far behind "
  + "gets one in place of the single events. In A2A 0.3 every notification is one.";
const state = { entries: new Map(), tasks: new Map(), groups: new Map(), tokens: [], refused: {}, checks: [], receiver: null,
  filter: "all", task: null, search: "", last: 0, refreshing: false };
const whole = new Map();
const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== "" && child !== false));
  return node;
}

function button(label, act, more = {}) {
  const node = el("button", { type: "button", class: "plain small", ...more }, label);
  node.addEventListener("click", () => act(node));
  return node;
}

// Makes nodes the children of parent. Nodes that are there already stay where they are: open and focused ones remain so.
function arrange(parent, nodes) {
  nodes.forEach((node, at) => { if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] || null); });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function clock(ms) {
  const then = new Date(ms);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return then.toDateString() === new Date().toDateString() ? time : `${then.toLocaleDateString()} ${time}`;
}

const number = (value) => value.toLocaleString("en");
const many = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const size = (bytes) => (bytes < 1000 ? `${bytes} bytes` : bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
const seconds = (ms) => (ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`);
const verified = (entry) => entry.outcome === "accepted" || entry.outcome === "late";
const taskOf = (entry) => entry.taskId || (entry.claimed && entry.claimed.taskId) || "";

function title(taskId) {
  const line = state.tasks.get(taskId) || {};
  const agent = line.agent ? el("span", { class: "agent" }, line.agent) : null;
  const prompt = line.prompt || (line.agent ? "" : `Task ${taskId.slice(0, 8)}`);
  return [agent, agent && prompt ? " " : "", prompt].filter(Boolean);
}

function stateBadge(name) {
  return el("span", { class: `badge ${STATES[name] || ""}` }, name || "in progress");
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
    if (!source) return;
    place.replaceChildren(el("img", { src: source, alt: value.name || "picture" }));
  }, () => place.append(el("p", { class: "file" }, "The picture is no longer kept here.")));
  return place;
}

function link(value) {
  const safe = /^https?:\/\//i.test(value.text) && value.text.length === value.length;
  const attributes = { href: value.text, target: "_blank", rel: "noopener noreferrer" };
  return el("p", { class: "file" }, "File behind a link: ", safe ? el("a", attributes, value.text) : value.text);
}

function words(entry, value) {
  const text = el("pre", { class: value.kind === "text" ? "words" : "", tabindex: "0" }, value.text);
  if (value.text.length === value.length) return text;
  const more = button(`Show all ${number(value.length)} characters`, async () => {
    try {
      text.textContent = (await loadPart(entry, value.at)).text;
      more.remove();
    } catch {
      more.replaceWith(el("p", { class: "file" }, "The rest is no longer kept here."));
    }
  });
  return el("div", {}, text, more);
}

function part(entry, value) {
  if (value.kind === "image") return picture(entry, value);
  if (value.kind === "link") return link(value);
  if (value.kind === "file") return el("p", { class: "file" }, value.text);
  return words(entry, value);
}

function content(entry) {
  const nodes = (entry.message || []).map((value) => part(entry, value));
  for (const artifact of entry.artifacts || []) {
    if (entry.kind === "task") nodes.push(el("p", { class: "file" }, artifact.name));
    nodes.push(...artifact.parts.map((value) => part(entry, value)));
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
      const pieces = [...(known ? known.pieces : []), ...parts.map((value) => ({ entry, value }))];
      artifacts.set(id, { id, name, pieces, finished: entry.finished });
    }
  }
  return artifacts;
}

// Chunks of text that follow each other are one block; everything else is a block of its own.
function blocks(pieces) {
  const found = [];
  for (const { entry, value } of pieces) {
    const plain = value.kind === "text" && value.text.length === value.length;
    const before = found.at(-1);
    if (plain && before && before.plain) before.text += value.text;
    else found.push({ key: `${entry.number}/${value.at}`, plain, text: value.text, entry, value });
  }
  return found;
}

function showArtifact(group, artifact, isOver) {
  const known = group.artifacts.get(artifact.id) || { node: el("div", { class: "artifact" }), blocks: new Map(), head: el("p", { class: "name" }) };
  group.artifacts.set(artifact.id, known);
  const amount = artifact.pieces.reduce((sum, { value }) => sum + (value.kind === "text" ? value.length : 0), 0);
  const about = [amount ? many(amount, "character") : "", artifact.finished ? "" : isOver ? "the last chunk is not marked" : "to be continued"].filter(Boolean).join(", ");
  known.head.replaceChildren(el("span", {}, artifact.name), el("span", { class: "quiet" }, about));
  const nodes = blocks(artifact.pieces).map((block) => {
    const node = known.blocks.get(block.key) || (block.plain ? el("pre", { class: "words", tabindex: "0" }) : part(block.entry, block.value));
    known.blocks.set(block.key, node);
    if (block.plain) setText(node, block.text);
    return node;
  });
  arrange(known.node, [known.head, ...nodes]);
  return known.node;
}

function showSaid(group, entries) {
  const speaking = entries.filter((entry) => entry.message && entry.message.length).at(-1);
  if (!speaking) return [];
  if (group.said !== speaking.number) {
    group.said = speaking.number;
    group.saidNode = el("div", { class: "said content" }, ...speaking.message.map((value) => part(speaking, value)));
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
  if (taskId) showTask(group, taskId, all.filter(verified));
  else setText(group.heading, "Ownership challenges");
  arrange(group.rows, rowsWithGaps(group, all));
  setText(group.count, `${many(shown.length, "notification")}${shown.length < all.length ? ` of ${all.length}` : ""}`);
  if (!group.touched) group.details.open = all.length <= OPEN_ROWS || state.search !== "";
  return group.node;
}

function showTask(group, taskId, entries) {
  const line = state.tasks.get(taskId) || {};
  group.heading.replaceChildren(...title(taskId));
  group.badge.replaceChildren(stateBadge(line.state));
  const times = entries.map((entry) => entry.receivedAt);
  const took = Math.max(...times) - Math.min(...times);
  group.facts.replaceChildren(...[
    entries.length > 0 && el("span", {}, `✓ ${number(entries.length)} verified`),
    entries.length > 0 && el("span", {}, `from ${clock(Math.min(...times))}${took < 100 ? "" : `, in ${seconds(took)}`}`),
    entries.length > 0 && el("span", {}, `A2A ${entries[0].version}`),
    el("span", {}, "Task ", el("span", { class: "mono" }, taskId)),
  ].filter(Boolean));
  const isOver = ENDED.has(line.state);
  const artifacts = [...joinArtifacts(entries).values()].map((artifact) => showArtifact(group, artifact, isOver));
  arrange(group.joined, [...showSaid(group, entries), ...artifacts]);
}

// ---- one notification ----

function amounts(parts) {
  const text = parts.reduce((sum, value) => sum + (value.bytes === undefined ? value.length || 0 : 0), 0);
  const bytes = parts.reduce((sum, value) => sum + (value.bytes || 0), 0);
  return [text ? many(text, "character") : "", bytes ? size(bytes) : ""].filter(Boolean).join(", ");
}

function headline(entry) {
  if (entry.refusal) return `${entry.taskId ? `Task ${entry.taskId.slice(0, 8)}: ` : ""}${sentence(entry.refusal.reason)}`;
  if (entry.outcome === "challenge") return "Answered: this URL wants webhooks";
  if (entry.outcome === "duplicate") return "Came again, no effect";
  const said = entry.message && entry.message.length && entry.message[0].kind === "text" ? `: ${entry.message[0].text.slice(0, 200)}` : "";
  if (entry.kind === "task") return `Snapshot: ${entry.state}`;
  if (entry.kind === "message") return `Message${said}`;
  if (entry.kind === "statusUpdate") return `Status ${entry.state}${said}`;
  const [artifact] = entry.artifacts;
  return `${entry.append ? "More of " : ""}${artifact.name}, ${amounts(artifact.parts)}${entry.finished ? ", complete" : ""}`;
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

function listing(name, rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const cells = shown.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, String(value))]);
  return shown.length ? el("details", { class: "claims" }, el("summary", {}, name), el("dl", {}, ...cells)) : null;
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

function showRaw(place, { request }) {
  if (!request) throw new Error("not kept");
  const headers = request.headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  place.replaceChildren(el("pre", { tabindex: "0", "aria-label": "Headers" }, headers),
    el("p", { class: "note" }, `Body, ${size(request.bytes)}${request.body === undefined ? ", in base64" : ""}`),
    el("pre", { tabindex: "0", "aria-label": "Body" }, request.body ?? request.bodyBase64));
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function headerArgument([name, value]) {
  if (value !== "<redacted>") return `-H ${quoted(`${name}: ${value}`)}`;
  const variable = name.toLowerCase() === "x-a2a-notification-token" ? "WEBHOOK_TOKEN" : name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
  return `-H ${quoted(`${name}: `)}"$${variable}"`;
}

// The same request again. A secret that is not shown is a variable of the shell.
function curl(url, request) {
  const set = request.headers.filter(([name]) => !["host", "content-length", "connection", "accept-encoding"].includes(name.toLowerCase()));
  const text = request.body !== undefined && !request.body.includes("\0");
  const bytes = request.bodyBase64 ?? (text ? "" : btoa(String.fromCharCode(...new TextEncoder().encode(request.body))));
  const lines = [`curl -i -X POST ${quoted(url)}`, ...set.map(headerArgument), `--data-binary ${text ? quoted(request.body) : "@-"}`];
  return `${text ? "" : `printf %s ${bytes} | base64 -d | `}${lines.join(" \\\n  ")}`;
}

async function copyText(node, text) {
  const label = node.dataset.label || node.textContent;
  node.dataset.label = label;
  try {
    await navigator.clipboard.writeText(await text);
    node.textContent = "Copied";
  } catch {
    node.textContent = "Not copied";
  }
  setTimeout(() => { node.textContent = label; }, 1500);
}

async function curlOf(entry) {
  const { request } = await ask(`api/notifications/${entry.number}`);
  return curl(state.receiver.audience, request);
}

const address = (entry) => `${location.href.split("#")[0]}#n${entry.number}`;

function actions(entry) {
  return el("div", { class: "actions" },
    button("Copy as curl", (node) => copyText(node, curlOf(entry)), { class: "plain small curl" }),
    button("Copy link", (node) => copyText(node, address(entry)), { class: "plain small link" }));
}

function inside(kept) {
  const { entry } = kept;
  const answer = entry.answer ? `Answered ${entry.answer.status} in ${number(entry.answer.ms)} ms` : "";
  const facts = [answer, entry.eventNumber && `Event ${entry.eventNumber}`, entry.version && `A2A ${entry.version}`, entry.refusal && entry.taskId && `Task ${entry.taskId}`].filter(Boolean);
  const notes = [explanation(entry), fetched(entry)].filter(Boolean).map((text) => el("p", { class: "note" }, text));
  kept.facts = el("div", { class: "facts" }, ...facts.map((fact) => el("span", {}, fact)));
  return [kept.facts, entry.outcome === "challenge" ? null : checks(entry), ...notes, content(entry), actions(entry), claims(entry), raw(entry)]
    .filter(Boolean);
}

function makeRow(kept) {
  const { entry } = kept;
  const [label, kind] = BADGES[entry.outcome] || [];
  const badge = label ? el("span", { class: `badge ${kind}` }, label)
    : entry.refusal ? el("span", { class: "mono code" }, entry.refusal.code) : el("span", {});
  const body = el("div", { class: "inside" });
  const details = el("details", {}, el("summary", {}, el("span", { class: "event" }, entry.eventNumber ? String(entry.eventNumber) : ""),
    el("span", { class: "what" }, headline(entry)), badge,
    el("time", { datetime: new Date(entry.receivedAt).toISOString() }, clock(entry.receivedAt))), body);
  details.addEventListener("toggle", () => { if (details.open && !body.children.length) body.append(...inside(kept)); });
  kept.refill = () => { if (body.children.length) body.replaceChildren(...inside(kept)); };
  return el("li", { class: "row", id: `n${entry.number}`, "data-outcome": entry.outcome }, details);
}

// ---- the refused ones: one line, with their reasons ----

const refusedGroup = { summary: el("summary", {}), body: el("div", {}), reasons: new Map() };
refusedGroup.node = el("details", { class: "group refused", id: "refused" }, refusedGroup.summary, refusedGroup.body);

function showRefused(entries) {
  const shown = entries.filter(visible);
  const whole = !state.task && !state.search;
  const reasons = Map.groupBy(shown, (entry) => entry.refusal.code);
  const total = (code) => (whole ? state.refused[code] || 0 : 0);
  const counts = [...reasons].map(([code, found]) => [code, Math.max(total(code), found.length)]).sort((a, b) => b[1] - a[1]);
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  refusedGroup.node.hidden = !shown.length;
  refusedGroup.summary.replaceChildren(el("b", {}, `${many(all, "refused request")}`), ` ${counts.map(([code, count]) => `${code} ${number(count)}`).join(" · ")}`);
  arrange(refusedGroup.body, counts.map(([code, count]) => showReason(code, count, reasons.get(code))));
  return refusedGroup.node;
}

function showReason(code, count, entries) {
  const known = refusedGroup.reasons.get(code) || { heading: el("h4", {}), list: el("ol", {}) };
  known.node ??= el("section", {}, known.heading, known.list);
  refusedGroup.reasons.set(code, known);
  setText(known.heading, `${code}: ${number(count)}${count > entries.length ? `, the newest ${entries.length} are kept` : ""}`);
  arrange(known.list, [...entries].sort((a, b) => b.number - a.number).map((entry) => state.entries.get(entry.number).row));
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

function visible(entry) {
  return FILTERS[state.filter][1](entry) && matches(entry);
}

function keep(entry) {
  const known = state.entries.get(entry.number);
  if (known) {
    const isNews = !known.entry.answer && entry.answer;
    known.entry.answer = entry.answer;
    if (isNews) known.refill();
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

function taskButton(line) {
  const node = el("button", { type: "button", "aria-pressed": String(state.task === line.taskId), title: line.taskId },
    el("span", { class: "id" }, ...title(line.taskId)),
    el("span", { class: "now" }, el("span", {}, line.state || "in progress"), el("span", {}, `event ${line.eventNumber}`)));
  node.addEventListener("click", () => choose({ task: state.task === line.taskId ? null : line.taskId }));
  return el("li", {}, node);
}

function filterButton([name, [label, test]]) {
  const count = [...state.entries.values()].filter(({ entry }) => test(entry) && matches(entry)).length;
  const node = el("button", { type: "button", "data-filter": name, "aria-pressed": String(state.filter === name) }, label,
    el("span", { class: "count" }, number(count)));
  node.addEventListener("click", () => choose({ filter: name }));
  return node;
}

function tokenItem(token) {
  const bound = token.taskId && state.tasks.has(token.taskId) ? title(token.taskId) : token.taskId ? [`task ${token.taskId}`] : [];
  const use = token.standing ? ["Valid for every task"] : bound.length ? ["Used by ", ...bound] : ["Not used yet"];
  const until = token.standing ? "Does not expire" : `Until ${new Date(token.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })}`;
  return el("li", {}, el("strong", {}, token.standing ? "WEBHOOK_TOKEN" : token.agent || token.agentUrl || "Token without an agent's address"),
    el("span", {}, ...use), el("span", { class: "quiet" }, until));
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
  $("main").className = state.tasks.size || state.tokens.length ? "" : "empty";
  $("list").hidden = !some;
  $("start").hidden = some;
  $("aside").hidden = !state.tasks.size && !state.tokens.length;
  $("tasks-section").hidden = !state.tasks.size;
  $("tasks").replaceChildren(...[...state.tasks.values()].reverse().map(taskButton));
  $("filter").replaceChildren(...Object.entries(FILTERS).map(filterButton));
  showTokens();
  const found = showFeed();
  $("none").hidden = found;
  setText($("none"), `No ${state.filter === "all" ? "" : `${state.filter} `}notifications${state.task ? " of this task" : ""}${state.search ? ` with “${state.search}”` : ""}.`);
  document.title = some ? `(${state.entries.size}) A2A webhook inbox` : "A2A webhook inbox";
}

// ---- the link to one notification: #n and its number ----

function goTo() {
  const [, wanted] = /^#n(\d{1,16})$/.exec(location.hash) || [];
  document.querySelector(".row.chosen")?.classList.remove("chosen");
  const kept = state.entries.get(Number(wanted));
  $("gone").hidden = !wanted || Boolean(kept);
  setText($("gone"), "The notification of this link is no longer kept here.");
  if (!wanted || !kept) return;
  if (!visible(kept.entry)) { $("search").value = ""; choose({ filter: "all", task: null, search: "" }); }
  for (let node = kept.row.firstElementChild; node; node = node.parentElement.closest("details")) node.open = true;
  kept.row.classList.add("chosen");
  kept.row.scrollIntoView({ block: "center" });
}

// ---- the receiver ----

function showReceiver(receiver) {
  state.receiver = receiver;
  $("audience").textContent = receiver.audience;
  $("issuer").textContent = receiver.issuer;
  $("jwks").textContent = receiver.jwksUrl;
  $("command").textContent = `a2a-serverless send AGENT "Hello" --url ${receiver.issuer} --inbox ${location.origin}`;
  $("sample").textContent = JSON.stringify({ taskPushNotificationConfig: { url: receiver.audience, token: "<the token that you get>" } }, null, 2);
}

function tell(name, text) {
  $("status").dataset.state = name;
  $("status").textContent = text;
}

async function load(after = 0) {
  const [inbox, { expectations }] = await Promise.all([ask(`api/notifications?after=${after}`), ask("expectations")]);
  const first = state.receiver === null;
  Object.assign(state, { checks: inbox.checks, refused: inbox.refused, tokens: expectations });
  inbox.tasks.reverse().forEach(noteTask);
  inbox.entries.forEach(keep);
  showReceiver(inbox.receiver);
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

function follow() {
  const feed = new EventSource(`events?after=${state.last}`);
  feed.addEventListener("open", () => tell("live", "Live"));
  feed.addEventListener("message", (event) => {
    const entry = JSON.parse(event.data);
    if (entry.refusal && !state.entries.has(entry.number)) state.refused[entry.refusal.code] = (state.refused[entry.refusal.code] || 0) + 1;
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
for (const node of document.querySelectorAll("[data-copy]")) node.addEventListener("click", () => copyText(node, $(node.dataset.copy).textContent));
$("form").addEventListener("submit", expect);
$("search").addEventListener("input", () => choose({ search: $("search").value.trim().toLowerCase() }));
addEventListener("hashchange", goTo);
start();
