// A webhook receiver on plain Node 20: ISSUER=... AUDIENCE=... WEBHOOK_TOKEN=... node server.mjs
// Change `handle`: it gets each genuine notification at least once. If it throws, or the process dies before it has
// returned, the sender's next attempt calls it again; after that, repeats do not reach it.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { answerChallenge, answerDuplicate, answerFailed, answerHandled, answerRefusal, FAILED, NOT_ALLOWED } from "./answers.mjs";
import { makeCache } from "./jwks.mjs";
import { makeMemory } from "./memory.mjs";
import { keyIdOf, named, Refused, verify } from "./verify.mjs";

const MAX_BODY = 1024 * 1024;
const BODY_MS = 10_000;
const MAX_KEYS = 64 * 1024;

async function handle({ claims }) {
  console.log(`your application handles event ${claims.eventNumber}`);
}

/**
 * An HTTP server. `expectations` are as for verify; `fetchKeys` and `clock` (milliseconds since the epoch) as for
 * makeCache; `memory` is as in memory.mjs; `onNotification` gets {claims, body}.
 */
export function makeServer({
  issuer, audience, expectations, fetchKeys, memory = makeMemory(), clock = Date.now, onNotification = handle, bodyMs = BODY_MS,
}) {
  const keysFor = makeCache(fetchKeys);

  async function check(request) {
    const body = await readBody(request, bodyMs);
    const headers = pairs(request.rawHeaders);
    const now = clock();
    const keys = await keysFor(keyIdOf(headers), now);
    const proven = verify({ headers, body, keys, now, issuer, audience, expectations });
    if (proven.type === "challenge") return { challenge: proven.challenge };
    try {
      return { proven, admitted: await memory.admit(proven.claims, now) };
    } catch (error) {
      throw named(error, proven.claims);
    }
  }

  async function receive(request) {
    if (request.method !== "POST") return NOT_ALLOWED;
    const { challenge, proven, admitted } = await check(request);
    if (challenge !== undefined) return answerChallenge(challenge);
    const { claims } = proven;
    if (admitted === null) return answerDuplicate(claims);
    try {
      await onNotification(proven);
    } catch (error) {
      await memory.release(claims, admitted);
      return answerFailed(claims, error);
    }
    await memory.settle(claims, admitted);
    return answerHandled(claims, admitted.late);
  }

  return createServer({ requestTimeout: 2 * bodyMs }, async (request, response) => {
    try {
      send(response, await receive(request));
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error); // a defect, or a database that does not answer
      send(response, error instanceof Refused ? answerRefusal(error) : FAILED);
    }
  });
}

function send(response, { status, content, headers }) {
  const unread = status === 408 || status === 413 ? { Connection: "close" } : {};
  const always = { "Content-Type": "application/json", "Cache-Control": "no-store" };
  response.writeHead(status, { ...always, ...headers, ...unread });
  response.end(JSON.stringify(content));
}

/** The raw body. Throws Refused: too-large, too-slow. */
async function readBody(request, milliseconds) {
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY) throw new Refused("too-large");
  const chunks = [];
  let size = 0;
  const timer = setTimeout(() => request.emit("error", new Refused("too-slow")), milliseconds);
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > MAX_BODY) throw new Refused("too-large");
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof Refused ? error : new Refused("too-slow"); // the client has left
  } finally {
    clearTimeout(timer);
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
