// The console: agents, a conversation with one of them, and what its task does.
import { agentUrl, ApiError, credentials, getJson, getOwn, post, taskPath } from "./api.js";
import { $, badge, copyButton, el, ENDED, MESSAGE, name, plain, size, stateName, WAITS } from "./dom.js";
import { eventForm, lookInto } from "./inside.js";
import { listTasks, markTask, prepareFilters } from "./list.js";
import { artifact, parts } from "./parts.js";
import { showEvents, showLog, tracebackOf } from "./record.js";
import { LANGUAGES } from "./requests.js";
import { follow, fromJson, isOver, reload } from "./task.js";
import { waterfall } from "./waterfall.js";
import { countAll, LATE, reasons } from "./why.js";

const FILE_LIMIT = 3 * 1024 * 1024;
const SECOND = 1000;
const SHOWN_REQUEST = 20_000;
const HOUR = 3_600_000;
const LOOKS = 30;
const SLOWEST = 10_000;
const WAITING = "waiting";
const state = { agent: "", card: null, turns: [], contextId: null, files: [], running: null, language: "curl", draftId: crypto.randomUUID(), looks: 0, last: null, timeline: null, absent: "", shown: "" };
const title = document.title;
const agents = () => [...$("agents").querySelectorAll("a[data-agent]")];
const NO_HOOK = { url: "", token: "", events: "", open: false };
const current = () => state.turns.at(-1)?.task ?? null;

// ---- Errors and sign-in

function show(error) {
  if (error?.name === "AbortError") return;
  if (error?.status === 401) signIn();
  const text = error?.status === 401 ? "Sign in to use this deployment." : error?.message ?? String(error);
  $("problem").replaceChildren(plain(text, 1000), ...(error?.details ?? []).filter((one) => !text.includes(one.split(": ").at(-1))).slice(0, 10).map((one) => el("span", {}, plain(one, 500))));
  $("problem").hidden = false;
}

const clear = () => { $("problem").hidden = true; };

async function attempt(work) {
  try {
    clear();
    return await work();
  } catch (error) {
    show(error);
    return undefined;
  }
}

function signIn() {
  $("sign-in").hidden = false;
  if (!$("dialog").open) $("dialog").showModal();
}

function showSignIn() {
  $("sign-in").textContent = credentials.get() ? "Sign out" : "Sign in";
}

// ---- Agents

