// The requests of the page: HTTP+JSON of A2A 1.0, and what the deployment adds to it.

const STREAM_LIMIT = 32 * 1024 * 1024;
const KEY = `a2a-authorization ${new URL(".", location.href).pathname}`;

export class ApiError extends Error {
  constructor(status, text, details = []) {
    super(text);
    this.status = status;
    this.details = details;
  }
}

export const credentials = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export const base = () => new URL(".", location.href).href;
export const agentUrl = (agent) => new URL(encodeURIComponent(agent), base()).href;
export const taskPath = (task) => `/tasks/${encodeURIComponent(task)}`;

function headers(given) {
  const found = { "A2A-Version": "1.0", Accept: "application/json", ...given };
  const key = credentials.get();
  return key ? { ...found, Authorization: `Bearer ${key}` } : found;
}

async function refusal(answer) {
  let body = {};
  try {
    body = JSON.parse(await answer.text());
  } catch { /* the status says enough */ }
  const error = body?.error ?? {};
  const fields = (Array.isArray(error.details) ? error.details : []).flatMap((one) => one?.fieldViolations ?? []);
  const details = fields.map((one) => `${one.field}: ${one.description}`);
  return new ApiError(answer.status, String(error.message ?? body?.message ?? `HTTP ${answer.status}`), details);
}

async function ask(url, options = {}) {
  let answer;
  try {
    answer = await fetch(url, { ...options, headers: headers(options.headers), credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The deployment does not answer. Is it running?");
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export const getOwn = async (path, query) => getJson(new URL(`-/${path}?${new URLSearchParams(query)}`, base()).href);

// Sends an event to its address, which is at this deployment. It needs no credentials.
export async function sendEvent(address, text) {
  let type = "application/json";
  try {
    JSON.parse(text);
  } catch {
    type = "text/plain; charset=utf-8";
  }
  const url = new URL(`events/${address.split("/").at(-1)}`, base()).href;
  const answer = await fetch(url, { method: "POST", body: text, headers: { "Content-Type": type }, credentials: "omit", redirect: "error" });
  if (!answer.ok) throw await refusal(answer);
}

export const getJson = async (url) => (await ask(url)).json();

export async function post(url, body, given = {}) {
  const sent = { "Content-Type": "application/json", ...given };
  return (await ask(url, { method: "POST", headers: sent, body: JSON.stringify(body) })).json();
}

// Calls ``take`` with each item of a stream and its number. Resolves when the stream has ended.
export async function stream(url, body, take, { after = null, headers = {}, signal } = {}) {
  const sent = { ...headers, Accept: "text/event-stream, application/json", "Content-Type": "application/json" };
  if (after !== null) sent["Last-Event-ID"] = String(after);
  const answer = await ask(url, { method: "POST", headers: sent, body: body && JSON.stringify(body), signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  let held = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += value.length;
    if (held > STREAM_LIMIT) throw new ApiError(0, "An event of the stream is too large for this page.");
    rest.push(value);
    if (!(rest.length > 1 ? rest.at(-2).slice(-1) + value : value).includes("\n\n")) continue;
    const frames = rest.join("").split("\n\n");
    rest = [frames.pop()];
    held = rest[0].length;
    frames.forEach((frame) => deliver(frame, take));
  }
}

function deliver(frame, take) {
  const field = (name) => frame.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field("data");
  if (data === undefined) return;
  const item = JSON.parse(data);
  if (field("event") === "error") throw new ApiError(item?.error?.code ?? 0, item?.error?.message ?? "The stream ended with an error.");
  take(item, field("id") === undefined ? null : Number(field("id")));
}
