// A webhook receiver on plain Node 20: ISSUER=... AUDIENCE=... WEBHOOK_TOKEN=... node server.mjs
// Change `handle`. It may be called again for the same notification: store claims.notificationId.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { KeysUnavailable, makeCache } from "./jwks.mjs";
import { keyIdOf, Refused, verify } from "./verify.mjs";

const MAX_BODY = 1024 * 1024;
const MAX_KEYS = 64 * 1024;
const STATUS = { "too-large": 413, "unsupported-media": 415, "unreadable-body": 400, "unsupported-version": 400 };

async function handle({ claims }) {
  console.log(`task ${claims.taskId}, event ${claims.eventNumber}`);
}

/** An HTTP server. `expectations` are as for verify; `fetchKeys` and `clock` as for makeCache. */
export function makeServer({ issuer, audience, expectations, fetchKeys, clock = Date.now, onNotification = handle }) {
  const keysFor = makeCache(fetchKeys);

  async function receive(request) {
    const body = await readBody(request);
    if (body === null) throw new Refused("too-large");
    const headers = pairs(request.rawHeaders);
    const now = clock();
    const keys = await keysFor(keyIdOf(headers), now);
    const proven = verify({ headers, body, keys, now, issuer, audience, expectations });
    if (proven.type === "challenge") return [200, { challenge: proven.challenge }];
    await onNotification(proven);
    return [200, { received: true }];
  }

  return createServer({ requestTimeout: 15_000 }, async (request, response) => {
    if (request.method !== "POST") return answer(response, 405, { error: "method-not-allowed" }, { Allow: "POST" });
    try {
      answer(response, ...(await receive(request)));
    } catch (error) {
      logRefusal(error);
      answer(response, ...refusal(error));
    }
  });
}

/** Logs only the code of a refusal: its message may quote the request. Errors of `handle` are logged completely. */
function logRefusal(error) {
  if (error instanceof KeysUnavailable || error instanceof Refused) console.warn(`refused code=${error.code}`);
  else console.error(error);
}

function refusal(error) {
  if (error instanceof KeysUnavailable) return [503, { error: error.code }, { "Retry-After": String(error.retryAfter) }];
  if (!(error instanceof Refused)) return [500, { error: "internal" }];
  const status = STATUS[error.code];
  const headers = error.code === "too-large" ? { Connection: "close" } : {};
  return status ? [status, { error: error.code }, headers] : [401, { error: "unauthenticated" }, { "WWW-Authenticate": "Bearer" }];
}

function answer(response, status, content, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers });
  response.end(JSON.stringify(content));
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > MAX_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function pairs(raw) {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]]] : []));
}

async function fetchFrom(url) {
  const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(3000) });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  const chunks = [];
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    if (Buffer.concat(chunks).length > MAX_KEYS) throw new Error("the key set is too large");
  }
  return Buffer.concat(chunks);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { ISSUER, AUDIENCE, WEBHOOK_TOKEN, PORT = "8011" } = process.env;
  if (!ISSUER || !AUDIENCE || !WEBHOOK_TOKEN) throw new Error("ISSUER, AUDIENCE and WEBHOOK_TOKEN must be set");
  const expectations = [{ token: WEBHOOK_TOKEN, expires: Infinity }];
  const fetchKeys = () => fetchFrom(`${ISSUER}/.well-known/jwks.json`);
  makeServer({ issuer: ISSUER, audience: AUDIENCE, expectations, fetchKeys }).listen(Number(PORT), "127.0.0.1");
}
