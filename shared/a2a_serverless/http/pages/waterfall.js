// The timeline of a task as a waterfall: its runs, then one row for each step, call, wait, artifact and webhook.
import { clock, duration, el, ENDED, name, plain } from "./dom.js";
import { hostOf } from "./why.js";

const ROWS = 300;
const IDLE = 0.1;
const CUT = 0.12;
const MOST_CUT = 0.5;
const TOLD_CUTS = 3;
const LETTER = 0.046; // the width of a letter on the narrowest axis, as a share of it
const ROOM = 0.25; // between two round times
const STEPS = [1, 10, 100].flatMap((ms) => [ms, 2 * ms, 5 * ms]).concat([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400].map((seconds) => seconds * 1000));
const KINDS = { "earlier-runs": "runs", queued: "queued", run: "run", suspended: "suspended", step: "step",
  interrupted: "interrupted step", raised: "failed try", failed: "failed step", call: "call", question: "question", sleep: "sleep",
  event: "event", budget: "budget for", pause: "paused:", retry: "pause before" };
const TOLD = { budget: "wait for budget", pause: "pause", retry: "pause" }; // where no name follows
const PERIODS = new Set(["earlier-runs", "queued", "run", "suspended"]);
const WAITS = new Set(["question", "sleep", "event", "budget", "pause", "retry"]);
const REASONS = { ended: "the task has ended", waits: "it waits", "handed-over": "handed over", died: "died", replaced: "replaced" };
const ms = (time) => (time ? Date.parse(time) : null);

const LOOKS = { step: "step", interrupted: "step", raised: "step", failed: "step", call: "call" };

// ``look`` fills the box of a step or a call that is opened.
export function waterfall(timeline, look, now = Date.now()) {
  const over = ENDED.has(timeline.state.replace("TASK_STATE_", "").toLowerCase());
  const rows = [runs(timeline, now), ...spans(timeline, now), ...artifacts(timeline), ...webhooks(timeline), states(timeline, now)];
  const began = ms(timeline.createdAt);
  const scale = scaleOf(rows, began);
  const shown = rows.slice(0, ROWS);
  return [
    el("p", { class: "note took-in-all" }, `${clock(began)}, ${over ? duration(ms(timeline.statusAt) - began) : `${duration(scale.end - began)} so far`}, ${timeline.lastEvent} events`,
      toldCuts(scale)),
    el("div", { class: "waterfall" }, axis(scale), el("ol", {}, shown.map((row) => drawn(row, scale, look)))),
    rows.length > ROWS ? el("p", { class: "note" }, `${rows.length - ROWS} more rows are not shown.`) : null,
    timeline.events.length < timeline.lastEvent ? el("p", { class: "note" }, `The first ${timeline.events.length} events are shown.`) : null,
    ...timeline.events.filter((one) => one.percent !== undefined && !over).slice(-1).map((one) => el("p", { class: "note" }, `Progress: ${one.percent} %`)),
    ...Object.entries(timeline.usage ?? {}).map(([model, used]) => el("p", { class: "note usage" }, plain(usage(model, used), 500))),
    timeline.budget ? el("p", { class: "note budget" }, plain(budget(timeline.budget), 300)) : null,
    ...timeline.deliveries.map(delivery),
  ].filter(Boolean);
}

const usage = (model, used) => `${model}: ${Object.entries(used).map(([name, amount]) => `${name} ${amount}`).join(", ")}`;

function budget({ spent = {}, bounds = {} }) {
  const bounded = Object.entries(bounds).map(([kind, bound]) => `${kind} ${spent[kind] ?? 0} of ${bound}`);
  const free = Object.entries(spent).filter(([kind, amount]) => amount && !(kind in bounds)).map(([kind, amount]) => `${kind} ${amount}`);
  return `Budget: ${bounded.join(", ")}${free.length ? `; without a bound: ${free.join(", ")}` : ""}`;
}

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

