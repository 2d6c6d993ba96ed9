// node --test
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { makeReceiver } from "../index.js";
import { toListener } from "../node.js";
import { audience, issuer, keySet, named } from "./vectors.js";

const { expectations, now } = named("a status update");
const settings = { issuer, audience, expectations, clock: () => now, fetchKeys: async () => keySet };
const handled = [];
let server;

function serve(options) {
  const made = createServer(toListener(makeReceiver({ ...settings, ...options })));
  return new Promise((resolve) => made.listen(0, "127.0.0.1", () => resolve(made)));
}

before(async () => { server = await serve({ handle: ({ eventNumber }) => handled.push(eventNumber) }); });
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

const send = (name, body) => post({ headers: named(name).headers, body: body ?? named(name).body });

test("a genuine notification reaches the handler", async () => {
  assert.deepEqual(await send("a status update"), [200, '{"received":true,"duplicate":false,"late":false}']);
  assert.deepEqual(handled, [3]);
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
  const hasty = await serve({ handle() {}, bodyMs: 300 });
  const half = { port: hasty.address().port, host: "127.0.0.1", method: "POST", agent: false, headers: { "Content-Length": 10 } };
  const stopped = request({ ...half, agent: new Agent({ keepAlive: true }) });
  stopped.write("{");
  const [answer] = await once(stopped, "response");
  assert.deepEqual([answer.statusCode, answer.headers.connection], [408, "close"]);
  stopped.destroy();
  const left = request(half).on("error", () => {});
  left.write("{", () => left.destroy());
  await new Promise((resolve) => left.on("close", resolve));
  const [after] = await once(request(half).end("0123456789"), "response");
  assert.equal(after.statusCode, 415);
  after.destroy();
  hasty.close();
});
