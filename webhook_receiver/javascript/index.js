// Receives the signed webhooks of A2A agents: verifies each, calls the handler, answers as the sender expects.
import { answerChallenge, answerDuplicate, answerFailed, answerHandled, answerRefusal, FAILED, NOT_ALLOWED } from "./answers.js";
import { readBytes } from "./body.js";
import { fetchKeySet, makeCache } from "./jwks.js";
import { makeMemory } from "./memory.js";
import { keyIdOf, named, Refused, verify } from "./verify.js";

export { KeysUnavailable, makeCache } from "./jwks.js";
export { makeMemory, StillWorking } from "./memory.js";
export { parseKeys, Refused, verify } from "./verify.js";

const ALWAYS = { "Content-Type": "application/json", "Cache-Control": "no-store" };

/** A receiver: its options are described in index.d.ts. */
export function makeReceiver({
  issuer, audience, handle, token, expectations = tokenOnly(token), jwksUrl = `${issuer}/.well-known/jwks.json`,
  fetchKeys = () => fetchKeySet(jwksUrl), store = makeMemory(), clock = Date.now, maxBytes = 1024 * 1024, bodyMs = 10_000,
}) {
  if (!issuer || !audience) throw new TypeError("issuer and audience must be set");
  if (typeof handle !== "function") throw new TypeError("handle must be a function");
  const keysFor = makeCache(fetchKeys);

  async function check({ headers, body }, now, waitUntil) {
    if (lengthOf(headers, body) > maxBytes) throw new Refused("too-large");
    const bytes = body instanceof Uint8Array ? body : await readBytes(body, maxBytes, bodyMs);
    const keys = await keysFor(keyIdOf(headers), now, waitUntil);
    return verify({ headers, body: bytes, keys, now, issuer, audience, expectations });
  }

  async function admit(notification, now) {
    try {
      return await store.admit(notification.claims, now);
    } catch (error) {
      throw named(error, notification.claims);
    }
  }

  async function answerPost(request, waitUntil) {
    const now = clock();
    const proven = await check(request, now, waitUntil);
    if (proven.type === "challenge") return answerChallenge(proven.challenge);
    const { claims } = proven;
    const admitted = await admit(proven, now);
    if (admitted === null) return answerDuplicate(claims);
    try {
      await handle({ ...proven, late: admitted.late });
    } catch (error) {
      await store.release(claims, admitted);
      return answerFailed(claims, error);
    }
    await store.settle(claims, admitted);
    return answerHandled(claims, admitted.late);
  }

  async function receive(request, waitUntil) {
    try {
      return encode(request.method === "POST" ? await answerPost(request, waitUntil) : NOT_ALLOWED);
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error); // a defect, or a store that does not answer
      return encode(error instanceof Refused ? answerRefusal(error) : FAILED);
    }
  }

  return {
    receive,
    async fetch(request, _environment, context) {
      const { method, body } = request;
      const waitUntil = typeof context?.waitUntil === "function" ? (promise) => context.waitUntil(promise) : undefined;
      const answer = await receive({ method, headers: [...request.headers], body }, waitUntil);
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
  };
}

function tokenOnly(token) {
  if (!token) throw new TypeError("token or expectations must be set");
  return [{ token, expires: Infinity }];
}

/** The length of a body, as it is or, of a stream, as it is announced. */
function lengthOf(headers, body) {
  return body instanceof Uint8Array ? body.length : Number(headers.find(([name]) => /^content-length$/i.test(name))?.[1] ?? 0);
}

function encode({ status, content, headers }) {
  return { status, headers: { ...ALWAYS, ...headers }, body: JSON.stringify(content) };
}
