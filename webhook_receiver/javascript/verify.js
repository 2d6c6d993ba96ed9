// Verifies that an A2A webhook is genuine, by Web Crypto. Rules and their order are those of the Python receiver;
// ../vectors/vectors.json tests both.
import { isObject, parseObject } from "./strict-json.js";

const NOTIFICATION = "a2a-notification+jwt";
const CHALLENGE = "a2a-challenge+jwt";
const CLOCK_SKEW = 60_000;
const MAX_LIFETIME = 300_000;
const MAX_TOKEN = 8192;
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const ALGORITHM = { name: "ECDSA", hash: "SHA-256" };
const OWN_HEADER = "x-a2a-notification-jwt";
const SINGLE = new Set(["authorization", OWN_HEADER, "x-a2a-notification-token", "a2a-version", "content-type", "content-encoding"]);
const KEY_ID = /^[A-Za-z0-9_.~-]{1,128}$/;
const STATES = ["submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected"];
const STATES_1_0 = STATES.map((state) => `TASK_STATE_${state.toUpperCase().replaceAll("-", "_")}`);
const EVENTS = ["task", "message", "statusUpdate", "artifactUpdate"];

/**
 * A request that must have no effect. `code` names the rule that it breaks; do not send it to the sender. `reason` names
 * the sentence of the log; `claims` are those of an authentic request, and undefined before it is known to be authentic.
 */
export class Refused extends Error {
  constructor(code, message = code, reason = code) { super(message); Object.assign(this, { code, reason }); }
}

/** The error, which names the claims of an authentic request if it is a refusal. */
export function named(error, claims) {
  return error instanceof Refused ? Object.assign(error, { claims }) : error;
}

/**
 * The usable keys of a JWK set, by key id: P-256 keys for signatures. Throws if the set is ambiguous or too large.
 * @param {Uint8Array} raw the answer of the issuer's /.well-known/jwks.json
 */
export async function parseKeys(raw) {
  if (raw.length > 64 * 1024) throw new Error("the key set is too large");
  const { keys } = parseObject(raw);
  if (!Array.isArray(keys) || keys.length > 16) throw new Error("no list of at most 16 keys");
  const usable = keys.filter(isUsable);
  const parsed = new Map(await Promise.all(usable.map(async (jwk) => [jwk.kid, await importKey(jwk)])));
  if (parsed.size === 0 || parsed.size !== usable.length) throw new Error("no usable key, or a key id twice");
  return parsed;
}

function importKey({ kty, crv, x, y }) {
  return crypto.subtle.importKey("jwk", { kty, crv, x, y }, CURVE, false, ["verify"]);
}

function isUsable(jwk) {
  return isObject(jwk) && !("d" in jwk) && typeof jwk.kid === "string" && KEY_ID.test(jwk.kid)
    && jwk.kty === "EC" && jwk.crv === "P-256" && (jwk.use ?? "sig") === "sig" && (jwk.alg ?? "ES256") === "ES256"
    && (!("key_ops" in jwk) || (Array.isArray(jwk.key_ops) && jwk.key_ops.includes("verify")));
}

/**
 * Verifies that a request is genuine; returns a notification or a challenge (index.d.ts). Throws Refused.
 *
 * @param {object} request
 * @param {[string, string][]} request.headers all of them, duplicates too
 * @param {Uint8Array} request.body the raw bytes
 * @param {Map<string, CryptoKey>} request.keys from parseKeys
 * @param {number} request.now milliseconds since the epoch
 * @param {string} request.issuer base URL of the deployment that signs
 * @param {string} request.audience our own webhook URL, exactly as registered
 * @param {Expectation[] | ((taskId?: string) => Expectation[] | Promise<Expectation[]>)} request.expectations
 */
export async function verify({ headers, body, keys, now, issuer, audience, expectations }) {
  const envelope = readEnvelope(headers);
  const claims = readClaims(await checkSignature(envelope, keys), envelope.type);
  if (claims.iss !== issuer) throw new Refused("wrong-issuer");
  if (claims.aud !== audience) throw new Refused("wrong-audience");
  checkTimes(claims, now);
  if (hex(await sha256(body)) !== claims.request_body_sha256) throw new Refused("wrong-body");
  const listed = typeof expectations === "function" ? await expectations(claims.taskId) : expectations;
  const open = listed.filter((each) => each.expires > now);
  if (envelope.type === CHALLENGE) return readChallenge(body, open);
  try {
    await matchExpectation(envelope, claims.taskId, open);
    const content = readBody(body, envelope.version);
    if (content.taskId !== claims.taskId) throw new Refused("wrong-task");
    return notificationOf(claims, envelope.version, content, body);
  } catch (error) {
    throw named(error, claims);
  }
}

function notificationOf(claims, version, { kind, state }, raw) {
  const { taskId, configId, notificationId, eventNumber } = claims;
  return { type: "notification", taskId, configId, notificationId, eventNumber, version, kind, state, claims, body: plain(raw) };
}

