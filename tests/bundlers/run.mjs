// npm run lab -- bundlers [NAME …]: installs the packed package into small projects of other bundlers and frameworks, builds and serves them, and
// trains five steps in Chromium: equal losses everywhere, no error on the console. `examples` runs the programs of examples/. Without a name all of
// them. What is installed is kept in the cache folder; the results are results.json.
// TABTUNE_CORE=quick packs the quick core; TABTUNE names the native program.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { messageOf } from '../../web/stages.mjs';
import { root } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { CONSUMERS } from './consumers.mjs';
import { installed } from './install.mjs';
import { packed } from './pack.mjs';

/** @typedef {import('./consumers.mjs').Consumer} Consumer */
/** A line of results.json. @typedef {{ consumer: string, about: string, versions: Record<string, string>, losses?: number[] }} Row */

const RESULTS = join(import.meta.dirname, 'results.json');
/** The consumer without a bundler, whose losses all others are to have. */
const TRUTH = 'import-map';

/** Returns the losses of a consumer, if it trains, and its results. @param {string} name @param {Browser} browser @param {string} tarball */
async function tried(name, browser, tarball) {
  const { about, fixture, packages = [], check } = /** @type {Consumer} */ (CONSUMERS[name]);
  const started = Date.now();
  const project = installed(fixture, tarball);
  const losses = await check({ ...project, browser });
  const versions = Object.fromEntries(packages.map((each) => [each, project.versionOf(each)]));
  const seconds = Math.round((Date.now() - started) / 1000);
  return { row: { consumer: name, about, versions, ...(losses ? { losses } : {}) }, seconds };
}

/** Replaces the results of these consumers. @param {Row[]} rows @param {string} chromium */
function write(rows, chromium) {
  /** @type {{ rows: Row[] }} */
  const before = existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : { rows: [] };
  const all = new Map([...before.rows, ...rows].map((row) => [row.consumer, row]));
  const ordered = Object.keys(CONSUMERS).flatMap((name) => all.get(name) ?? []);
  const head = { date: new Date().toISOString().slice(0, 10), chromium, core: built.kind };
  const lines = ordered.map((row) => `\n  ${JSON.stringify(row)}`).join(',');
  const text = `{\n ${JSON.stringify(head).slice(1, -1)},\n "rows": [${lines}\n ]\n}\n`;
  writeFileSync(RESULTS, text);
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in CONSUMERS));
if (unknown.length > 0) {
  console.error(
    `bundlers: unknown ${unknown.join(', ')}; there are ${Object.keys(CONSUMERS).join(', ')}`,
  );
  process.exit(1);
}
process.chdir(root);
const names = asked.length > 0 ? [...new Set([TRUTH, ...asked])] : Object.keys(CONSUMERS);
const tarball = packed();
const browser = await Browser.launch();
/** @type {Row[]} */
const rows = [];
let failed = 0;
/** @type {number[] | undefined} */
let truth;
try {
  for (const name of names) {
    try {
      const { row, seconds } = await tried(name, browser, tarball);
      if (name === TRUTH) truth = row.losses;
      if (row.losses && `${row.losses}` !== `${truth}`)
        throw new Error(`its losses are ${row.losses}, those of ${TRUTH} ${truth}`);
      rows.push(row);
      const versions = Object.entries(row.versions).map((each) => each.join(' '));
      console.log(`ok     ${name}: ${versions.join(', ') || '-'} (${seconds} s)`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}: ${messageOf(error)}`);
    }
  }
} finally {
  await browser.close();
}
write(rows, browser.version);
console.log(`${rows.length} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
