// Replay memory of one process: a stolen token has no effect, and a handled notification is a duplicate. With several
// processes, replace it by a database: the same three functions, which may return promises; admit must be one transaction.
import { Refused } from "./verify.js";

const CLAIM = 60_000;
const REMEMBER = 7 * 86_400_000;
const SKEW = 120_000;

/** Another attempt of the notification is being handled: answer 503 with Retry-After. */
export class StillWorking extends Refused {
  constructor(retryAfter) { super("still-working"); this.retryAfter = retryAfter; }
}

/** @param {number} limit entries that are kept; the oldest are dropped first */
export function makeMemory(limit = 100_000) {
  const attempts = new Map(); // jti -> {fingerprint, expires}
  const notifications = new Map(); // task, configuration, notification -> {claim, expires}; claim null: handled
  const last = new Map(); // task, configuration -> {number, expires}

  return {
    /** Claims a notification for one attempt: {late, claim}, or null if it was handled. Throws Refused. */
    admit(claims, now) {
      for (const entries of [attempts, notifications, last]) drop(entries, now, limit);
      checkAttempt(attempts, claims);
      const known = notifications.get(keyOf(claims));
      if (known?.claim === null) return null;
      if (known?.claim > now) throw new StillWorking(Math.floor((known.claim - now) / 1000) + 1);
      put(notifications, keyOf(claims), { claim: now + CLAIM, expires: now + REMEMBER });
      return { late: isLate(last, claims, now), claim: now + CLAIM };
    },
    /** Marks a claimed notification as handled. */
    settle(claims, { claim }) { finish(notifications, claims, claim, null); },
    /** Gives the claim back: the next attempt may handle the notification. */
    release(claims, { claim }) { finish(notifications, claims, claim, 0); },
  };
}

function checkAttempt(attempts, { jti, exp, request_body_sha256: hash, configId, notificationId }) {
  const fingerprint = JSON.stringify([hash, configId, notificationId]);
  const seen = attempts.get(jti);
  if (seen && seen.fingerprint !== fingerprint) throw new Refused("replayed");
  if (!seen) attempts.set(jti, { fingerprint, expires: exp * 1000 + SKEW });
}

function isLate(last, { taskId, configId, eventNumber }, now) {
  const key = JSON.stringify([taskId, configId]);
  const highest = last.get(key)?.number ?? 0;
  put(last, key, { number: Math.max(highest, eventNumber), expires: now + REMEMBER });
  return eventNumber < highest;
}

function finish(notifications, claims, claim, becomes) {
  const known = notifications.get(keyOf(claims));
  if (known?.claim === claim) known.claim = becomes;
}

function keyOf({ taskId, configId, notificationId }) {
  return JSON.stringify([taskId, configId, notificationId]);
}

/** Sets an entry as the newest one. */
function put(entries, key, value) {
  entries.delete(key);
  entries.set(key, value);
}

/** Drops the oldest entries: those that have expired, and those beyond the limit. */
function drop(entries, now, limit) {
  for (const [key, { expires }] of entries) {
    if (expires > now && entries.size < limit) return;
    entries.delete(key);
  }
}
