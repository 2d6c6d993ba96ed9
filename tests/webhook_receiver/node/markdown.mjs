// Renders generated hostile lines with a page's markdown.js, whose address is the argument. Prints how many it rendered.
class Node {
  constructor(name) { Object.assign(this, { localName: name, nodes: [] }); }
  append(...nodes) { this.nodes.push(...nodes); }
  setAttribute() {}
  get lastChild() { return this.nodes.at(-1); }
}
globalThis.document = { createElement: (name) => new Node(name) };

const { markdown } = await import(process.argv[2]);
const MARKS = ["-", "*", "_", "~", "`", "#", ">", "|", "[", "]", "(", ")", "](", "!", "\\", ":", "1.", " ", "\t", "a", "\u2028", "\r", "\n"];
const LINE = 400_000;
let seed = 20_000;
const pick = () => MARKS[(seed = (seed * 48271) % 2147483647) % MARKS.length];

const shapes = [["- ", " ", "\u2028"], ["a|b\n", " ", "-x"], ["a|b\n", " -", "x"], ["# ", " #", "x"], ["", "- ", "x"]];
while (shapes.length < 120) shapes.push([pick() + pick(), pick() + (seed % 2 ? pick() : ""), pick() + pick()]);
let most = 0;
const count = (node) => (typeof node === "string" ? 1 : 1 + node.nodes.reduce((sum, one) => sum + count(one), 0));
for (const [head, unit, tail] of shapes) {
  const line = head + unit.repeat(LINE / unit.length) + tail;
  most = Math.max(most, count(markdown(line)), count(markdown(`${line.slice(0, 2000)}\n`.repeat(100))));
}
console.log(JSON.stringify({ rendered: shapes.length, most }));
