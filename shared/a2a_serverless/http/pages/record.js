// What is on record of a task: its events as clients get them, and the lines that its runs have logged.
import { getOwn } from "./api.js";
import { clock, copyButton, el, lines, name, pieces, plain, stateName } from "./dom.js";

const isLogShown = document.body.dataset.log === "true";
const note = (...children) => el("p", { class: "note" }, children);
const problem = (error) => el("p", { class: "problem" }, plain(error.message, 500));
const json = (value) => JSON.stringify(value, null, 2);

// ---- Events

const shown = { task: "", events: [], after: null, isBusy: false };

// Shows the events of a task in the box. The log only grows: what was read stays, and only what comes after it is asked for.
export async function showEvents(agent, task, box, isNext = false) {
  if (shown.task !== task || (!shown.isBusy && !box.querySelector(".events"))) {
    Object.assign(shown, { task, events: [], after: null, isBusy: false });
    box.replaceChildren(note("Loading …"));
  }
  if (shown.isBusy || (shown.after !== null && !isNext && shown.events.length)) return;
  shown.isBusy = true;
  try {
    const found = await getOwn("events", { agent, task, after: shown.events.at(-1)?.eventNumber ?? 0 });
    if (shown.task !== task) return;
    if (!box.querySelector(".events")) box.replaceChildren(...frame(agent, task, box));
    const known = shown.events.length;
    shown.events.push(...found.events);
    shown.after = found.after;
    box.querySelector(".events").append(...found.events.map(eventRow));
    box.querySelector(".count").textContent = `${shown.events.length} events${found.after === null ? "" : ", and more"}, as they are sent`;
    box.querySelector(".next").hidden = found.after === null;
    if (isNext) box.querySelectorAll(".events summary")[known]?.focus();
  } catch (error) {
    if (shown.task === task) box.replaceChildren(problem(error));
  } finally {
    shown.isBusy = false;
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

let drawn = "";

export async function showLog(agent, task, box) {
  if (!isLogShown) {
    const command = `a2a-serverless logs --task ${task}`;
    box.replaceChildren(note("This page cannot read the log. This command shows the task’s lines; of a stack in AWS with --stack NAME:"),
      el("div", { class: "row" }, el("code", {}, plain(command, 200)), copyButton(command)));
    return;
  }
  try {
    const { lines: found, more } = await getOwn("log", { agent, task });
    const basis = JSON.stringify([task, more, found]);
    if (basis === drawn && box.childElementCount) return; // what is read or copied stays
    drawn = basis;
    box.replaceChildren(more ? note(`${more} earlier lines are not shown.`) : "",
      ...(found.length ? [logLines(found)] : [note("The runs of this task have logged and printed nothing.")]));
  } catch (error) {
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
