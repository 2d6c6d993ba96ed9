// node --test
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseKeys, Refused, verify } from "./verify.mjs";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/vectors.json", import.meta.url)));
const { issuer, audience } = vectors;
const keys = parseKeys(Buffer.from(JSON.stringify(vectors.keys)));

function verdict({ headers, body, now, expectations }) {
  try {
    const proven = verify({ headers, body: Buffer.from(body, "base64"), keys, now, issuer, audience, expectations });
    return [null, proven.challenge ?? null];
  } catch (error) {
    if (error instanceof Refused) return [error.code, null];
    throw error;
  }
}

for (const vector of vectors.cases) {
  test(vector.name, () => assert.deepEqual(verdict(vector), [vector.code, vector.challenge]));
}
