// The timeline of a task as a waterfall: one row for each span, artifact and webhook.
import { clock, duration, el, ENDED, name, plain } from "./dom.js";
import { hostOf } from "./why.js";

const ROWS = 300;
const IDLE = 0.1;
const KINDS = { queued: "queued", working: "run", "input-required": "waits for input", "auth-required": "waits for sign-in",
  step: "step", interrupted: "interrupted step", raised: "failed try", failed: "failed step", call: "call" };
const ms = (time) => (time ? Date.parse(time) : null);

const LOOKS = { step: "step", interrupted: "step", raised: "step", failed: "step", call: "call" };

// ``look`` fills the box of a step or a call that is opened.
export function waterfall(timeline, look, now = Date.now()) {
  const over = ENDED.has(timeline.state.replace("TASK_STATE_", "").toLowerCase());
  const rows = [...spans(timeline, over, now), ...artifacts(timeline), ...webhooks(timeline)];
  const began = ms(timeline.createdAt);
  const scale = scaleOf(rows, began);
  const shown = rows.slice(0, ROWS);
  return [
    el("p", { class: "note took-in-all" }, `${clock(began)}, ${over ? duration(ms(timeline.statusAt) - began) : `${duration(scale.end - began)} so far`}, ${timeline.lastEvent} events`,
      scale.isCut ? ". Stretches in which nothing happened are shortened." : ""),
    el("div", { class: "waterfall" }, axis(scale), el("ol", {}, shown.map((row) => drawn(row, scale, look)))),
    rows.length > ROWS ? el("p", { class: "note" }, `${rows.length - ROWS} more rows are not shown.`) : null,
    timeline.events.length < timeline.lastEvent ? el("p", { class: "note" }, `The first ${timeline.events.length} events are shown.`) : null,
    ...timeline.events.filter((one) => one.percent !== undefined).slice(-1).map((one) => el("p", { class: "note" }, `Progress: ${one.percent} %`)),
    ...Object.entries(timeline.usage ?? {}).map(([model, used]) => el("p", { class: "note usage" }, plain(usage(model, used), 500))),
    timeline.budget ? el("p", { class: "note budget" }, plain(budget(timeline.budget), 300)) : null,
    ...timeline.deliveries.map(delivery),
  ].filter(Boolean);
}

const usage = (model, used) => `${model}: ${Object.entries(used).map(([name, amount]) => `${name} ${amount}`).join(", ")}`;

const budget = ({ spent = {}, bounds = {} }) => `Budget: ${Object.entries(spent).map(([kind, amount]) => `${kind} ${amount}${kind in bounds ? ` of ${bounds[kind]}` : ""}`).join(", ")}`;

function spans(timeline, over, now) {
  const suspended = timeline.waits?.length ? Math.max(...timeline.waits.map((one) => ms(one.since))) : null;
  return timeline.spans.flatMap((span) => {
    const from = ms(span.beganAt);
    const to = ms(span.endedAt) ?? (over ? ms(timeline.statusAt) : Math.max(from, now));
    const runs = span.kind === "working" && !span.endedAt && suspended;
    const label = span.kind === "working" ? `run ${span.name}` : span.name ?? KINDS[span.kind] ?? span.kind;
    const idle = span.kind.endsWith("required");
    const told = `${KINDS[span.kind] ?? span.kind}${span.error ? `, ${plain(span.error, 80)}` : ""}`;
    const row = { label: span.error ? `${label}: ${span.error}` : label, kind: span.kind, told, span, look: LOOKS[span.kind], key: `${span.kind} ${span.name} ${from}`, open: !span.endedAt && !over && !runs,
      bars: [{ from, to: runs || to, idle, bad: Boolean(span.error) }] };
    const rest = { label: "suspended", kind: "input-required", told: "suspended", open: true, bars: [{ from: runs, to, idle: true }] };
    return runs ? [row, rest] : [row];
  });
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

// Maps times to 0..1. A stretch in which nothing is active gets at most a tenth of the active time.
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
  const points = [[began, 0]];
  let isCut = false;
  let at = 0;
  const pass = (to, length) => points.push([to, (at += length)]);
  busy.forEach(([from, to], index) => {
    if (index) {
      const gap = from - busy[index - 1][1];
      isCut ||= gap > total * IDLE;
      pass(from, Math.min(gap, total * IDLE));
    }
    pass(to, to - from);
  });
  const whole = Math.max(1, at);
  const find = (value, column) => Math.max(0, points.findIndex((point) => point[column] >= value) - 1);
  const between = (value, from, to) => {
    const [a, b] = [points[find(value, from)], points[find(value, from) + 1] ?? points.at(-1)];
    return b[from] === a[from] ? b[to] : a[to] + ((value - a[from]) / (b[from] - a[from])) * (b[to] - a[to]);
  };
  return { end, isCut, began, place: (time) => Math.min(1, Math.max(0, between(time, 0, 1) / whole)), time: (share) => between(share * whole, 1, 0) };
}

function axis(scale) {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const tick = el("span", {}, duration(scale.time(share) - scale.began));
    tick.style.left = `${share * 100}%`;
    return tick;
  });
  return el("div", { class: "axis", "aria-hidden": "true" }, el("div", {}, ticks));
}

function drawn(row, scale, look) {
  const first = row.bars[0];
  const took = row.note ?? (first ? duration(first.to - first.from) : "");
  const track = el("div", { class: "track", "aria-hidden": "true" }, row.bars.slice(0, 500).map((bar) => {
    const node = el("span", { class: `span ${row.kind}`, "data-bad": bar.bad ?? false, title: bar.title ? plain(bar.title) : null });
    const left = scale.place(bar.from);
    node.style.left = `${left * 100}%`;
    node.style.width = `${Math.max(0, scale.place(bar.to) - left) * 100}%`;
    return node;
  }));
  const said = `${row.told}${first ? `, after ${duration(first.from - scale.began)}` : ""}`;
  const cells = [el("span", { class: "label" }, name(row.label, 80)), el("span", { class: "hidden" }, ` ${said}, `), track, el("span", { class: "took" }, took, row.open ? " …" : "")];
  const title = `${plain(row.label)}: ${said}`;
  if (!row.look) return el("li", { class: "cells", title }, cells);
  const box = el("div", { class: "inside" });
  const details = el("details", { "data-key": row.key }, el("summary", { class: "cells", title }, cells), box);
  details.addEventListener("toggle", () => {
    if (!details.open && row.open) box.replaceChildren();
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
  return el("p", { class: "note" }, `401: the receiver refused the request, and only the receiver knows why. See its inbox, or “refused code=” in its log.${here}`);
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