async function openAgent(id, task = "") {
  stop();
  Object.assign(state, { agent: id, card: null, turns: [], contextId: null, last: null, timeline: null, absent: "" });
  expand("show-data", "extra-data", Boolean($("data").value.trim()));
  $("no-agent").hidden = true;
  clear();
  for (const link of agents()) link.toggleAttribute("aria-current", link.dataset.agent === id);
  agents().find((link) => link.dataset.agent === id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  $("talk").hidden = $("side").hidden = $("card").hidden = !id;
  if (!id) {
    document.title = title;
    await attempt(() => list());
    return;
  }
  draw();
  await attempt(async () => {
    state.card = await getJson(`${agentUrl(id)}/.well-known/agent-card.json`);
    drawCard();
  });
  await attempt(() => list());
  if (task) await attempt(() => openTask(task));
}

function showNoAgent(id) {
  const first = agents()[0];
  $("no-agent").replaceChildren(el("h2", {}, "There is no such agent"), el("p", {}, "This deployment has no agent ", name(`“${id}”`, 80), ". It may have been renamed or removed."),
    first ? el("p", {}, el("a", { href: first.getAttribute("href"), "data-agent": first.dataset.agent }, "Open ", name(first.querySelector(".name").textContent)), ", or choose another one in the list.") : "");
  $("no-agent").hidden = false;
}

function drawCard() {
  const { card } = state;
  const can = Object.entries(card.capabilities ?? {}).filter(([, on]) => on === true).map(([what]) => what);
  document.title = `${plain(card.name, 60)} · ${title}`;
  const facts = [["Address", el("code", {}, agentUrl(state.agent))], ["Version", plain(card.version)], ["Can", can.join(", ") || "answer"],
    ["Takes", plain((card.defaultInputModes ?? []).join(", "), 300)], ["Makes", plain((card.defaultOutputModes ?? []).join(", "), 300)]];
  $("card").replaceChildren(
    el("div", { class: "row" }, el("h2", {}, name(card.name)), el("span", { class: "space" }),
      el("button", { type: "button", class: "quiet", id: "about", "aria-expanded": "false", onclick: () => drawAbout(!$("card").hasAttribute("data-whole")) }, "Examples and card")),
    el("p", { class: "about", dir: "auto" }, plain(card.description, 1000)),
    el("ul", { class: "skills", "aria-label": "Skills" }, (card.skills ?? []).slice(0, 50).map(skill)),
    el("details", {}, el("summary", {}, "Card"), el("dl", {}, facts.flatMap(([title, value]) => [el("dt", {}, title), el("dd", {}, value)])),
      el("a", { href: `${agentUrl(state.agent)}/.well-known/agent-card.json` }, "agent-card.json")));
  drawAbout(false);
}

// In a conversation the agent is one line, until somebody wants to see more of it.
function drawAbout(isWhole) {
  $("card").toggleAttribute("data-small", state.turns.length > 0);
  $("card").toggleAttribute("data-whole", isWhole);
  $("about")?.setAttribute("aria-expanded", String(isWhole));
}

function skill(one) {
  const examples = (one.examples ?? []).slice(0, 6).map((text) => el("button", { type: "button", class: "example", title: plain(text, 500), onclick: () => fill(text) }, el("bdi", {}, plain(firstLine(text), 90))));
  return el("li", {}, el("strong", {}, name(one.name)), " ", el("span", { class: "dim", dir: "auto" }, plain(one.description, 400)), examples.length ? el("div", { class: "examples" }, examples) : null);
}

function firstLine(text) {
  const [first, ...rest] = text.trim().split("\n");
  return `${first.replace(/^#+\s*/, "")}${rest.length ? " …" : ""}`;
}

function fill(text) {
  $("text").value = text;
  $("text").focus();
  $("text").setSelectionRange(0, 0);
  $("text").scrollTop = 0;
  drawRequest();
}

// ---- Tasks

const list = (isNext = false) => listTasks(agents(), current()?.id, isNext);

async function openTask(id) {
  stop();
  Object.assign(state, { turns: [], contextId: null, last: null, timeline: null, absent: "" });
  try {
    const task = fromJson(await getJson(agentUrl(state.agent) + taskPath(id)));
    Object.assign(state, { turns: [turn(task)], contextId: task.contextId });
    draw();
    refresh();
    if (!isOver(task)) run(task, null);
  } catch (error) {
    if (error.status === 404) state.absent = id;
    draw();
    if (error.status !== 404) throw error;
  }
}

const turn = (task) => ({ task, node: el("div", { class: "turn" }) });

function stop() {
  state.running?.abort();
  state.running = null;
}

// ---- Sending

function message() {
  const found = [];
  if ($("text").value.trim()) found.push({ text: $("text").value });
  if (!$("extra-data").hidden && $("data").value.trim()) found.push({ data: JSON.parse($("data").value), mediaType: "application/json" });
  for (const file of state.files) found.push({ raw: file.raw, filename: file.name, mediaType: file.type || "application/octet-stream" });
  const task = current();
  const ids = { ...(state.contextId && { contextId: state.contextId }), ...(task && !ENDED.has(task.state) && task.id && { taskId: task.id }) };
  return { messageId: state.draftId, role: "ROLE_USER", parts: found, ...ids };
}

const hook = () => ({ url: $("hook-url").value.trim(), token: $("hook-token").value, events: $("hook-events").value, open: !$("extra-hook").hidden });

function request() {
  const configuration = {};
  const headers = { "A2A-Version": "1.0", "Content-Type": "application/json" };
  const { open, url, token, events } = hook();
  if (open && url && events) headers["A2A-Extensions"] = `urn:a2a-serverless:webhook-${events}:1`;
  if (open && url) configuration.taskPushNotificationConfig = { url, ...(token && { token }) };
  const streams = state.card?.capabilities?.streaming === true;
  if (!streams) configuration.returnImmediately = true;
  const body = { message: message(), ...(Object.keys(configuration).length && { configuration }) };
  return { url: `${agentUrl(state.agent)}/message:${streams ? "stream" : "send"}`, headers, body, streams, key: Boolean(credentials.get()) };
}

async function send() {
  let asked;
  try {
    asked = request();
  } catch {
    show(new ApiError(0, "The data is not JSON."));
    return;
  }
  if (!asked.body.message.parts.length) {
    show(new ApiError(0, "Write a message, or add a file or data."));
    return;
  }
  if (hook().open && !hook().url) {
    show(new ApiError(0, "The webhook has no URL. Enter it, or close “Webhook”."));
    return;
  }
  clear();
  const sent = { ...asked.body.message, local: true };
  let task = current();
  if (task && sent.taskId) task.messages.push(sent);
  else {
    task = { id: "", contextId: state.contextId, state: "submitted", messages: [sent], artifacts: [], after: null };
    state.turns.push(turn(task));
  }
  state.last = asked;
  const draft = { text: $("text").value, data: $("data").value, files: state.files, draftId: state.draftId, webhook: hook() };
  setDraft({ text: "", data: "", files: [], draftId: crypto.randomUUID(), webhook: NO_HOOK });
  draw();
  $("flow").scrollTop = $("flow").scrollHeight;
  if (!(await run(task, asked)) && refused(task, sent)) setDraft(draft);
}

function setDraft({ text, data, files, draftId, webhook }) {
  $("text").value = text;
  $("data").value = data;
  $("hook-url").value = webhook.url;
  $("hook-token").value = webhook.token;
  $("hook-events").value = webhook.events;
  expand("show-hook", "extra-hook", webhook.open);
  Object.assign(state, { files, draftId });
  drawFiles();
}

// Takes back a message that did not arrive; returns whether it is one.
function refused(task, sent) {
  if (sent.taskId ? !task.messages.includes(sent) : task.id) return false;
  task.messages = task.messages.filter((one) => one !== sent);
  if (!sent.taskId) state.turns = state.turns.filter((one) => one.task !== task);
  draw();
  return true;
}

async function run(task, asked) {
  stop();
  const running = (state.running = new AbortController());
  const changed = (what) => later(task, what);
  refreshOften();
  drawTask();
  const arrived = await attempt(async () => {
    if (asked && !asked.streams) await sendOnce(task, asked, changed, running.signal);
    else await follow(state.agent, task, { body: asked?.body ?? null, headers: asked?.headers, changed, signal: running.signal });
    return true;
  });
  if (state.running !== running) return true;
  state.running = null;
  refreshOften();
  if (!arrived) return false;
  drawTask();
  refreshSoon();
  say(task.state === MESSAGE ? "The agent answered with a message." : `The task is ${task.state}.`);
  if (WAITS.has(task.state)) $("text").focus();
  list().catch(() => {});
  return true;
}

async function sendOnce(task, asked, changed, signal) {
  const answer = await post(asked.url, asked.body, asked.headers);
  if (answer.message) {
    task.messages.push(answer.message);
    task.state = MESSAGE;
    changed("message");
    return;
  }
  Object.assign(task, { id: answer.task.id, contextId: answer.task.contextId, state: stateName(answer.task.status.state) });
  changed("status");
  for (let wait = 500; !isOver(task) && !signal.aborted; wait = Math.min(5000, wait * 1.5)) {
    await new Promise((done) => setTimeout(done, wait));
    await reload(state.agent, task, changed);
  }
}

async function cancel(task) {
  await attempt(async () => {
    await post(`${agentUrl(state.agent)}${taskPath(task.id)}:cancel`, {});
    await reload(state.agent, task, () => later(task, "task"));
  });
}

// A task repeats once, however often its button is pressed.
async function retry(task) {
  task.requestId ??= crypto.randomUUID();
  const given = await attempt(() => post(`${agentUrl(state.agent)}${taskPath(task.id)}/retry`, { requestId: task.requestId }));
  if (!given || state.turns.some((one) => one.task.id === given.id)) return;
  const repeated = fromJson(given);
  state.turns.push(turn(repeated));
  draw();
  $("flow").scrollTop = $("flow").scrollHeight;
  await run(repeated, null);
}

// Answers a question for an approval. What was written is the reason of a no; beside a yes it stays a draft.
function decide(word) {
  const written = $("text").value.trim();
  $("text").value = written && word === "no" ? `no, ${written}` : word;
  send();
  if (word === "yes") $("text").value = written;
}

// Agents and the adapters of frameworks mark such a question by its metadata.
const isApproval = (question) => question?.role !== "ROLE_USER" && question?.metadata?.kind === "approval";

const say = (text) => { $("said").textContent = text; };

// ---- Drawing. Changes of one frame are drawn together.

const waiting = new Map();

function later(task, what) {
  if (!waiting.size) requestAnimationFrame(drawWaiting);
  waiting.set(task, (waiting.get(task) ?? new Set()).add(what));
}

function drawWaiting() {
  const flow = $("flow");
  const atEnd = flow.scrollHeight - flow.scrollTop - flow.clientHeight < 60;
  for (const [task, changes] of waiting) {
    const found = state.turns.find((one) => one.task === task);
    if (found) for (const what of changes) drawTurn(found, what);
    if (task.contextId) state.contextId = task.contextId;
  }
  if ([...waiting.values()].some((changes) => changes.has("status"))) refreshOften();
  waiting.clear();
  if (atEnd) flow.scrollTop = flow.scrollHeight;
  drawTask();
  refreshSoon();
}

function draw() {
  $("flow").replaceChildren(...(state.turns.length ? state.turns.map((one) => (drawTurn(one, "task"), one.node)) : [empty()]));
  drawTask();
  drawRequest();
  drawAbout(false);
  if (!state.timeline) $("timeline").replaceChildren(el("p", { class: "empty" }, current() ? "The timeline comes in a moment." : "Send a message, or open a task: its time is shown here."));
  drawRecord();
}

function empty() {
  if (!state.absent) return el("p", { class: "empty" }, "Nothing was said yet. Write a message below, or take an example above.");
  return el("div", { class: "absent", role: "alert" }, el("h2", {}, "There is no such task"),
    el("p", {}, "This agent has no task ", el("code", {}, plain(state.absent, 80)), " of yours. It may have expired, belong to another agent, or to somebody else."),
    el("p", {}, el("a", { href: `?agent=${encodeURIComponent(state.agent)}`, "data-agent": state.agent }, "Begin a new conversation"), ", or open one of your tasks in the list."));
}

function drawTurn({ task, node }, what) {
  const old = task.artifacts.find((one) => one.artifactId === what);
  const place = old && [...node.children].find((child) => child.dataset.artifact === what);
  if (place) {
    place.replaceWith(artifact(old, task.artifacts));
    return;
  }
  const latest = task.messages.at(-1);
  node.replaceChildren(
    ...task.messages.slice(0, -1).map((one) => bubble(one)), ...(latest && latest.role === "ROLE_USER" ? [bubble(latest)] : []),
    ...task.artifacts.map((one) => artifact(one, task.artifacts)), ...(latest && latest.role !== "ROLE_USER" ? [bubble(latest, WAITS.has(task.state))] : []));
}

function progressBar(metadata) {
  const percent = metadata?.["a2a-serverless/percent"];
  const given = typeof percent === "number" ? Math.min(100, Math.max(0, percent)) : null;
  return given === null ? [] : [el("progress", { max: 100, value: String(given), "aria-label": "Progress" }), ` ${given} %`];
}

function bubble(one, asks = false) {
  const mine = one.role === "ROLE_USER";
  return el("div", { class: `said ${mine ? "mine" : "theirs"}`, "data-asks": asks },
    el("span", { class: "who" }, mine ? "You" : asks ? "The agent asks" : "Agent"), parts(one.parts ?? [], { prose: !mine }), progressBar(one.metadata));
}

function drawTask() {
  const task = current();
  const ongoing = Boolean(task && !ENDED.has(task.state));
  $("task").hidden = !task;
  drawWhy(task);
  markTask(task?.id);
  $("fresh").hidden = !task;
  $("send").textContent = task && WAITS.has(task.state) ? "Answer" : "Send";
  const asksApproval = task?.state === "input-required" && isApproval(task.messages.at(-1));
  $("decide").hidden = !asksApproval;
  $("text").placeholder = asksApproval ? "Another answer, or the reason to deny" : "Write a message";
  $("send").classList.toggle("primary", !asksApproval);
  $("reply").hidden = asksApproval || !(task && WAITS.has(task.state));
  $("reply").textContent = task?.state === "auth-required" ? "The task waits until you have signed in where it says." : "The task waits for your answer.";
  $("hook-adds").hidden = !(ongoing && task.id);
  if (!task) return;
  const shown = shownState(task);
  $("task").replaceChildren(badge(shown), state.running ? el("span", { class: "live" }, "live") : "",
    task.id ? el("code", { title: task.id }, plain(task.id, 64)) : el("span", { class: "space" }),
    task.id ? copyButton(task.id, "Copy id") : "",
    task.state === "failed" && task.id ? el("button", { type: "button", id: "retry", title: "A new task goes on from the step that failed", onclick: () => retry(task) }, "Retry") : "",
    ongoing && task.id ? el("button", { type: "button", id: "cancel", onclick: () => cancel(task) }, "Cancel task") : "");
  if (task.id && new URLSearchParams(location.search).get("task") !== task.id) {
    history.replaceState(null, "", `?agent=${encodeURIComponent(state.agent)}&task=${encodeURIComponent(task.id)}`);
    list().catch(() => {});
  } else if (shown !== state.shown && [shown, state.shown].includes(WAITING)) list().catch(() => {});
  state.shown = shown;
}

// A task that works may be suspended: its timeline knows.
function shownState(task) {
  const timeline = state.timeline?.taskId === task.id ? state.timeline : null;
  return task.state === "working" && timeline?.waits?.length ? WAITING : task.state;
}

let toldWhy = "";

// Why the task has failed or waits. It is drawn again only if it has changed, so that nothing is lost in its forms.
function drawWhy(task) {
  const timeline = state.timeline?.taskId === task?.id ? state.timeline : null;
  const isLate = task?.state === "submitted" && Date.now() - Date.parse(timeline?.createdAt) > LATE;
  const basis = JSON.stringify([task?.id, task?.state, isLate, task?.messages.length, timeline?.waits, timeline?.moreWaits, timeline?.spans.at(-1), timeline?.deliveries.map((one) => [one.hostPaused, one.failuresInARow, one.nextAttemptAt])]);
  if (basis === toldWhy) return;
  toldWhy = basis;
  const actions = { failure: () => (task.state === "failed" ? tracebackOf(state.agent, task.id) : null), event: (wait) => eventForm(state.agent, task.id, wait, () => { refreshOften(); refreshSoon(); }) };
  const nodes = task ? reasons(task, timeline, actions) : [];
  $("why").replaceChildren(...nodes);
  $("why").hidden = !nodes.length;
}

function drawFiles() {
  $("files").hidden = !state.files.length;
  $("files").replaceChildren(...state.files.map((file) => el("li", {}, name(file.name, 80), el("span", { class: "dim" }, size(file.size)),
    el("button", { type: "button", class: "quiet", "aria-label": `Remove ${plain(file.name, 80)}`, onclick: () => remove(file) }, "Remove"))));
  drawRequest();
}

function remove(file) {
  state.files = state.files.filter((one) => one !== file);
  drawFiles();
}

async function addFiles(chosen) {
  for (const file of chosen) {
    const taken = state.files.reduce((sum, one) => sum + one.size, 0);
    if (taken + file.size > FILE_LIMIT) show(new ApiError(0, `${plain(file.name, 80)} is too big: a message holds ${size(FILE_LIMIT)} of files. Bigger ones go by POST /${state.agent}/uploads.`));
    else state.files.push({ name: file.name, type: file.type, size: file.size, raw: await base64(file) });
  }
  drawFiles();
}

const base64 = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.addEventListener("load", () => done(String(reader.result).split(",", 2)[1] ?? ""));
  reader.addEventListener("error", () => failed(reader.error));
  reader.readAsDataURL(file);
});

