// The list of the caller's tasks of all agents, newest first, and what narrows it.
import { getOwn } from "./api.js";
import { $, badge, clock, el, plain } from "./dom.js";
import { nameOfWait } from "./why.js";

const STATES = ["submitted", "working", "waiting", "input-required", "auth-required", "completed", "failed", "canceled", "rejected"];
const PAUSE = 250;
let after = null; // where the next page begins
let asked = 0;

const wanted = () => ({ text: $("filter-text").value.trim(), agent: $("filter-agent").value, state: $("filter-state").value });
const links = () => [...$("tasks").querySelectorAll("a")];

// The time of today, or the day.
function shortTime(time) {
  const isToday = new Date(time).toDateString() === new Date().toDateString();
  return isToday ? clock(time, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) : new Date(time).toLocaleDateString([], { month: "short", day: "numeric" });
}

// Shows the first page, or with ``isNext`` the next one; returns the new items. An answer that a later question has overtaken is dropped.
export async function listTasks(agents, current, isNext = false) {
  const number = ++asked;
  const filters = wanted();
  const found = await getOwn("tasks", { ...filters, ...(isNext && after && { after }) });
  if (number !== asked) return [];
  after = found.after;
  $("recent").hidden = false;
  $("more").hidden = !after;
  const isNarrowed = Object.values(filters).some(Boolean);
  $("more").textContent = isNarrowed ? "Search older tasks" : "Older tasks";
  const items = found.tasks.map((task) => el("li", {}, taskLink(task, agents)));
  const focused = document.activeElement?.closest("#tasks a")?.dataset.task;
  if (isNext) $("tasks").append(...items);
  else $("tasks").replaceChildren(...items);
  $("no-task").textContent = isNarrowed ? `No task matches${after ? " among the newest" : ""}.` : "No tasks yet. A message to an agent makes one.";
  $("no-task").hidden = links().length > 0;
  markTask(current);
  if (focused && !isNext) links().find((one) => one.dataset.task === focused)?.focus();
  return items;
}

export function markTask(current) {
  for (const link of links()) link.toggleAttribute("aria-current", link.dataset.task === current);
}

function taskLink(task, agents) {
  const agent = agents.find((one) => one.dataset.agent === task.agent)?.querySelector(".name").textContent ?? task.agent;
  const href = `?agent=${encodeURIComponent(task.agent)}&task=${encodeURIComponent(task.task)}`;
  const reason = task.reason || (task.waits ?? []).map(nameOfWait).join(", ");
  return el("a", { href, "data-task": task.task, "data-of": task.agent },
    el("span", { class: "line" }, el("bdi", { class: "words" }, plain(task.words, 140) || "(no text)"), el("time", { datetime: new Date(task.at).toISOString() }, shortTime(task.at))),
    el("span", { class: "line" }, badge(task.state), el("bdi", { class: "of" }, plain(agent, 60))),
    reason ? el("bdi", { class: "reason", "data-state": task.state }, plain(reason, 140)) : null);
}

// ``search`` lists the tasks anew.
export function prepareFilters(agents, search) {
  let waiting = 0;
  $("filter-agent").append(...agents.map((one) => el("option", { value: one.dataset.agent }, plain(one.querySelector(".name").textContent, 60))));
  $("filter-state").append(...STATES.map((state) => el("option", { value: state }, state)));
  $("filters").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  $("filters").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, PAUSE); });
}