// The task's whole life in one row: in the queue, in runs, suspended. Opened, it has a table of the runs.
function runs(timeline, now) {
  const periods = timeline.spans.filter((one) => PERIODS.has(one.kind));
  const own = periods.filter((one) => one.kind === "run");
  const all = own.length + (timeline.earlierRuns?.runs ?? 0);
  const bars = periods.flatMap((one) => {
    const [from, to, written] = [ms(one.beganAt), ms(one.endedAt) ?? Math.max(ms(one.beganAt), now), ms(one.lastWriteAt)];
    const bar = { from, to: written ?? to, kind: one.kind, idle: one.kind === "suspended" || one.kind === "earlier-runs", title: period(one, to) };
    return written === null ? [bar] : [bar, { ...bar, from: written, to, kind: "lost", title: "It died in this time: its lease ended without a write" }];
  });
  return { label: "runs", kind: "run", told: count(all, "run"), note: count(all, "run"), key: "runs", bars, open: periods.some((one) => !one.endedAt),
    inside: runTable(timeline, periods, now) };
}

const period = (one, to) => [`${KINDS[one.kind]} ${one.name ?? ""}`.trim(), duration(to - ms(one.beganAt)), REASONS[one.reason] ?? one.reason].filter(Boolean).join(", ");

function runTable(timeline, periods, now) {
  const earlier = timeline.earlierRuns;
  const began = ms(timeline.createdAt);
  const rows = periods.filter((one) => one.kind === "run").map((one) => {
    const before = periods[periods.indexOf(one) - 1];
    const end = one.endedAt ? REASONS[one.reason] ?? plain(one.reason, 40) : "at work";
    const told = one.lastWriteAt ? `${end}, between ${duration(ms(one.lastWriteAt) - began)} and ${duration(ms(one.endedAt) - began)}` : end;
    return el("tr", { "data-bad": one.reason === "died" }, el("td", {}, plain(one.name, 20)), el("td", {}, duration(ms(one.beganAt) - began)), el("td", {}, told),
      el("td", {}, duration((ms(one.endedAt) ?? now) - ms(one.beganAt))), el("td", {}, before?.kind === "queued" ? duration(ms(before.endedAt) - ms(before.beganAt)) : "0 ms"));
  });
  return [
    earlier ? el("p", { class: "note" }, `${count(earlier.runs, "earlier run")}: ${duration(earlier.runMilliseconds)} at work, ${duration(earlier.suspendedMilliseconds)} suspended, ${duration(earlier.queuedMilliseconds)} queued.`) : "",
    rows.length ? el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ["Run", "After", "Why it ended", "Took", "Queued"].map((title) => el("th", {}, title)))), el("tbody", {}, rows)))
      : el("p", { class: "note" }, "No run yet."),
  ];
}

function spans(timeline, now) {
  return timeline.spans.filter((one) => !PERIODS.has(one.kind)).map((span) => {
    const from = ms(span.beganAt);
    const kind = KINDS[span.kind] ?? span.kind;
    const label = WAITS.has(span.kind) ? `${kind} ${span.kind === "question" ? "" : span.name ?? ""}`.trim() : span.name ?? kind;
    return { label: span.error ? `${label}: ${span.error}` : label, kind: WAITS.has(span.kind) ? "wait" : span.kind, told: `${TOLD[span.kind] ?? kind}${span.error ? `, ${plain(span.error, 80)}` : ""}`, span,
      look: LOOKS[span.kind], key: `${span.kind} ${span.name} ${from}`, open: !span.endedAt,
      bars: [{ from, to: ms(span.endedAt) ?? Math.max(from, now), idle: WAITS.has(span.kind), bad: Boolean(span.error) }] };
  });
}

// What clients saw, apart from what ran.
function states(timeline, now) {
  const seen = timeline.states.filter((one) => one.beganAt !== one.endedAt);
  const bars = seen.map((one) => ({ from: ms(one.beganAt), to: ms(one.endedAt) ?? Math.max(ms(one.beganAt), now), idle: true, kind: `seen ${one.state}`, title: plain(one.state, 40) }));
  return { label: "clients saw", kind: "seen", told: seen.map((one) => plain(one.state, 40)).join(", then "), note: plain(timeline.state, 40), bars };
}

