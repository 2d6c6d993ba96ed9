// Why a task has failed or waits, in words, and for how long. The head of the conversation shows it.
import { clock, duration, el, name, plain } from "./dom.js";

const quoted = (text) => ["“", name(text, 100), "”"];
const attempts = (count) => `${count} ${count === 1 ? "time" : "times"}`;

// A time that is counted every second: how long ago it was, or how long it is until then.
export function counted(time, isPast) {
  const at = Date.parse(time);
  const told = el("span", { class: "counted", "data-at": at, "data-past": isPast }, "");
  count(told);
  return [`${isPast ? "since" : "at"} ${clock(at)} (`, told, ")"];
}

const seconds = (count) => (count < 60 ? `${Math.max(0, count)} s` : duration(count * 1000).replace(/ 0 (s|min)$/, ""));

function count(node) {
  const left = Number(node.dataset.at) - Date.now();
  const isPast = node.dataset.past !== undefined;
  node.textContent = isPast ? `for ${seconds(Math.floor(-left / 1000))}` : left > 0 ? `in ${seconds(Math.ceil(left / 1000))}` : "now";
}

export const countAll = () => document.querySelectorAll(".counted").forEach(count);

const KINDS = {
  question: (wait, state) => [[state === "auth-required" ? "Waits until you have signed in where it says" : "Waits for your answer"], "It goes on without one"],
  event: (wait) => [["Waits for the event ", ...quoted(wait.name), " from outside"], "It gives up"],
  sleep: (wait) => [["Sleeps in ", ...quoted(wait.name)], "It goes on"],
  timeout: (wait) => [["Has the time limit ", ...quoted(wait.name)], "The limit ends"],
  call: (wait) => [["Waits for another agent, in the call ", ...quoted(wait.name)], "The call gives up"],
  budget: (wait) => [["Waits for budget: other calls have left none for the call ", ...quoted(wait.name)], ""],
  pause: (wait) => [[`Waits until an operator resumes ${wait.name === "agent" ? "this agent" : "your tasks"}`], ""],
  reminder: () => [["Asks again"], "It asks"],
  retry: (wait) => [["Waits with try ", plain(wait.name.split("/").at(-1), 10), " of the step ", ...quoted(wait.name.split("/").slice(0, -1).join("/"))], "It begins"],
};

const WORDS = { question: "your answer", event: "event", sleep: "sleep", call: "call", budget: "budget for", pause: "paused:", retry: "pause before" };

// What a task waits for, in a few words.
export const nameOfWait = ({ kind, name }) => `${WORDS[kind] ?? kind} ${kind === "question" ? "" : name ?? ""}`.trim();

// The waits of a task; a time limit and a reminder are told with the question or event to which they belong.
function waits(timeline, state, actions) {
  const all = timeline.waits ?? [];
  const question = all.find((one) => one.kind === "question");
  const asked = new Set(question ? [question.name, ...all.filter((one) => one.kind === "reminder").map((one) => one.name)] : []);
  const ownerOf = (one) => {
    if (one.kind === "reminder") return question;
    return one.kind === "timeout" ? (asked.has(one.name) ? question : all.find((other) => other.kind === "event" && other.name === one.name)) : null;
  };
  return all.filter((one) => !ownerOf(one)).map((one) => {
    const [what, ends] = (KINDS[one.kind] ?? (() => [[`Waits: ${plain(one.kind, 40)} `, name(one.name ?? "", 100)], "It ends"]))(one, state);
    const own = all.filter((other) => ownerOf(other) === one);
    const until = one.until ?? own.find((other) => other.kind === "timeout")?.until;
    const again = own.find((other) => other.kind === "reminder")?.until;
    return el("div", { class: "wait" }, el("p", {}, el("strong", {}, what), " ", counted(one.since, true), ". ",
      again ? ["It asks again ", ...counted(again), ". "] : "", until ? [`${ends} `, ...counted(until), "."] : ""), actions[one.kind]?.(one) ?? null);
  });
}

export const LATE = 2000; // how long a new task is in the queue before that is told

function queued(timeline) {
  const last = timeline.spans.filter((one) => one.kind === "queued" && !one.endedAt).at(-1);
  return last && Date.now() - Date.parse(last.beganAt) > LATE ? [el("div", { class: "wait" }, el("p", {}, el("strong", {}, "Waits for a free worker"), " ", counted(last.beganAt, true), "."))] : [];
}

// Webhooks that are not sent now: their host does not answer, or has refused the last one.
function held(timeline) {
  return timeline.deliveries.filter((one) => one.hostPaused || (one.state === "active" && one.failuresInARow)).map((one) => {
    const host = hostOf(one.url);
    const what = one.hostPaused ? ["No webhook is sent to ", name(host, 80), `: it has not answered ${attempts(one.hostPaused.unanswered)} in a row. It is tried again `, ...counted(one.hostPaused.until), "."]
      : ["The webhook to ", name(host, 80), ` has failed ${attempts(one.failuresInARow)} in a row. `, ...(one.nextAttemptAt ? ["It is sent again ", ...counted(one.nextAttemptAt), "."] : [])];
    return el("div", { class: "wait" }, el("p", {}, what));
  });
}

export function hostOf(url) {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

function failure(task, timeline, traceback) {
  const said = task.messages.at(-1);
  const reason = said?.role === "ROLE_AGENT" ? said.parts.map((part) => part.text ?? "").join(" ").trim() : "";
  const step = timeline?.spans.filter((one) => one.kind === "failed").at(-1);
  return el("div", { class: "failure" }, el("p", {}, el("strong", {}, task.state === "failed" ? "Failed: " : "Rejected: "), plain(reason || "the agent has given no reason.", 500)),
    step ? el("p", {}, "The step ", ...quoted(step.name), ` raised ${plain(step.error, 80)}.`) : null, traceback);
}

// What keeps the task from its result. ``actions`` makes what can be done about a wait, by its kind, or about a failure.
export function reasons(task, timeline, actions) {
  if (["failed", "rejected"].includes(task.state)) return [failure(task, timeline, actions.failure()), ...(timeline ? held(timeline) : [])];
  if (!timeline) return [];
  const more = timeline.moreWaits ? [el("p", { class: "note" }, `It waits for ${timeline.moreWaits} more.`)] : [];
  return [...waits(timeline, task.state, actions), ...more, ...queued(timeline), ...held(timeline)];
}