/** What the strict reader has let pass, for the application: usual numbers and objects. */
function plain(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** The key id in a request, to check whether it is cached. Throws Refused. */
export function keyIdOf(headers) {
  return readEnvelope(headers).kid;
}

function readEnvelope(headers) {
  const single = singleHeaders(headers);
  checkMedia(single);
  const { token, authorization } = findToken(single);
  const header = joseHeader(token);
  if (header.alg !== "ES256") throw new Refused("wrong-algorithm");
  if (header.typ !== NOTIFICATION && header.typ !== CHALLENGE) throw new Refused("wrong-type");
  if (typeof header.kid !== "string" || !KEY_ID.test(header.kid)) throw new Refused("malformed-token");
  return {
    token, authorization, type: header.typ, kid: header.kid,
    clientToken: single.get("x-a2a-notification-token"), version: single.get("a2a-version") ?? "0.3",
  };
}

function singleHeaders(headers) {
  const found = new Map();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (found.has(lower)) throw new Refused("duplicate-header");
    if (SINGLE.has(lower)) found.set(lower, value);
  }
  return found;
}

function checkMedia(single) {
  const [type, ...parameters] = (single.get("content-type") ?? "").split(";");
  const charset = parameters.join(";").trim().toLowerCase().replaceAll('"', "");
  const json = ["application/a2a+json", "application/json"].includes(type.trim().toLowerCase());
  const plain = (single.get("content-encoding") ?? "identity").toLowerCase() === "identity";
  if (!json || !plain || !["", "charset=utf-8"].includes(charset)) throw new Refused("unsupported-media");
}

function findToken(single) {
  const authorization = single.get("authorization");
  const bearer = /^Bearer (\S+)$/i.exec(authorization ?? "")?.[1];
  const own = single.get(OWN_HEADER);
  if (own === undefined) {
    if (bearer === undefined) throw new Refused("no-signature");
    return { token: bearer };
  }
  if (bearer !== undefined && claimsOurType(bearer)) throw new Refused("ambiguous-signature");
  return { token: own, authorization };
}