// ---- Timeline and request

let refreshing = 0;
let looking = 0;

function refreshSoon() {
  const wait = Math.min(SLOWEST, 700 * 1.2 ** state.looks);
  if (!refreshing) refreshing = setTimeout(() => { refreshing = 0; (document.hidden ? refreshSoon : refresh)(); }, wait);
}

function refreshOften() {
  clearTimeout(refreshing);
  refreshing = state.looks = 0;
}

async function refresh() {
  const task = current();
  clearTimeout(looking);
  if (task?.state === MESSAGE) $("timeline").replaceChildren(el("p", { class: "empty" }, "The agent answered with a message. There is no task, so there is no timeline."));
  if (!task?.id) return;
  try {
    const timeline = await getJson(`${agentUrl(state.agent)}${taskPath(task.id)}/timeline`);
    if (current() !== task) return;
    state.looks += 1;
    state.timeline = timeline;
    drawTimeline(task, timeline);
    if (shownState(task) === state.shown) drawWhy(task);
    else drawTask();
    drawRecord();
    const delivers = timeline.deliveries.some((one) => one.state === "active" && one.deliveredUpTo < one.lastEvent);
    if (state.running || (delivers && state.looks < LOOKS)) refreshSoon();
    else if (WAITS.has(task.state)) lookAfter(task, timeline.waits ?? []);
  } catch (error) {
    $("timeline").replaceChildren(el("p", { class: "problem" }, plain(error.message, 500)));
  }
}

