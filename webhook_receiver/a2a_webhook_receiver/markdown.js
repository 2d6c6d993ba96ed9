// Markdown as DOM nodes. It makes no markup from text, follows no address by itself, and reads its input once.
import { el, plain } from "./dom.js";

// Bounds of a page that stays quick: levels, blocks, and nodes in their lines. More of a text is shown as it is.
const DEEP = 8;
const BLOCKS = 2000;
const NODES = 6000;
const LINK = /^(https?:\/\/|mailto:)/i;

// ``picture`` gives a node for the name of a picture of the task, or null.
export function markdown(text, picture = () => null) {
  const lines = text.split(/\r\n?|\n/);
  const root = el("div", { class: "markdown", dir: "auto" });
  const state = { lines, at: 0, blocks: 0, nodes: 0, picture };
  while (state.at < lines.length) {
    if (state.blocks > BLOCKS || state.nodes > NODES) {
      root.append(el("pre", {}, lines.slice(state.at).join("\n")));
      break;
    }
    const node = block(state);
    if (node) root.append(node);
  }
  return root;
}

// Each pattern has one way to match: with two for the same characters, a long line freezes the page.
const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^(#{1,6})[ \t]/;
const RULE = /^([-*_])\1{2,}$/;
const ITEM = /^([ \t]*)([-*+]|\d{1,3}[.)])[ \t]/; // a year with a dot begins no list
const QUOTE = /^ {0,3}> ?/;
const DIVIDING = /^[ \t|:-]+$/;
const DASHES = /^:?-+:?$/;

const isRule = (line) => !line.startsWith("    ") && RULE.test(line.replaceAll(" ", "").replaceAll("\t", ""));
const isDivider = (line = "") => DIVIDING.test(line) && cells(line).every((cell) => DASHES.test(cell.trim()));

