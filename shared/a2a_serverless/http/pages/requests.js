// One request as a command or a program to copy. Credentials are named by a variable and never written out.

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ url, headers, body, streams, key }) {
  const lines = [`curl ${streams ? "-N " : ""}${quoted(url)}`, ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (key) lines.push('-H "Authorization: Bearer $A2A_KEY"');
  return [...lines, `--data-raw ${quoted(JSON.stringify(body, null, 2))}`].join(" \\\n  ");
}

function literal(value, indent = "") {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const rows = Array.isArray(value) ? value.map((one) => literal(one, inner)) : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, inner)}`);
  return rows.length ? `${open}\n${rows.map((row) => `${inner}${row},\n`).join("")}${indent}${close}` : open + close;
}

function python({ url, headers, body, streams, key }) {
  const imports = ["import json", ...(key ? ["import os"] : []), "import urllib.request"];
  const sign = key ? ['headers["Authorization"] = "Bearer " + os.environ["A2A_KEY"]'] : [];
  const read = streams ? ['    for line in answer:', '        if line.startswith(b"data: "):', "            print(json.loads(line[6:]))"] : ["    print(json.load(answer))"];
  return [...imports, "", `body = ${literal(body)}`, `headers = ${literal(headers)}`, ...sign,
    `request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(), headers)`,
    "with urllib.request.urlopen(request) as answer:", ...read, ""].join("\n");
}

function javascript({ url, headers, body, streams, key }) {
  const lines = [...Object.entries(headers).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`), ...(key ? ["Authorization: `Bearer ${process.env.A2A_KEY}`"] : [])];
  const read = streams ? ["for await (const text of answer.body.pipeThrough(new TextDecoderStream())) console.log(text);"] : ["console.log(await answer.json());"];
  return [`const body = ${JSON.stringify(body, null, 2)};`, `const answer = await fetch(${JSON.stringify(url)}, {`, '  method: "POST",',
    `  headers: { ${lines.join(", ")} },`, "  body: JSON.stringify(body),", "});", ...read, ""].join("\n");
}

export const LANGUAGES = { curl: ["curl", curl], python: ["Python", python], javascript: ["JavaScript", javascript] };
