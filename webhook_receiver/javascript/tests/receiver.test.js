// node --test
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { KeysUnavailable, makeCache, makeMemory, makeReceiver, StillWorking } from "../index.js";
import { toHandler } from "../lambda.js";
import { audience, issuer, keySet, knownKey, named } from "./vectors.js";

const good = named("a status update");
const { expectations, now } = good;

function receiverOf(options) {
  return makeReceiver({ issuer, audience, expectations, clock: () => now, fetchKeys: async () => keySet, handle() {}, ...options });
}

function requestOf({ headers, body }, method = "POST") {
  return new Request(audience, { method, headers, ...(method === "POST" ? { body } : {}) });
}

test("a request of the Fetch API gets a response, and its repetition is a duplicate", async () => {
  const handled = [];
  const receiver = receiverOf({ handle: ({ state, late }) => handled.push([state, late]) });
  const first = await receiver.fetch(requestOf(good));
  assert.deepEqual([first.status, await first.json()], [200, { received: true, duplicate: false, late: false }]);
  assert.equal(first.headers.get("Cache-Control"), "no-store");
  assert.deepEqual(await (await receiver.fetch(requestOf(good))).json(), { received: true, duplicate: true });
  assert.deepEqual(handled, [["working", false]]);
  const refused = await receiver.fetch(requestOf(named("no Authorization")));
  assert.deepEqual([refused.status, refused.headers.get("WWW-Authenticate")], [401, "Bearer"]);
  assert.equal((await receiver.fetch(requestOf(good, "GET"))).headers.get("Allow"), "POST");
  assert.equal((await receiver.fetch(new Request(audience, { method: "POST", headers: good.headers }))).status, 401);
});

async function* pieces(bytes, size) {
  for (let index = 0; index < bytes.length; index += size) yield bytes.subarray(index, index + size);
}

test("a body may come in pieces, and is refused as soon as they are too many", async () => {
  const receiver = receiverOf({ maxBytes: good.body.length });
  assert.equal((await receiver.receive({ method: "POST", ...good, body: pieces(good.body, 7) })).status, 200);
  const endless = (async function* () { for (;;) yield good.body; })();
  assert.equal((await receiver.receive({ method: "POST", ...good, body: endless })).status, 413);
});

test("the fetch of keys is given to a runtime that ends what a request has begun", async () => {
  const waited = [];
  const receiver = receiverOf();
  const context = { waitUntil(promise) { assert.equal(this, context); waited.push(promise); } };
  await receiver.fetch(requestOf(good), {}, context);
  assert.equal(waited.length, 1);
});

test("a handler that throws is called again by the next attempt", async () => {
  let calls = 0;
  const receiver = receiverOf({ handle: async () => { calls += 1; if (calls === 1) throw new Error("the application's own"); } });
  const statuses = [];
  for (let attempt = 0; attempt < 3; attempt += 1) statuses.push((await receiver.receive({ method: "POST", ...good })).status);
  assert.deepEqual([statuses, calls], [[500, 200, 200], 2]);
});

test("a store may be asynchronous, and one that fails is answered 500", async () => {
  const memory = makeMemory();
  const called = [];
  const methods = Object.entries(memory).map(([name, method]) => [name, async (...given) => { called.push(name); return method(...given); }]);
  const receiver = receiverOf({ store: Object.fromEntries(methods) });
  assert.equal((await receiver.receive({ method: "POST", ...good })).status, 200);
  assert.deepEqual(called, ["admit", "settle"]);
  const broken = receiverOf({ store: { admit: async () => { throw new Error("the database is down"); } } });
  assert.deepEqual((await broken.receive({ method: "POST", ...good })).status, 500);
});

test("a notification is claimed for a minute by one attempt", async () => {
  const { claims } = await new Promise((resolve) => receiverOf({ handle: resolve }).receive({ method: "POST", ...good }));
  const memory = makeMemory();
  assert.deepEqual(memory.admit(claims, now), { late: false, claim: now + 60_000 });
  assert.throws(() => memory.admit(claims, now + 59_999), (error) => error instanceof StillWorking && error.retryAfter === 1);
  const second = memory.admit(claims, now + 60_000);
  memory.settle(claims, { late: false, claim: now + 60_000 }); // the first attempt has lost its claim
  assert.throws(() => memory.admit(claims, now + 60_001), StillWorking);
  memory.settle(claims, second);
  assert.equal(memory.admit(claims, now + 60_001), null);
});