// What was opened stays open, with what it has asked for, and the focus stays where it was.
function drawTimeline(task, timeline) {
  const before = new Map([...$("timeline").querySelectorAll("details[open]")].map((one) => [one.dataset.key, one.querySelector(".inside:not([data-whole])")]));
  const focused = $("timeline").contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.closest("summary")?.parentElement.dataset.key;
  const agent = state.agent;
  $("timeline").replaceChildren(...waterfall(timeline, (row, box) => lookInto(agent, task.id, row, box)));
  for (const one of $("timeline").querySelectorAll("details")) {
    if (before.has(one.dataset.key)) {
      const inside = before.get(one.dataset.key);
      if (inside) one.querySelector(".inside").replaceWith(inside);
      one.open = true;
    }
    if (key === one.dataset.key) one.querySelector("summary").focus();
  }
  if (focused?.isConnected) focused.focus();
}

// Looks again when the first wait of an open question ends: a reminder comes, or the time for the answer is over.
function lookAfter(task, waits) {
  const ends = waits.map((one) => Date.parse(one.until)).filter(Number.isFinite);
  if (ends.length) looking = setTimeout(() => lookAgain(task), Math.min(HOUR, Math.max(0, Math.min(...ends) - Date.now()) + 2000));
}

async function lookAgain(task) {
  if (current() !== task || state.running) return;
  await attempt(() => reload(state.agent, task, () => later(task, "task")));
  if (isOver(task)) await refresh();
  else await run(task, null);
}

