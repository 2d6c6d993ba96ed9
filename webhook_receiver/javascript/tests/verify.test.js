// node --test
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseKeys, Refused, verify } from "../index.js";
import { audience, bytesOf, cases, issuer, keySet, named } from "./vectors.js";

const keys = await parseKeys(keySet);

async function verdict({ headers, body, now, expectations }) {
  try {
    const proven = await verify({ headers, body: bytesOf(body), keys, now, issuer, audience, expectations });
    return [null, proven.challenge ?? null];
  } catch (error) {
    if (error instanceof Refused) return [error.code, null];
    throw error;
  }
}

for (const vector of cases) {
  test(vector.name, async () => assert.deepEqual(await verdict(vector), [vector.code, vector.challenge]));
}

test("a notification names its task, event and state, and has its body as JSON.parse reads it", async () => {
  const proven = await verify({ ...named("a status update"), keys, issuer, audience });
  const { taskId, eventNumber, version, kind, state, body } = proven;
  assert.deepEqual([taskId, eventNumber, version, kind, state], ["7f9c2d1e-task", 3, "1.0", "statusUpdate", "working"]);
  assert.equal(Object.getPrototypeOf(proven.claims), Object.prototype);
  assert.deepEqual(body, JSON.parse(new TextDecoder().decode(named("a status update").body)));
});

test("expectations can be looked up by the task that the issuer signed", async () => {
  const asked = [];
  const { expectations, ...rest } = named("a status update");
  const lookUp = async (taskId) => { asked.push(taskId); return expectations; };
  await verify({ ...rest, keys, issuer, audience, expectations: lookUp });
  assert.deepEqual(asked, ["7f9c2d1e-task"]);
});
