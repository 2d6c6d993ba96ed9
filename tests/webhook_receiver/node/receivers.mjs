// Node receivers for test_semantics.py: reads a description from standard input, prints the ports, runs until it is ended.
import { readFileSync } from "node:fs";
import { makeMemory } from "../../../webhook_receiver/examples/node/memory.mjs";
import { makeServer } from "../../../webhook_receiver/examples/node/server.mjs";

class ValueError extends Error {
  name = "ValueError";
}

const { issuer, audience, token, now, keys, claimed, fails, bodyMs } = JSON.parse(readFileSync(0, "utf-8"));
const expectations = [{ token, expires: Infinity }];
const settings = { issuer, audience, expectations, clock: () => now, bodyMs };
const memory = makeMemory();
memory.admit(claimed, now);

async function onNotification({ claims }) {
  if (claims.eventNumber === fails) throw new ValueError("the application's own");
}

function listen(server) {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
}

const good = makeServer({ ...settings, memory, onNotification, fetchKeys: async () => Buffer.from(keys) });
const keyless = makeServer({ ...settings, fetchKeys: async () => { throw new Error("down"); } });
console.log(JSON.stringify([await listen(good), await listen(keyless)]));