function claimsOurType(token) {
  try {
    return [NOTIFICATION, CHALLENGE].includes(joseHeader(token).typ);
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

function joseHeader(token) {
  const segments = token.length <= MAX_TOKEN ? token.split(".") : [];
  if (segments.length !== 3) throw new Refused("malformed-token");
  const [header] = segments.map(decodeSegment);
  const jose = attempt("malformed-token", () => parseObject(header));
  if (Object.keys(jose).some((name) => !["alg", "typ", "kid"].includes(name))) throw new Refused("forbidden-header");
  return jose;
}

function decodeSegment(segment) {
  const right = /^[A-Za-z0-9_-]+$/.test(segment) && segment.length % 4 !== 1;
  const bytes = right ? fromBase64Url(segment) : new Uint8Array();
  if (!right || toBase64Url(bytes) !== segment) throw new Refused("malformed-token");
  return bytes;
}

function fromBase64Url(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

function toBase64Url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function checkSignature({ token, kid }, keys) {
  const key = keys.get(kid);
  if (key === undefined) throw new Refused("unknown-key");
  const [header, payload, signature] = token.split(".");
  const signed = new TextEncoder().encode(`${header}.${payload}`);
  const right = await crypto.subtle.verify(ALGORITHM, key, fromBase64Url(signature), signed);
  if (!right) throw new Refused("wrong-signature");
  return fromBase64Url(payload);
}

function readClaims(payload, type) {
  return attempt("malformed-claims", () => {
    const claims = parseObject(payload);
    for (const name of ["iss", "aud"]) requireText(claims[name], 2048);
    for (const name of ["iat", "exp"]) requireNumber(claims[name]);
    if ("nbf" in claims && requireNumber(claims.nbf) > claims.iat) throw new SyntaxError("nbf");
    requireIdentifier(claims.jti);
    if (!/^[0-9a-f]{64}$/.test(requireText(claims.request_body_sha256, 64))) throw new SyntaxError("request_body_sha256");
    if (type === NOTIFICATION) checkSubject(claims);
    return plain(payload);
  });
}

function checkSubject(claims) {
  for (const name of ["taskId", "sub", "notificationId"]) requireIdentifier(claims[name]);
  if (/[\x00-\x1f\x7f]/.test(requireText(claims.configId, 256))) throw new SyntaxError("configId");
  if (claims.sub !== claims.taskId) throw new SyntaxError("sub");
  requireNumber(claims.eventNumber);
}

function checkTimes({ iat, exp }, now) {
  const lifetime = (exp - iat) * 1000;
  if (lifetime <= 0 || lifetime > MAX_LIFETIME) throw new Refused("lives-too-long");
  if (iat * 1000 > now + CLOCK_SKEW) throw new Refused("not-yet-valid");
  if (exp * 1000 + CLOCK_SKEW <= now) throw new Refused("expired");
}

async function matchExpectation({ clientToken, authorization }, taskId, open) {
  const named = open.filter((each) => (each.taskId ?? taskId) === taskId);
  const right = await filter(named, (each) => each.token === undefined || same(each.token, clientToken));
  if (right.length === 0) {
    if (open.some((each) => each.taskId === taskId)) throw new Refused("wrong-token");
    throw new Refused("unknown-task", undefined, clientToken === undefined ? "no-token" : undefined);
  }
  const met = await filter(right, (each) => each.authorization === undefined || same(each.authorization, authorization));
  if (met.length === 0) throw new Refused("wrong-credentials");
}

async function filter(items, holds) {
  const held = await Promise.all(items.map(holds));
  return items.filter((_, index) => held[index]);
}

function readChallenge(raw, open) {
  if (open.length === 0) throw new Refused("unexpected-challenge");
  const { type, challenge } = attempt("unreadable-body", () => parseObject(raw));
  const right = type === "a2a.webhook.challenge" && typeof challenge === "string" && challenge.length >= 1 && challenge.length <= 512;
  if (!right) throw new Refused("unreadable-body");
  return { type: "challenge", challenge };
}

function readBody(raw, version) {
  const read = { "1.0": read10, 0.3: read03 };
  if (!Object.hasOwn(read, version)) throw new Refused("unsupported-version");
  return attempt("unreadable-body", () => read[version](parseObject(raw)));
}

function read10(body) {
  const kinds = EVENTS.filter((kind) => kind in body);
  if (kinds.length !== 1) throw new SyntaxError("not exactly one event");
  const [kind] = kinds;
  const event = requireObject(body[kind]);
  checkOptional(event, "contextId");
  const state = kind === "task" || kind === "statusUpdate" ? readState(event.status, STATES_1_0) : undefined;
  if (kind === "task" && "artifacts" in event) requireList(event.artifacts).forEach(checkArtifact);
  if (kind === "artifactUpdate") checkArtifact(event.artifact);
  if (kind === "message") { requireString(event.messageId); requireString(event.role); checkParts(event.parts); }
  return { taskId: requireString(kind === "task" ? event.id : event.taskId), kind, state };
}

function read03(body) {
  if (body.kind !== "task") throw new SyntaxError("not a task");
  const state = readState(body.status, STATES);
  requireString(body.contextId);
  if ("artifacts" in body) requireList(body.artifacts).forEach(checkArtifact);
  return { taskId: requireString(body.id), kind: "task", state };
}

/** The state as version 0.3 spells it. */
function readState(status, states) {
  requireObject(status);
  const index = states.indexOf(status.state);
  if (index === -1) throw new SyntaxError("state");
  if ("message" in status) checkParts(requireObject(status.message).parts);
  return STATES[index];
}

function checkArtifact(artifact) {
  requireObject(artifact);
  requireString(artifact.artifactId);
  checkOptional(artifact, "name");
  checkParts(artifact.parts);
}

function checkParts(parts) {
  if (requireList(parts).length === 0) throw new SyntaxError("no parts");
  parts.forEach(checkPart);
}

function checkPart(part) {
  requireObject(part);
  if (part.kind === "file") {
    const file = requireObject(part.file);
    requireString("bytes" in file ? file.bytes : file.uri);
    checkOptional(file, "mimeType", "name");
    return;
  }
  const found = ["text", "data", "url", "raw"].filter((name) => name in part);
  if (found.length !== 1) throw new SyntaxError("not exactly one content");
  if (found[0] !== "data") requireString(part[found[0]]);
  checkOptional(part, "mediaType", "filename");
}

function checkOptional(holder, ...names) {
  for (const name of names) if ((holder[name] ?? null) !== null) requireString(holder[name]);
}

function requireObject(value) {
  if (!isObject(value)) throw new SyntaxError("not an object");
  return value;
}

function requireList(value) {
  if (!Array.isArray(value)) throw new SyntaxError("not a list");
  return value;
}

function requireString(value) {
  if (typeof value !== "string") throw new SyntaxError("not a string");
  return value;
}

function requireText(value, limit) {
  if (requireString(value).length === 0 || [...value].length > limit) throw new SyntaxError("not a text of that length");
  return value;
}

function requireIdentifier(value) {
  if (!/^[\x21-\x7e]{1,256}$/.test(requireString(value))) throw new SyntaxError("not an identifier");
  return value;
}

function requireNumber(value) {
  if (!Number.isSafeInteger(value) || value < 1) throw new SyntaxError("not a whole number from 1");
  return value;
}

function attempt(code, read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refused(code, error.message);
    throw error;
  }
}

/** Compares digests: how long it takes says nothing of the texts. */
async function same(expected, given) {
  if (given === undefined) return false;
  const [one, other] = await Promise.all([expected, given].map(async (text) => sha256(new TextEncoder().encode(text))));
  return one.reduce((differing, byte, index) => differing | (byte ^ other[index]), 0) === 0;
}

async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
