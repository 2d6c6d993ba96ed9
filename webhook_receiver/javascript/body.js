// Reads what arrives in chunks, within a limit of bytes and of time.
import { Refused } from "./verify.js";

/**
 * The bytes of a stream. The rest of a refused one is left unread. Throws Refused: too-large, too-slow.
 * @param {AsyncIterable<Uint8Array> | null} chunks
 */
export async function readBytes(chunks, limit, milliseconds) {
  if (chunks === null) return new Uint8Array();
  const iterator = chunks[Symbol.asyncIterator](); // never returned, or a refused request could not be answered
  const read = [];
  let size = 0;
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Refused("too-slow")), milliseconds); });
  try {
    for (;;) {
      const { done, value } = await Promise.race([iterator.next(), late]);
      if (done) return joined(read, size);
      size += value.length;
      if (size > limit) throw new Refused("too-large");
      read.push(value);
    }
  } catch (error) {
    throw error instanceof Refused ? error : new Refused("too-slow"); // the client has left
  } finally {
    clearTimeout(timer);
  }
}

function joined(chunks, size) {
  const bytes = new Uint8Array(size);
  let index = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, index);
    index += chunk.length;
  }
  return bytes;
}