function artifacts(timeline) {
  const found = new Map();
  for (const event of timeline.events) {
    if (!event.artifactId) continue;
    const row = found.get(event.artifactId) ?? { label: event.artifactName ?? event.artifactId, kind: "chunk", told: "artifact", bars: [] };
    row.bars.push({ from: ms(event.at), to: ms(event.at), title: `event ${event.eventNumber}, ${event.bytes} bytes` });
    found.set(event.artifactId, row);
  }
  return [...found.values()].map((row) => ({ ...row, note: row.bars.length === 1 ? "1 chunk" : `${row.bars.length} chunks` }));
}

const attempts = (count) => `${count} ${count === 1 ? "attempt" : "attempts"}`;
const isFine = (attempt) => attempt.status >= 200 && attempt.status < 300;
const outcome = (attempt) => (attempt.status ? `HTTP ${attempt.status}` : attempt.error ?? "no answer");

function webhooks(timeline) {
  return timeline.deliveries.map((one) => ({
    label: hostOf(one.url), kind: "webhook", told: "webhook", note: attempts(one.attempts.length),
    bars: one.attempts.map((attempt) => ({ from: ms(attempt.at), to: ms(attempt.at) + attempt.milliseconds, bad: !isFine(attempt),
      title: `${attempt.eventNumber ? `event ${attempt.eventNumber}` : "challenge"}: ${outcome(attempt)}` })),
  }));
}

// Maps times to 0..1, everywhere at the same scale. A long stretch in which nothing is active is cut out: its ``cuts`` are drawn.
function scaleOf(rows, began) {
  const bars = rows.flatMap((row) => row.bars);
  const active = bars.filter((bar) => !bar.idle).map((bar) => [bar.from, bar.to]).sort((a, b) => a[0] - b[0]);
  const end = Math.max(began + 1, ...bars.slice(0, 5000).map((bar) => bar.to));
  const busy = [[began, began]];
  for (const [from, to] of [...active, [end, end]]) {
    if (from <= busy.at(-1)[1]) busy.at(-1)[1] = Math.max(busy.at(-1)[1], to);
    else busy.push([from, to]);
  }
  const total = Math.max(1, busy.reduce((sum, [from, to]) => sum + to - from, 0));
  const cuts = busy.slice(1).map(([to], index) => ({ from: busy[index][1], to })).filter(({ from, to }) => to - from > total * IDLE);
  const width = Math.min(CUT, MOST_CUT / Math.max(1, cuts.length)); // of a cut, as a share of the axis
  const perMs = (1 - width * cuts.length) / Math.max(1, end - began - cuts.reduce((sum, { from, to }) => sum + to - from, 0));
  const place = (time) => {
    let at = (time - began) * perMs;
    for (const { from, to } of cuts.filter((cut) => cut.from < time)) at += width * Math.min(1, (time - from) / (to - from)) - (Math.min(time, to) - from) * perMs;
    return Math.min(1, Math.max(0, at));
  };
  return { end, began, cuts, perMs, place };
}

// The axis has the times at its ends, where it goes on after a cut, and round ones between, as far as there is room.
function axis(scale) {
  const { began, end, cuts, perMs, place } = scale;
  const step = STEPS.find((ms) => ms * perMs >= ROOM) ?? Infinity;
  const all = [began, end, ...cuts.map(({ to }) => to)];
  for (let at = began + step; at < end && all.length < 100; at += step) {
    const cut = cuts.find(({ from, to }) => from < at && at < to);
    if (cut) at = began + Math.floor((cut.to - began) / step) * step;
    else all.push(at);
  }
  const ticks = [];
  for (const at of all) {
    const [text, share] = [duration(at - began).replace(/ 0 (s|min)$/, ""), place(at)];
    const wide = text.length * LETTER;
    const left = Math.min(1 - wide, Math.max(0, share - wide / 2));
    if (ticks.some((other) => left < other.left + other.wide + LETTER && other.left < left + wide + LETTER)) continue;
    const node = el("span", {}, text);
    node.style.left = `${share * 100}%`;
    node.dataset.side = share < wide / 2 ? "start" : share > 1 - wide / 2 ? "end" : "middle";
    ticks.push({ left, wide, node });
  }
  return el("div", { class: "axis", "aria-hidden": "true" }, el("div", {}, ticks.map(({ node }) => node)));
}

const cutMarks = ({ cuts, place }) => cuts.map(({ from, to }) => {
  const node = el("i", { class: "cut", title: `${duration(to - from)} in which nothing happened` });
  node.style.left = `${place(from) * 100}%`;
  node.style.width = `${(place(to) - place(from)) * 100}%`;
  return node;
});