test("Lambda's events of both versions are answered alike", async () => {
  const handler = toHandler(receiverOf());
  const text = new TextDecoder().decode(good.body);
  const body = btoa(text);
  const single = { requestContext: { http: { method: "POST" } }, headers: Object.fromEntries(good.headers), body, isBase64Encoded: true };
  assert.equal((await handler(single)).statusCode, 200);
  const several = Object.fromEntries(good.headers.map(([name, value]) => [name, [value]]));
  const rest = { httpMethod: "POST", multiValueHeaders: several, body: text };
  assert.equal((await handler(rest)).body, '{"received":true,"duplicate":true}');
  const twice = { ...rest, multiValueHeaders: { ...several, "A2A-Version": ["1.0", "1.0"] } };
  assert.equal((await handler(twice)).statusCode, 401);
  assert.equal((await handler({ httpMethod: "GET" })).statusCode, 405);
  assert.equal((await handler({ requestContext: { http: { method: "GET" } } })).statusCode, 405);
  assert.equal((await handler({ ...single, body: btoa("x".repeat(1024 * 1024 + 1)) })).statusCode, 413);
});

test("missing options are named at once", () => {
  assert.throws(() => makeReceiver({ audience, token: "t", handle() {} }), /issuer and audience must be set/);
  assert.throws(() => makeReceiver({ issuer, audience, handle() {} }), /token or expectations must be set/);
  assert.throws(() => makeReceiver({ issuer, audience, token: "t" }), /handle must be a function/);
});

test("a flood of unknown keys makes one fetch in thirty seconds, and known keys do not wait", async () => {
  let fetches = 0;
  const keysFor = makeCache(async () => { fetches += 1; return keySet; });
  await Promise.all(Array.from({ length: 200 }, (_, index) => keysFor(`unknown-${index}`, 0)));
  assert.equal(fetches, 1);
  assert.ok((await keysFor(knownKey, 29_999)).has(knownKey));
  await keysFor("unknown", 29_999);
  assert.equal(fetches, 1);
  await keysFor("unknown", 30_000);
  assert.equal(fetches, 2);
});

test("a refresh for which nobody waits is given to the runtime, and one that never ends is forgotten", async () => {
  let answer = async () => keySet;
  const keysFor = makeCache(() => answer());
  await keysFor(knownKey, 0);
  answer = () => new Promise(() => {});
  const waited = [];
  assert.ok((await keysFor(knownKey, 240_000, (promise) => waited.push(promise))).has(knownKey));
  assert.equal(waited.length, 1);
  answer = async () => keySet;
  assert.ok((await keysFor("unknown", 270_000)).has(knownKey));
});

test("keys are read from the issuer's address only, and not without a limit", async () => {
  const answers = {
    "/good": (response) => response.end(keySet),
    "/moved": (response) => response.writeHead(302, { Location: "/good" }).end(),
    "/large": (response) => response.end(new Uint8Array(64 * 1024 + 1)),
    "/broken": (response) => response.writeHead(500).end(keySet),
    "/empty": (response) => response.end('{"keys": []}'),
  };
  const server = createServer((request, response) => answers[request.url](response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const statuses = [];
  for (const path of Object.keys(answers)) {
    const jwksUrl = `http://127.0.0.1:${server.address().port}${path}`;
    const receiver = makeReceiver({ issuer, audience, expectations, clock: () => now, jwksUrl, handle() {} });
    const { status, headers } = await receiver.receive({ method: "POST", ...good });
    statuses.push([path, status, headers["Retry-After"]]);
  }
  server.close();
  const unavailable = ["/moved", "/large", "/broken", "/empty"].map((path) => [path, 503, "30"]);
  assert.deepEqual(statuses, [["/good", 200, undefined], ...unavailable]);
});

test("a handled notification is remembered for seven days, unless there are too many", () => {
  const day = 86_400_000;
  const claimsOf = (number) => ({ taskId: "t", configId: "c", notificationId: `n-${number}`, eventNumber: number, jti: `j-${number}`, exp: 9e9 });
  const memory = makeMemory();
  memory.settle(claimsOf(1), memory.admit(claimsOf(1), 0));
  assert.equal(memory.admit(claimsOf(1), 7 * day - 1), null);
  assert.notEqual(memory.admit(claimsOf(1), 7 * day), null);
  const small = makeMemory(1);
  for (const number of [1, 2]) small.settle(claimsOf(number), small.admit(claimsOf(number), 0));
  assert.notEqual(small.admit(claimsOf(1), 1), null);
});

test("an issuer that fails is asked once in thirty seconds, and its last keys hold for a day", async () => {
  let fetches = 0;
  let down = false;
  const keysFor = makeCache(async () => { fetches += 1; if (down) throw new Error("down"); return keySet; });
  await keysFor(knownKey, 0);
  down = true;
  assert.ok((await keysFor(knownKey, 86_399_999)).has(knownKey));
  await assert.rejects(keysFor("unknown", 86_399_999), KeysUnavailable);
  assert.equal(fetches, 2);
  await assert.rejects(keysFor(knownKey, 86_430_000), KeysUnavailable);
});
