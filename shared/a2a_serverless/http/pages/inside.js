// What is inside of a step, a call or an event: only where the deployment shows internals. All of it is text.
import { getOwn, sendEvent } from "./api.js";
import { linesOfStep, logLines } from "./record.js";
import { clock, copyButton, duration, el, lines, name, pieces, plain, size } from "./dom.js";

const SHOWN = 20_000; // as http/console.py
const isShown = document.body.dataset.internals === "true";
const HIDDEN = "This deployment does not show what is inside of its tasks: an agent need not tell its clients. (Console=internals shows it.)";
const note = (...children) => el("p", { class: "note" }, children);
const fact = (title, ...value) => [el("dt", {}, title), el("dd", {}, value)];

// Fills the box of an opened row of the timeline.
export async function lookInto(agent, task, row, box) {
  const { span, told } = row;
  const began = Date.parse(span.beganAt);
  const times = [...fact("Kind", told), ...fact("Began", clock(began)), ...(span.endedAt ? fact("Took", duration(Date.parse(span.endedAt) - began)) : [])];
  const facts = el("dl", {}, times);
  box.replaceChildren(facts, isShown ? note("Loading …") : note(HIDDEN));
  if (!isShown) return;
  try {
    const found = await getOwn("step", { agent, task, kind: row.look, name: span.name });
    facts.append(...input(row, found));
    const logged = row.look === "step" ? await linesOfStep(agent, task, span.name, span.kind === "failed") : [];
    box.replaceChildren(facts, ...(found.errors ?? []).map((text, at) => output(`Error of try ${at + 1}`, text, text.length)), ...result(row, found),
      logged.length ? el("div", { class: "output" }, el("h3", {}, "Log"), logLines(logged)) : "");
  } catch (error) {
    box.replaceChildren(facts, el("p", { class: "problem" }, plain(error.message, 500)));
  }
}

function input(row, found) {
  if (row.look === "step") return fact("Input", "Not kept: the log has a digest of it only.");
  if (!found.task) return fact("Input", "The called agent has made no task.");
  const own = [...document.querySelectorAll("[data-agent]")].some((one) => one.dataset.agent === found.agent);
  const link = `?agent=${encodeURIComponent(found.agent)}&task=${encodeURIComponent(found.task)}`;
  return fact("Input", own ? ["In ", el("a", { href: link, "data-task": found.task, "data-of": found.agent }, "the task of ", name(found.agent, 80)), "."]
    : ["In the task ", el("code", {}, plain(found.task, 80)), " of ", name(found.agent, 80), "."]);
}

function result(row, found) {
  if (found.output !== undefined) return [output("Output", row.look === "call" ? wordsOf(found.output) : found.output, found.size)];
  return found.errors?.length ? [] : [note(row.span.endedAt ? "The log has no output of it." : "It has no output yet.")];
}

// The words of a called agent's answer; the answer as it is stored, if it has none.
function wordsOf(answer) {
  try {
    const { task, message } = JSON.parse(answer);
    const parts = [...(task?.artifacts ?? []).flatMap((one) => one.parts), ...((message ?? task?.status?.message)?.parts ?? [])];
    return parts.map((part) => part.text).filter(Boolean).join("\n\n") || answer;
  } catch {
    return answer;
  }
}

function output(title, text, whole) {
  return el("div", { class: "output" }, el("div", { class: "row" }, el("h3", {}, title), el("span", { class: "dim" }, text.length < SHOWN ? size(text.length) : `the first ${size(text.length)} of ${size(whole)}`),
    el("span", { class: "space" }), copyButton(text)), el("pre", { tabindex: "0", dir: "auto" }, pieces(lines(pretty(text)) || "(empty)")));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// The form that sends an event for which a task waits; ``sent`` is called when the task has it.
export function eventForm(agent, task, wait, sent) {
  const box = el("div", { class: "inside" });
  const details = el("details", { class: "event" }, el("summary", {}, "Send this event"), box);
  details.addEventListener("toggle", async () => {
    if (!details.open || box.childElementCount) return;
    if (!isShown) {
      box.replaceChildren(note("Whoever knows the address of an event can use it, so this deployment does not show it. (Console=internals shows it.)"));
      return;
    }
    try {
      const found = await getOwn("step", { agent, task, kind: "event", name: wait.name });
      box.replaceChildren(...(found.address ? form(found, sent) : [note("The log has no address of this name.")]));
    } catch (error) {
      box.replaceChildren(el("p", { class: "problem" }, plain(error.message, 500)));
    }
  });
  return details;
}

function form({ address, scheme }, sent) {
  const shown = el("div", { class: "row" }, el("code", {}, plain(address, 300)), copyButton(address));
  if (scheme) return [note("The event comes as a POST to this address:"), shown, note(`It must be signed (${plain(scheme, 40)}). This page has no secret to sign it with: let the provider send it.`)];
  const told = el("p", { class: "note", role: "status" });
  const text = el("textarea", { rows: 3, class: "mono", spellcheck: "false", "aria-label": "Body of the event" });
  text.value = "{}";
  const button = el("button", { type: "submit", class: "primary" }, "Send event");
  const made = el("form", { novalidate: true }, note("The event comes as a POST to this address, from another system or from here:"), shown, text,
    el("div", { class: "row" }, told, el("span", { class: "space" }), button));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await sendEvent(address, text.value);
      told.textContent = "The task has the event.";
      sent();
    } catch (error) {
      told.textContent = plain(error.message || "The deployment does not answer.", 500);
    } finally {
      button.disabled = false;
    }
  });
  return [made];
}
