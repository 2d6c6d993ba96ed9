// The issuer's keys: at most one fetch in 30 seconds, whether it succeeds or fails; old keys stay valid for a day.
import { parseKeys, Refused } from "./verify.mjs";

const COOL_DOWN = 30_000;
const REFRESH_AFTER = 240_000;
const STALE_AFTER = 86_400_000;

/** The keys cannot be fetched now: answer 503 with Retry-After. */
export class KeysUnavailable extends Refused {
  constructor(retryAfter) { super("keys-unavailable"); this.retryAfter = retryAfter; }
}

/** @param {() => Promise<Buffer>} fetchKeys the raw key set, within a deadline of its own */
export function makeCache(fetchKeys) {
  let keys = new Map();
  let fetched = -Infinity;
  let tried = -Infinity;
  let flight = null;

  async function refresh(now) {
    tried = now;
    try {
      keys = parseKeys(await fetchKeys());
      fetched = now;
    } catch {
      if (now - fetched >= STALE_AFTER) keys = new Map();
    } finally {
      flight = null;
    }
  }

  /** The current keys. A known key never waits; an unknown one waits for the fetch in progress. */
  return async function keysFor(kid, now) {
    const known = keys.has(kid) && now - fetched < STALE_AFTER;
    const due = now - tried >= COOL_DOWN && (!known || now - fetched >= REFRESH_AFTER);
    if (due) flight ??= refresh(now);
    if (known) return keys;
    if (flight) await flight;
    if (fetched < tried && !keys.has(kid)) throw new KeysUnavailable(Math.max(1, Math.floor((tried + COOL_DOWN - now) / 1000)));
    return keys;
  };
}
