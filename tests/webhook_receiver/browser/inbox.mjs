// Drives a page (the inbox, the console) in a real browser. Usage: node inbox.mjs <chromium> <profile folder> [<pictures folder>]
// Reads one command per line from stdin, so that the test decides when what arrives; answers each with one line of JSON.
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [executablePath, profile, pictures] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const LONGEST = 12_000; // a longer page is too much for a picture
const AXE = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const SIZES = { desktop: { width: 1280, height: 860 }, tablet: { width: 768, height: 1024 }, phone: { width: 390, height: 844 }, narrow: { width: 360, height: 740 } };

const browser = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, args: FLAGS, viewport: SIZES.desktop, permissions: ["clipboard-read", "clipboard-write"],
});
const page = browser.pages()[0] ?? await browser.newPage();
const problems = [];
let url;
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
page.on("pageerror", (error) => problems.push(String(error)));
page.on("request", (request) => { if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(url)) problems.push(`asked ${request.url()}`); });
page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
page.setDefaultTimeout(60_000);

const commands = {
  async open(address) { url = new URL(address).origin; problems.length = 0; await page.goto(address); },
  async wait(selector) { await page.waitForSelector(selector); },
  async status(state) { await page.waitForSelector(`#status[data-state="${state}"]`); },
  async rows(count) { await page.waitForFunction((n) => document.querySelectorAll(".row").length === Number(n), count); },
  async until(expression) { // page.waitForFunction would need eval, which the policy forbids
    const end = Date.now() + 60_000;
    while (!(await page.evaluate(expression))) {
      if (Date.now() > end) throw new Error("never true");
      await page.waitForTimeout(50);
    }
  },
  async clipboard() { return page.evaluate("navigator.clipboard.readText()"); },
  async texts(selector) { return page.locator(selector).allInnerTexts(); },
  async count(selector) { return page.locator(selector).count(); },
  async click(selector) { await page.locator(selector).first().click(); },
  async select(argument) { const [selector, value] = argument.split(" :: "); await page.selectOption(selector, value); },
  async fill(argument) { const [selector, value] = argument.split(" :: "); await page.fill(selector, value); },
  async evaluate(expression) { return page.evaluate(expression); },
  async size(name) { // one of the names, or a width such as 360
    await page.setViewportSize(SIZES[name] ?? { width: Number(name), height: 860 });
  },
  async scheme(colorScheme) { await page.emulateMedia({ colorScheme, reducedMotion: "reduce" }); },
  async overflow() { return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"); },
  async picture(name) { await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode().catch(() => {})))); if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: await page.evaluate("document.documentElement.scrollHeight") < LONGEST }); },
  async problems() { return problems; },
  async press(key) { await page.keyboard.press(key); },
  async type(text) { await page.keyboard.type(text); },
  async upload(argument) { const [selector, ...files] = argument.split(" :: "); await page.setInputFiles(selector, files); },
  async serious() {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate("axe.run()");
    return violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" ")}`);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...rest] = line.split(" ");
  try {
    console.log(JSON.stringify({ value: (await commands[name](rest.join(" "))) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: `${line}: ${error.message}`, problems }));
  }
}
await browser.close();
