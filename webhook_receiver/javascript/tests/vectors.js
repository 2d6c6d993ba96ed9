// The vectors that the Python receiver is tested by, too.
import { readFileSync } from "node:fs";

const VECTORS = JSON.parse(readFileSync(new URL("../../vectors/vectors.json", import.meta.url)));

export const { issuer, audience, cases } = VECTORS;
export const keySet = new TextEncoder().encode(JSON.stringify(VECTORS.keys));
export const knownKey = VECTORS.keys.keys[0].kid;

export function named(name) {
  const { body, ...rest } = cases.find((vector) => vector.name === name);
  return { ...rest, body: bytesOf(body) };
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
