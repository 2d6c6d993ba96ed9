// What is on record of a task: its events as clients get them, and the lines that its runs have logged.
import { getOwn } from "./api.js";
import { clock, copyButton, el, lines, name, pieces, plain, stateName } from "./dom.js";

const isLogShown = document.body.dataset.log === "true";
const note = (...children) => el("p", { class: "note" }, children);
const problem = (error) => el("p", { class: "problem" }, plain(error.message, 500));
const noTask = () => el("p", { class: "empty" }, "There is no task yet.");
const json = (value) => JSON.stringify(value, null, 2);

// ---- Events

let shown = { task: "", events: [], after: null, isBusy: false };

// Shows the events of a task in the box. The log only grows: what was read stays, and only what comes after it is asked for.
export async function showEvents(agent, task, box, isNext = false) {
  if (shown.task !== task || (!shown.isBusy && !box.querySelector(".events"))) {
    shown = { task, events: [], after: null, isBusy: false };
    box.replaceChildren(task ? note("Loading …") : noTask());
  }
  const own = shown; // another task may be shown when the answer comes
  if (!task || own.isBusy || (own.after !== null && !isNext && own.events.length)) return;
  own.isBusy = true;
  try {
    const found = await getOwn("events", { agent, task, after: own.events.at(-1)?.eventNumber ?? 0 });
    if (shown !== own) return;
    if (!box.querySelector(".events")) box.replaceChildren(...frame(agent, task, box));
    const known = own.events.length;
    own.events.push(...found.events);
    own.after = found.after;
    box.querySelector(".events").append(...found.events.map(eventRow));
    box.querySelector(".count").textContent = `${own.events.length} events${found.after === null ? "" : ", and more"}, as they are sent`;
    box.querySelector(".next").hidden = found.after === null;
    if (isNext) box.querySelectorAll(".events summary")[known]?.focus();
  } catch (error) {
    if (shown === own) box.replaceChildren(problem(error));
  } finally {
    own.isBusy = false;
  }
}

const frame = (agent, task, box) => [
  el("div", { class: "row" }, el("p", { class: "note count", role: "status" }), el("span", { class: "space" }), copyButton(() => json(shown.events), "Copy all")),
  el("ol", { class: "events" }),
  el("button", { type: "button", class: "quiet next", hidden: true, onclick: () => showEvents(agent, task, box, true) }, "More events"),
];

function eventRow(event) {
  const text = json(event);
  const box = el("div", { class: "inside" });
  const details = el("details", {}, el("summary", {}, el("span", { class: "number" }, String(event.eventNumber)), " ", ...title(event), " ",
    el("span", { class: "dim" }, `${clock(event.at)}${event.isCut ? ", too large to be shown" : ""}`)), box);
  details.addEventListener("toggle", () => {
    if (details.open && !box.childElementCount) box.append(el("div", { class: "row" }, el("span", { class: "space" }), copyButton(text)), el("pre", { tabindex: "0", dir: "auto" }, pieces(lines(text))));
  });
  return el("li", {}, details);
}

function title({ sent, received }) {
  const { statusUpdate: status, artifactUpdate: chunk } = sent;
  if (chunk) return [el("strong", {}, "artifact "), name(chunk.artifact.name ?? chunk.artifact.artifactId, 60), chunk.append ? ", more" : "", chunk.lastChunk ? ", end" : ""];
  return [el("strong", {}, stateName(status.status.state)), received ? ", message of the client" : status.status.message ? ", message of the agent" : ""];
}

// ---- Log lines

const LEVELS = { WARNING: "warn", ERROR: "bad", CRITICAL: "bad" };

let logged = { task: "", basis: "" };

// Shows the log lines of a task in the box.
export async function showLog(agent, task, box) {
  if (!task) {
    logged = { task, basis: "" };
    box.replaceChildren(noTask());
    return;
  }
  if (!isLogShown) {
    const command = `a2a-serverless logs --task ${task}`;
    box.replaceChildren(note("This page cannot read the log. This command shows the task’s lines; of a stack in AWS with --stack NAME:"),
      el("div", { class: "row" }, el("code", {}, plain(command, 200)), copyButton(command)));
    return;
  }
  if (logged.task !== task) logged = { task, basis: "" };
  const own = logged;
  try {
    const { lines: found, more } = await getOwn("log", { agent, task });
    const basis = JSON.stringify([more, found]);
    if (logged !== own || basis === own.basis) return; // what is read or copied stays
    own.basis = basis;
    box.replaceChildren(more ? note(`${more} earlier lines are not shown.`) : "",
      ...(found.length ? [logLines(found)] : [note("The runs of this task have logged and printed nothing.")]));
  } catch (error) {
    if (logged !== own) return;
    own.basis = "";
    box.replaceChildren(problem(error));
  }
}

export const logLines = (found) => el("ol", { class: "log" }, found.map((line) => el("li", { "data-level": LEVELS[line.level] ?? null },
  el("span", { class: "dim" }, `${clock(line.timestamp)} ${plain(line.level, 10)} `), el("span", { dir: "auto" }, pieces(lines(String(line.message ?? "")))),
  el("span", { class: "dim" }, about(line)), line.traceback ? el("pre", { tabindex: "0" }, lines(line.traceback)) : null)));

const about = ({ run, step, error }) => plain([run && ` run ${run}`, step && `step ${step}`, error].filter(Boolean).join(", "), 300);

// The lines of a step and of what is inside it; with ``isFailed`` also what its error has left behind outside of steps.
export async function linesOfStep(agent, task, step, isFailed) {
  if (!isLogShown) return [];
  const { lines: found } = await getOwn("log", { agent, task });
  return found.filter((line) => line.step === step || line.step?.startsWith(`${step}/`) || (isFailed && !line.step && line.traceback));
}

// A traceback that is read when it is opened.
export function tracebackOf(agent, task) {
  if (!isLogShown) return null;
  const box = el("div", { class: "inside" });
  const details = el("details", { class: "traceback" }, el("summary", {}, "Traceback"), box);
  details.addEventListener("toggle", async () => {
    if (!details.open || box.childElementCount) return;
    try {
      const found = (await getOwn("log", { agent, task })).lines.filter((line) => line.traceback).at(-1);
      box.replaceChildren(...(found ? [el("div", { class: "row" }, el("span", { class: "space" }), copyButton(found.traceback)), el("pre", { tabindex: "0" }, lines(found.traceback))]
        : [note("The log has no traceback: the agent has ended the task itself.")]));
    } catch (error) {
      box.replaceChildren(problem(error));
    }
  });
  return details;
}