function toldCuts({ began, cuts }) {
  if (!cuts.length) return "";
  const told = cuts.slice(0, TOLD_CUTS).map(({ from, to }) => `${duration(to - from)} after ${duration(from - began)}`);
  return `. Cut out, because nothing happened: ${told.join(", ")}${cuts.length > TOLD_CUTS ? ` and ${cuts.length - TOLD_CUTS} more` : ""}.`;
}

function drawn(row, scale, look) {
  const first = row.bars[0];
  const took = row.note ?? (first ? duration(first.to - first.from) : "");
  const track = el("div", { class: "track", "aria-hidden": "true" }, row.bars.slice(0, 500).map((bar) => {
    const node = el("span", { class: `span ${bar.kind ?? row.kind}`, "data-bad": bar.bad ?? false, title: bar.title ? plain(bar.title) : null });
    const left = scale.place(bar.from);
    node.style.left = `${left * 100}%`;
    node.style.width = `${Math.max(0, scale.place(bar.to) - left) * 100}%`;
    return node;
  }), cutMarks(scale));
  const said = `${row.told}${first ? `, after ${duration(first.from - scale.began)}` : ""}`;
  const cells = [el("span", { class: "label" }, name(row.label, 80)), el("span", { class: "hidden" }, ` ${said}, `), track, el("span", { class: "took" }, took, row.open ? " …" : "")];
  const title = `${plain(row.label)}: ${said}`;
  if (!row.look && !row.inside) return el("li", { class: "cells", title }, cells);
  const box = el("div", { class: "inside", "data-whole": Boolean(row.inside) }, row.inside ?? []);
  const details = el("details", { "data-key": row.key }, el("summary", { class: "cells", title }, cells), box);
  details.addEventListener("toggle", () => {
    if (!details.open && row.open && row.look) box.replaceChildren();
    if (details.open && !box.childElementCount) look(row, box);
  });
  return el("li", {}, details);
}

// How far a webhook is. Its URL may be trusted or verified while its receiver refuses every event.
function progress(one) {
  const failing = one.state === "active" && one.failuresInARow ? `failing: ${attempts(one.failuresInARow)}` : one.state;
  const pause = one.hostPaused;
  const state = pause ? `host paused until ${clock(pause.until)} after ${pause.unanswered} unanswered` : failing;
  const next = one.nextAttemptAt && !pause ? `next ${clock(one.nextAttemptAt)}` : "";
  const delivered = one.deliveredUpTo ? `delivered up to event ${one.deliveredUpTo} of ${one.lastEvent}` : "nothing delivered";
  return [state, next, delivered, `URL ${one.verification}`].filter(Boolean).join(", ");
}

function refusal(one) {
  if (one.attempts.at(-1)?.status !== 401) return null;
  const here = /^http:\/\/(127\.0\.0\.1|localhost)[:/]/.test(one.url) ? ` On the local stack: ${new URL(one.url).origin}/ and a2a-serverless logs receiver.` : "";
  return el("p", { class: "note" }, `401: the receiver cannot verify the request. Usually its audience, issuer, keys or clock is wrong. The reason is in its inbox, or “refused code=” in its log.${here}`);
}

function delivery(one) {
  const rows = one.attempts.map((attempt) => el("tr", { "data-bad": !isFine(attempt) }, el("td", {}, clock(attempt.at)),
    el("td", {}, attempt.eventNumber ? `event ${attempt.eventNumber}` : "challenge"), el("td", {}, plain(outcome(attempt), 80)), el("td", {}, duration(attempt.milliseconds))));
  return el("details", { class: "delivery", "data-key": `webhook ${one.id}` },
    el("summary", {}, "Webhook ", name(hostOf(one.url), 80), ` ${progress(one)}`),
    el("p", { class: "note mono" }, plain(one.url, 300)), refusal(one),
    rows.length ? el("table", {}, el("thead", {}, el("tr", {}, ["Time", "What", "Answer", "Took"].map((title) => el("th", {}, title)))), el("tbody", {}, rows))
      : el("p", { class: "note" }, "No attempt yet."));
}
