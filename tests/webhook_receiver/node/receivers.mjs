// Node receivers for test_semantics.py: reads a description from standard input, prints the ports, runs until it is ended.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { makeMemory, makeReceiver } from "../../../webhook_receiver/javascript/index.js";
import { toListener } from "../../../webhook_receiver/javascript/node.js";

class ValueError extends Error {
  name = "ValueError";
}

const { issuer, audience, token, now, keys, claimed, fails, bodyMs } = JSON.parse(readFileSync(0, "utf-8"));
const settings = { issuer, audience, token, clock: () => now, bodyMs, handle };
const store = makeMemory();
store.admit(claimed, now);

async function handle({ eventNumber }) {
  if (eventNumber === fails) throw new ValueError("the application's own");
}

function listen(receiver) {
  const server = createServer(toListener(receiver));
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
}

const good = makeReceiver({ ...settings, store, fetchKeys: async () => Buffer.from(keys) });
const keyless = makeReceiver({ ...settings, fetchKeys: async () => { throw new Error("down"); } });
console.log(JSON.stringify([await listen(good), await listen(keyless)]));
