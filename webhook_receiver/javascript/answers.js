// How each outcome of a request is answered and logged: the same as in the Python receivers. A log line has ids
// that the issuer signed, codes and fixed sentences; nothing that an unauthentic request can choose, and no content.

const REASONS = {
  "no-signature": "no signed token in Authorization or X-A2A-Notification-JWT",
  "duplicate-header": "a header that is used comes twice",
  "ambiguous-signature": "a signed token in two headers",
  "malformed-token": "the token is not three segments of base64url with a JSON header",
  "forbidden-header": "the token's header holds more than alg, typ and kid",
  "wrong-algorithm": "the algorithm is not ES256",
  "wrong-type": "the token was made for another purpose",
  "unknown-key": "the issuer publishes no such key",
  "wrong-signature": "the key that the token names did not sign it",
  "malformed-claims": "a claim is missing or has the wrong type",
  "wrong-issuer": "the token is of another issuer than ISSUER",
  "wrong-audience": "the token is for another URL than AUDIENCE",
  expired: "the token has expired by this machine's clock",
  "not-yet-valid": "the token is of the future by this machine's clock",
  "lives-too-long": "the token is valid for more than five minutes",
  "wrong-body": "the body is not the one that was signed",
  "unknown-task": "its token is not registered for this task, or has expired",
  "no-token": "it has no token, and its task is not registered", // unknown-task, too
  "wrong-token": "not the token that is registered for this task",
  "wrong-credentials": "not the credentials that are registered for this task",
  "unexpected-challenge": "a challenge, but no token or task is registered here",
  replayed: "the token was used before with other content",
  "wrong-task": "the body is about another task than the token",
  "unreadable-body": "the body is not a notification of its version of A2A",
  "unsupported-version": "the version of A2A is neither 1.0 nor 0.3",
  "unsupported-media": "the body is not plain JSON in UTF-8",
  "too-large": "the body is longer than the limit",
  "too-slow": "the body did not arrive in time",
  "keys-unavailable": "the issuer's keys cannot be fetched now",
  "still-working": "an earlier attempt is still being handled",
};
const STATUS = {
  "unreadable-body": 400, "unsupported-version": 400, "too-slow": 408, "too-large": 413, "unsupported-media": 415,
  "keys-unavailable": 503, "still-working": 503,
};

export const FAILED = { status: 500, content: { error: "internal" } };
export const NOT_ALLOWED = { status: 405, content: { error: "method-not-allowed" }, headers: { Allow: "POST" } };

/** The answer to a challenge, logged. */
export function answerChallenge(challenge) {
  console.log("challenge");
  return { status: 200, content: { challenge } };
}

/** The answer to a notification that was handled before, logged. */
export function answerDuplicate(claims) {
  console.log(`duplicate ${ids(claims)}`);
  return { status: 200, content: { received: true, duplicate: true } };
}

/** The answer to a notification that was handled now, logged. */
export function answerHandled(claims, late) {
  console.log(`${late ? "late" : "accepted"} ${ids(claims)}`);
  return { status: 200, content: { received: true, duplicate: false, late } };
}

/** The answer when the handler has thrown, logged. The error itself is logged after the line: it is the application's own. */
export function answerFailed(claims, error) {
  console.error(`failed ${ids(claims)} error=${error?.name ?? typeof error}`);
  console.error(error);
  return FAILED;
}

/** The answer to a refused request, logged. Everything unauthentic gets the same answer. */
export function answerRefusal({ code, reason, claims, retryAfter }) {
  console.warn(`refused code=${code}${claims ? ` ${ids(claims)}` : ""}: ${REASONS[reason]}`);
  const status = STATUS[code];
  if (!status) return { status: 401, content: { error: "unauthenticated" }, headers: { "WWW-Authenticate": "Bearer" } };
  return { status, content: { error: code }, headers: retryAfter ? { "Retry-After": String(retryAfter) } : {} };
}

function ids({ taskId, eventNumber }) {
  return `task=${taskId} event=${eventNumber}`;
}