function drawRequest() {
  if (!state.agent) return;
  let asked = state.last;
  try {
    const drafted = request();
    if (drafted.body.message.parts.length || !asked) asked = drafted;
  } catch { /* the data is not JSON yet */ }
  const [, write] = LANGUAGES[state.language];
  const text = asked ? write(asked) : "";
  const choose = Object.entries(LANGUAGES).map(([id, [label]]) => el("button", { type: "button", "aria-pressed": String(id === state.language), onclick: () => { state.language = id; drawRequest(); $("request").querySelector("[aria-pressed=true]").focus(); } }, label));
  $("request").replaceChildren(
    el("div", { class: "row" }, el("div", { class: "choice", role: "group", "aria-label": "Language" }, choose), el("span", { class: "space" }), copyButton(text)),
    el("p", { class: "note" }, asked === state.last ? "The request that was sent last." : "The request that the draft would send.", asked?.key ? " A2A_KEY holds your key." : ""),
    el("pre", { class: "code", tabindex: "0" }, text.length > SHOWN_REQUEST ? `${text.slice(0, SHOWN_REQUEST)}\n… (${size(text.length)} in all: copy it)` : text));
}

// ---- The page

function expand(button, box, opens) {
  $(box).hidden = !opens;
  $(button).setAttribute("aria-expanded", String(opens));
}

