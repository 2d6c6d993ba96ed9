// The issuer's keys: at most one fetch in 30 seconds, whether it succeeds or fails; old keys stay valid for a day.
import { readBytes } from "./body.js";
import { parseKeys, Refused } from "./verify.js";

const COOL_DOWN = 30_000;
const REFRESH_AFTER = 240_000;
const STALE_AFTER = 86_400_000;
const FETCH_MS = 3000;
const MAX_KEYS = 64 * 1024;

/** The keys cannot be fetched now: answer 503 with Retry-After. */
export class KeysUnavailable extends Refused {
  constructor(retryAfter) { super("keys-unavailable"); this.retryAfter = retryAfter; }
}

/** Fetches the raw key set at a URL. Throws if it is too large or not there within three seconds. */
export async function fetchKeySet(url) {
  const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(FETCH_MS) });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return readBytes(answer.body, MAX_KEYS, FETCH_MS);
}

/** @param {() => Promise<Uint8Array>} fetchKeys the raw key set, within a deadline of its own */
export function makeCache(fetchKeys) {
  let keys = new Map();
  let fetched = -Infinity;
  let tried = -Infinity;
  let flight = null;

  async function refresh(now) {
    try {
      keys = await parseKeys(await fetchKeys());
      fetched = now;
    } catch {
      if (now - fetched >= STALE_AFTER) keys = new Map();
    }
  }

  /**
   * The current keys. A known key never waits; an unknown one waits for the fetch in progress. `waitUntil` gets a fetch
   * for which nobody waits: some runtimes end it with the request.
   */
  return async function keysFor(kid, now, waitUntil = () => {}) {
    const known = keys.has(kid) && now - fetched < STALE_AFTER;
    if (now - tried >= COOL_DOWN && (!known || now - fetched >= REFRESH_AFTER)) {
      tried = now; // a fetch that was ended with its request is not waited for, thirty seconds later
      flight = refresh(now);
      waitUntil(flight);
    }
    if (known) return keys;
    await flight;
    if (fetched < tried && !keys.has(kid)) throw new KeysUnavailable(Math.max(1, Math.floor((tried + COOL_DOWN - now) / 1000)));
    return keys;
  };
}
