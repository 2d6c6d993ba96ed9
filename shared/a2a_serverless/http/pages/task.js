// A task as its events make it, and following one until its turn is over.
import { agentUrl, ApiError, getJson, stream, taskPath } from "./api.js";
import { ENDED, MESSAGE, stateName, WAITS } from "./dom.js";

const TRIES = 5;

export const isOver = (task) => ENDED.has(task.state) || WAITS.has(task.state);

export function fromJson(given) {
  const messages = [...(given.history ?? []), ...(given.status?.message ? [given.status.message] : [])];
  return { id: given.id, contextId: given.contextId, state: stateName(given.status?.state), messages, artifacts: given.artifacts ?? [], after: null };
}

// Applies an item of a stream; returns "task", "status", "message", or the id of the artifact that has changed.
export function apply(task, item) {
  if (item.task) {
    const { artifacts, ...rest } = fromJson(item.task);
    Object.assign(task, rest, { artifacts, after: task.after, messages: [...task.messages.filter((one) => one.local && !rest.messages.some((other) => other.messageId === one.messageId)), ...rest.messages] });
    return "task";
  }
  if (item.message) {
    task.messages.push(item.message);
    task.state = MESSAGE;
    return "message";
  }
  if (item.statusUpdate) {
    task.id = item.statusUpdate.taskId;
    task.contextId = item.statusUpdate.contextId;
    task.state = stateName(item.statusUpdate.status.state);
    if (item.statusUpdate.status.message) task.messages.push(item.statusUpdate.status.message);
    return "status";
  }
  return item.artifactUpdate ? chunk(task, item.artifactUpdate) : "";
}

function chunk(task, { artifact, append }) {
  const known = task.artifacts.find((one) => one.artifactId === artifact.artifactId);
  if (!known) task.artifacts.push({ ...artifact, parts: [...artifact.parts] });
  else if (append) known.parts.push(...artifact.parts);
  else Object.assign(known, artifact, { parts: [...artifact.parts] });
  return artifact.artifactId;
}

// Sends by a stream, or follows a task, and comes back after an interruption until the turn is over.
export async function follow(agent, task, { body = null, headers = {}, changed, signal }) {
  const take = (item, number) => {
    if (number !== null) task.after = number;
    changed(apply(task, item));
  };
  let sent = false;
  for (let tries = 0; tries < TRIES && !signal.aborted;) {
    const before = task.after;
    const resumes = sent || !body;
    try {
      const path = resumes ? `${taskPath(task.id)}:subscribe` : "/message:stream";
      await stream(agentUrl(agent) + path, resumes ? null : body, take, { after: resumes ? task.after : null, headers, signal });
    } catch (error) {
      if (signal.aborted || !task.id || error.status === 401) throw error;
      const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500;
      if (isRefused && !resumes) throw error;
      if (isRefused) return reload(agent, task, changed);
    }
    sent = true;
    if (!task.id || isOver(task)) return undefined;
    tries = task.after === before ? tries + 1 : 0;
    await new Promise((done) => setTimeout(done, 500 * 2 ** tries));
  }
  return reload(agent, task, changed);
}

export async function reload(agent, task, changed) {
  apply(task, { task: await getJson(agentUrl(agent) + taskPath(task.id)) });
  changed("task");
}
