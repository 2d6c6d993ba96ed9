// Parses only JSON that every parser reads the same way: UTF-8 without a byte order mark, no duplicate name in an
// object, numbers in range, no lone surrogates, at most 64 levels. JSON.parse takes the last of two equal names, so it cannot be used.
const MAX_DEPTH = 64;
const MAX_DIGITS = 300;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = new Map([["true", true], ["false", false], ["null", null]]);

/** A number that was not written as an integer, such as 3.0: it must not be accepted as one. */
export class Fraction {
  constructor(value) { this.value = value; }
}

/** The JSON object in `bytes`, without a prototype. Throws SyntaxError for anything else. */
export function parseObject(bytes) {
  const value = parse(bytes);
  if (!isObject(value)) throw new SyntaxError("not a JSON object");
  return value;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Fraction);
}

function parse(bytes) {
  const text = decode(bytes);
  const at = { text, index: 0 };
  const value = readValue(at, 1);
  skip(at);
  if (at.index !== text.length) throw new SyntaxError("something behind it");
  return value;
}

function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new SyntaxError("not UTF-8");
  }
}

function readValue(at, depth) {
  if (depth > MAX_DEPTH) throw new SyntaxError("nested too deeply");
  skip(at);
  const first = at.text[at.index];
  if (first === "{") return readObject(at, depth);
  if (first === "[") return readList(at, depth);
  if (first === '"') return readString(at);
  for (const [word, value] of WORDS) {
    if (at.text.startsWith(word, at.index)) {
      at.index += word.length;
      return value;
    }
  }
  return readNumber(at);
}

function readObject(at, depth) {
  const members = Object.create(null);
  readItems(at, "}", () => {
    skip(at);
    const name = readString(at);
    if (name in members) throw new SyntaxError("a name comes twice in one object");
    expect(at, ":");
    members[name] = readValue(at, depth + 1);
  });
  return members;
}

function readList(at, depth) {
  const items = [];
  readItems(at, "]", () => items.push(readValue(at, depth + 1)));
  return items;
}

function readItems(at, end, readItem) {
  at.index += 1;
  skip(at);
  if (at.text[at.index] === end) { at.index += 1; return; }
  for (;;) {
    readItem();
    skip(at);
    if (at.text[at.index] === end) { at.index += 1; return; }
    expect(at, ",");
  }
}

function readString(at) {
  const value = JSON.parse(match(at, STRING)[0]);
  if (!value.isWellFormed()) throw new SyntaxError("half a character");
  return value;
}

function readNumber(at) {
  const [digits, fraction, exponent] = match(at, NUMBER);
  const value = Number(digits);
  if (!Number.isFinite(value) || (!fraction && !exponent && digits.length > MAX_DIGITS)) throw new SyntaxError("a number is out of range");
  return fraction || exponent ? new Fraction(value) : value;
}

function match(at, pattern) {
  pattern.lastIndex = at.index;
  const found = pattern.exec(at.text);
  if (found === null) throw new SyntaxError(`not JSON at ${at.index}`);
  at.index = pattern.lastIndex;
  return found;
}

function skip(at) { match(at, SPACE); }

function expect(at, character) {
  skip(at);
  if (at.text[at.index] !== character) throw new SyntaxError(`no ${character} at ${at.index}`);
  at.index += 1;
}
