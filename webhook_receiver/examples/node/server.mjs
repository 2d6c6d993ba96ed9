// A webhook receiver on plain Node 20: ISSUER=... AUDIENCE=... WEBHOOK_TOKEN=... node server.mjs
// Change `handle`: it gets each genuine notification at least once. If it throws, or the process dies before it has
// returned, the sender's next attempt calls it again; after that, repeats do not reach it.
import { createServer } from "node:http";
import { makeReceiver } from "a2a-webhook-receiver";
import { toListener } from "a2a-webhook-receiver/node";

const { ISSUER: issuer, AUDIENCE: audience, WEBHOOK_TOKEN: token, PORT = "8011" } = process.env;

async function handle({ eventNumber, state }) {
  console.log(`your application handles event ${eventNumber}, ${state ?? "no state"}`);
}

createServer(toListener(makeReceiver({ issuer, audience, token, handle }))).listen(Number(PORT), "127.0.0.1");