function toggle(button, box) {
  const opens = $(box).hidden;
  expand(button, box, opens);
  if (opens) $(box).querySelector("input, textarea").focus();
  drawRequest();
}

// The tab of the events or of the log, if it is open.
function drawRecord() {
  for (const [tab, show] of [["events", showEvents], ["log", showLog]]) if (!$(tab).hidden) show(state.agent, current()?.id ?? "", $(tab));
}

function chooseTab(tab) {
  for (const one of document.querySelectorAll("[role=tab]")) {
    const on = one === tab;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
    $(one.getAttribute("aria-controls")).hidden = !on;
  }
  drawRecord();
}

function start() {
  const asked = new URLSearchParams(location.search);
  const known = agents().map((link) => link.dataset.agent);
  $("none").hidden = known.length > 0;
  showSignIn();
  $("sign-in").hidden = !credentials.get();
  $("hook-url").placeholder = new URL("webhook", document.body.dataset.inbox || "https://hooks.example.com/").href;
  const wanted = asked.get("agent") || known[0] || "";
  openAgent(known.includes(wanted) ? wanted : "", asked.get("task") ?? "");
  if (wanted && !known.includes(wanted)) showNoAgent(wanted);
}

function go(link) {
  history.pushState(null, "", link.href);
  if (link.dataset.task && link.dataset.of === state.agent) attempt(async () => { clear(); await openTask(link.dataset.task); await list(); });
  else openAgent(link.dataset.agent ?? link.dataset.of, link.dataset.task);
}

