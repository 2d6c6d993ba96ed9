// node --test
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { KeysUnavailable, makeCache } from "./jwks.mjs";
import { makeServer } from "./server.mjs";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/vectors.json", import.meta.url)));
const { issuer, audience } = vectors;
const keySet = Buffer.from(JSON.stringify(vectors.keys));
const knownKey = vectors.keys.keys[0].kid;
const named = (name) => vectors.cases.find((vector) => vector.name === name);
const came = [];
let server;

before(() => {
  const settings = { issuer, audience, expectations: named("a status update").expectations, clock: () => named("a status update").now };
  server = makeServer({ ...settings, fetchKeys: async () => keySet, onNotification: async ({ claims }) => came.push(claims.eventNumber) });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(() => server.close());

function post({ headers, body }) {
  return new Promise((resolve, reject) => {
    const sent = request({ port: server.address().port, host: "127.0.0.1", method: "POST", agent: false }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve([answer.statusCode, Buffer.concat(chunks).toString()]));
    });
    sent.on("error", reject);
    for (const [name, value] of headers) sent.setHeader(name, value);
    sent.end(body);
  });
}

const send = (name, body) => post({ headers: named(name).headers, body: body ?? Buffer.from(named(name).body, "base64") });

test("a genuine notification reaches the handler", async () => {
  assert.deepEqual(await send("a status update"), [200, '{"received":true,"duplicate":false,"late":false}']);
  assert.deepEqual(came, [3]);
});

test("a challenge is echoed", async () => {
  assert.deepEqual(await send("a challenge while something is expected"), [200, '{"challenge":"b2Nlbi1zYWlsYm9hdA"}']);
});

test("everything unauthentic gets one answer", async () => {
  for (const name of ["a body that is one byte changed", "the unknown key id unknown", "no Authorization", "nothing expected"]) {
    const [status, text] = await send(name, name === "nothing expected" ? Buffer.from("{}") : undefined);
    assert.deepEqual([status, text], [401, '{"error":"unauthenticated"}']);
  }
});

test("too much and the wrong thing are told apart", async () => {
  assert.equal((await send("plain text"))[0], 415);
  assert.equal((await send("a body that is an empty object"))[0], 400);
  assert.equal((await send("a status update", Buffer.alloc(1024 * 1024 + 1)))[0], 413);
});

test("a body that stops is given up, and so is one whose client leaves", async () => {
  const hasty = makeServer({ issuer, audience, expectations: [], bodyMs: 300, fetchKeys: async () => keySet });
  await new Promise((resolve) => hasty.listen(0, "127.0.0.1", resolve));
  const half = { port: hasty.address().port, host: "127.0.0.1", method: "POST", agent: false, headers: { "Content-Length": 10 } };
  const stopped = request(half);
  stopped.write("{");
  const [answer] = await once(stopped, "response");
  assert.equal(answer.statusCode, 408);
  stopped.destroy();
  const left = request(half).on("error", () => {});
  left.write("{", () => left.destroy());
  await new Promise((resolve) => left.on("close", resolve));
  const [after] = await once(request(half).end("0123456789"), "response");
  assert.equal(after.statusCode, 415);
  after.destroy();
  hasty.close();
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