function block(state) {
  const { lines } = state;
  const line = lines[state.at];
  state.blocks += 1;
  if (!line.trim()) {
    state.at += 1;
    return null;
  }
  if (FENCE.test(line)) return fence(state);
  const heading = HEADING.exec(line);
  if (heading) {
    state.at += 1;
    const level = Math.min(6, heading[1].length + 2);
    return el(`h${level}`, {}, inline(line.slice(heading[0].length).trim().replace(/[ \t]#+$/, ""), state));
  }
  if (isRule(line)) {
    state.at += 1;
    return el("hr");
  }
  if (QUOTE.test(line)) return quote(state);
  if (ITEM.test(line)) return list(state);
  if (line.includes("|") && isDivider(lines[state.at + 1])) return table(state);
  return paragraph(state);
}

function fence(state) {
  const mark = FENCE.exec(state.lines[state.at])[1];
  const from = (state.at += 1);
  while (state.at < state.lines.length && !state.lines[state.at].trim().startsWith(mark)) state.at += 1;
  const code = state.lines.slice(from, state.at).join("\n");
  state.at += 1;
  return el("pre", { dir: "ltr", tabindex: "0" }, el("code", {}, code));
}

function quote(state) {
  const from = state.at;
  while (state.at < state.lines.length && QUOTE.test(state.lines[state.at])) state.at += 1;
  const inner = state.lines.slice(from, state.at).map((line) => line.replace(QUOTE, ""));
  return el("blockquote", {}, el("p", {}, inline(inner.join("\n"), state)));
}

function list(state) {
  const stack = [];
  while (state.at < state.lines.length) {
    const line = state.lines[state.at];
    const item = ITEM.exec(line);
    if (!item) {
      if (!line.trim() || !/^[ \t]/.test(line) || !stack.length) break;
      for (const node of [" ", ...inline(line.trim(), state)]) stack.at(-1).node.lastChild.append(node);
      state.at += 1;
      continue;
    }
    const deep = item[1].replaceAll("\t", "    ").length;
    while (stack.length > 1 && deep < stack.at(-1).deep) stack.pop();
    const number = Number.parseInt(item[2], 10);
    const tag = Number.isNaN(number) ? "ul" : "ol";
    if (stack.length === 1 && deep <= stack[0].deep + 1 && tag !== stack[0].node.localName) break; // another list
    if (!stack.length || (deep > stack.at(-1).deep + 1 && stack.length < DEEP && stack.at(-1).node.lastChild)) {
      const node = el(tag, number > 1 ? { start: number } : {});
      if (stack.length) stack.at(-1).node.lastChild.append(node);
      stack.push({ deep, node });
    }
    const shown = line.slice(item[0].length).trim().replace(/^\[ \] /, "☐ ").replace(/^\[[xX]\] /, "☑ ");
    stack.at(-1).node.append(el("li", {}, inline(shown, state)));
    state.at += 1;
    state.blocks += 1;
    if (state.blocks > BLOCKS || state.nodes > NODES) break;
  }
  return stack[0].node;
}

function cells(line) {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|", 50);
}

function table(state) {
  const row = (line, tag) => {
    const nodes = cells(line).map((cell) => el(tag, {}, inline(cell.trim(), state)));
    state.nodes += nodes.length;
    return el("tr", {}, nodes);
  };
  const head = row(state.lines[state.at], "th");
  state.at += 2;
  const body = el("tbody");
  while (state.at < state.lines.length && state.lines[state.at].includes("|") && state.blocks <= BLOCKS && state.nodes <= NODES) {
    body.append(row(state.lines[state.at], "td"));
    state.at += 1;
    state.blocks += 1;
  }
  return el("div", { class: "wide", tabindex: "0" }, el("table", {}, el("thead", {}, head), body));
}

function paragraph(state) {
  const from = state.at;
  do state.at += 1;
  while (state.at < state.lines.length && state.lines[state.at].trim() && !starts(state.lines[state.at]));
  return el("p", {}, inline(state.lines.slice(from, state.at).join("\n"), state));
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line);

// Finds the next place of a mark, and looks for no mark twice in the same stretch.
function finder(text) {
  const known = new Map();
  return (mark, from) => {
    const last = known.get(mark);
    if (last !== undefined && (last === -1 || last >= from)) return last;
    const found = text.indexOf(mark, from);
    known.set(mark, found);
    return found;
  };
}

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];

function inline(text, state, deep = 0) {
  if (deep > DEEP) return [text];
  const nodes = [];
  const next = finder(text);
  let plainFrom = 0;
  let at = 0;
  const push = (node, end) => {
    const before = text.slice(plainFrom, at);
    state.nodes += 1;
    if (typeof node === "string" && typeof nodes.at(-1) === "string") nodes.push(nodes.pop() + before + node);
    else nodes.push(...(before ? [before] : []), node);
    at = plainFrom = end;
  };
  while (at < text.length && state.nodes <= NODES) {
    const one = text[at];
    if (one === "\\" && /[\\`*_[\]()#!~>|-]/.test(text[at + 1] ?? "")) push(text[at + 1], at + 2);
    else if (one === "`" && next("`", at + 1) > at + 1) push(el("code", {}, text.slice(at + 1, next("`", at + 1))), next("`", at + 1) + 1);
    else if (one === "\n") push(el("br"), at + 1);
    else if ((one === "[" || (one === "!" && text[at + 1] === "[")) && link(text, at, next)) {
      const target = link(text, at, next);
      push(linked(target, state, deep), target.end);
    } else {
      const mark = "*_~".includes(one) && emphasis(text, at, next);
      if (mark) push(el(mark.tag, {}, inline(text.slice(mark.from, mark.to), state, deep + 1)), mark.to + mark.size);
      else at += 1;
    }
  }
  if (plainFrom < text.length) nodes.push(text.slice(plainFrom));
  return nodes;
}

function emphasis(text, at, next) {
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, at)) continue;
    const from = at + mark.length;
    if (mark[0] === "_" && /\w/.test(text[at - 1] ?? "")) return null;
    const to = next(mark, from + 1);
    return to > from && /\S/.test(text[from]) && /\S/.test(text[to - 1]) ? { tag, from, to, size: mark.length } : null;
  }
  return null;
}

function link(text, at, next) {
  const from = at + (text[at] === "!" ? 2 : 1);
  const middle = next("](", from);
  const end = middle < 0 ? -1 : next(")", middle + 2);
  if (end < 0 || end - at > 4000) return null;
  return { isPicture: text[at] === "!", label: text.slice(from, middle), url: text.slice(middle + 2, end).trim().split(/\s/, 1)[0], end: end + 1 };
}

function linked({ isPicture, label, url }, state, deep) {
  const shown = isPicture ? state.picture(url, label) : null;
  if (shown) return shown;
  if (!LINK.test(url)) return el("span", { title: plain(url) }, isPicture ? label || plain(url) : inline(label, state, deep + 1));
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, isPicture ? label || plain(url) : inline(label, state, deep + 1));
}