document.querySelector(".frame").addEventListener("click", (event) => {
  const link = event.target.closest("a[data-agent], a[data-task]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(link);
});
$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  send();
});
$("composer").addEventListener("input", drawRequest);
$("file").addEventListener("change", (event) => { addFiles([...event.target.files]).finally(() => { $("file").value = ""; }); });
$("show-data").addEventListener("click", () => toggle("show-data", "extra-data"));
$("show-hook").addEventListener("click", () => toggle("show-hook", "extra-hook"));
$("fresh").addEventListener("click", () => {
  stop();
  Object.assign(state, { turns: [], contextId: null, last: null, timeline: null, absent: "" });
  history.pushState(null, "", `?agent=${encodeURIComponent(state.agent)}`);
  draw();
  $("text").focus();
});
$("reload").addEventListener("click", () => attempt(() => list()));
$("more").addEventListener("click", async () => { (await attempt(() => list(true)))?.[0]?.querySelector("a").focus(); });
prepareFilters(agents(), () => attempt(() => list()));
$("approve").addEventListener("click", () => decide("yes"));
$("deny").addEventListener("click", () => decide("no"));
setInterval(countAll, SECOND);
for (const tab of document.querySelectorAll("[role=tab]")) {
  tab.addEventListener("click", () => chooseTab(tab));
  tab.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const { firstElementChild: first, lastElementChild: last } = tab.parentElement;
    const other = event.key === "ArrowRight" ? tab.nextElementSibling ?? first : tab.previousElementSibling ?? last;
    chooseTab(other);
    other.focus();
  });
}
$("sign-in").addEventListener("click", () => {
  if (!credentials.get()) signIn();
  else {
    credentials.set("");
    location.reload();
  }
});
$("key-cancel").addEventListener("click", () => $("dialog").close());
$("key-form").addEventListener("submit", () => {
  credentials.set($("key").value.trim());
  $("key").value = "";
  showSignIn();
  start();
});
window.addEventListener("popstate", start);
start();
