// npm run lab -- torture firefox [families|suite [word …]]: the system's Firefox on lavapipe; results are results/firefox.json.
//   families   a third of the reference cases of ../shared/assets/families-public.json; FAMILIES names the folder of their models
//   suite      the browser tests, with the cause of each that cannot run there; of those that words name, the rows of the results are replaced
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import {
  cacheDir,
  findFirefox,
  line,
  missingFirefox,
  read,
  root,
  run,
} from '../../web/toolchain.mjs';
import { written } from './report.mjs';

const PARTS = ['families', 'suite'];
const ENV = { TABTUNE_BROWSER: 'firefox' };
/** Causes for which a test cannot run in Firefox, by words of its error. @type {[RegExp, string][]} */
const CAUSES = [
  [/CDP session is only available/, "uses Chromium's DevTools protocol"],
  [/grantPermissions/, 'grants a permission that WebDriver BiDi does not know'],
  [/worker\.evaluate/, 'looks into a worker, which Playwright cannot over WebDriver BiDi'],
  [/Expected: .*dark/, 'asks for dark colours, which WebDriver BiDi cannot'],
  [/no GPU process runs/, "ends the GPU's process, which Firefox does not have without a screen"],
  [/webkitdirectory/, 'picks a folder, which WebDriver BiDi cannot'],
  [/measureUserAgentSpecificMemory/, "reads Chromium's measurement of memory"],
];

/** How the result of a test begins that fails for no known cause. */
const FAILED = 'FAILED: ';

/** @typedef {{ columns: string[], rows: unknown[][], failed: number }} Found */

/** Compares a third of the reference cases. @returns {Promise<Found>} */
async function families() {
  const file = join(root, '../shared/assets/families-public.json');
  const models = process.env.FAMILIES;
  if (!models) throw new Error('FAMILIES: expected the folder of the models, found nothing');
  const known = JSON.parse(readFileSync(file, 'utf8')).cases.filter(
    (/** @type {{ kind: string }} */ { kind }) => ['next', 'greedy', 'ce'].includes(kind),
  );
  const ids = known
    .filter((/** @type {unknown} */ _, /** @type {number} */ at) => at % 3 === 0)
    .map((/** @type {{ id: string }} */ { id }) => id);
  /** @type {unknown[][]} */
  const rows = [];
  let failed = 0;
  const onLine = (/** @type {string} */ text) => {
    const { id, kind, ok, error, bound, message } = JSON.parse(text);
    if (id === undefined) return;
    if (!ok) failed++;
    rows.push([id, kind, ok, error ?? message, bound]);
  };
  const command = line`node tests/browser/oracle.mjs ${file} ${models} ${ids}`;
  await run(...command, { env: ENV, onLine, allowFailure: true });
  if (rows.length < ids.length) failed += ids.length - rows.length;
  return { columns: ['case', 'kind', 'right', 'difference', 'allowed'], rows, failed };
}

/** A suite of Playwright's report. @typedef {{ file: string, specs?: Spec[], suites?: Suite[] }} Suite */
/** @typedef {{ title: string, tests: { results: { status: string, errors: { message?: string }[] }[] }[] }} Spec */

/** Returns the tests below a suite. @param {Suite} suite @returns {[file: string, spec: Spec][]} */
const specsOf = ({ file, specs = [], suites = [] }) => [
  ...specs.map((spec) => /** @type {[string, Spec]} */ ([file, spec])),
  ...suites.flatMap(specsOf),
];

/** Runs the browser tests, or those of the files that words name. @param {string[]} words */
async function suite(words) {
  const scratch = mkdtempSync(join(tmpdir(), 'tabtune-firefox-'));
  const report = join(scratch, 'report.json');
  const chosen = line`${words.map((word) => `browser/${word}`)} --project=browser --workers=1`;
  const options = line`--reporter list,json --output ${join(scratch, 'output')}`;
  const command = line`playwright test --config tests --timeout 180000`;
  const args = [...command[1], ...[chosen, options].flatMap(([first, more]) => [first, ...more])];
  // The cases of the kernels are those that the Rust tests of `npm test` recorded.
  const cases = { TABTUNE_CASES: process.env.TABTUNE_CASES || join(cacheDir, 'cases') };
  const env = { ...ENV, ...cases, PLAYWRIGHT_JSON_OUTPUT_FILE: report };
  await run(command[0], args, { env, allowFailure: true });
  const found = rowsOf(JSON.parse(readFileSync(report, 'utf8')));
  rmSync(scratch, { recursive: true });
  return found;
}

/** Returns a row for each file of a report, and one for each test that cannot run or fails. @param {{ suites: Suite[] }} report */
export function rowsOf({ suites }) {
  /** @type {Map<string, number>} */
  const passed = new Map();
  /** @type {string[][]} */
  const others = [];
  for (const [file, { title, tests }] of suites.flatMap(specsOf)) {
    const { status = 'skipped', errors = [] } = tests[0]?.results.at(-1) ?? {};
    const name = basename(file, '.test.mjs');
    passed.set(name, (passed.get(name) ?? 0) + Number(status === 'passed'));
    if (status === 'passed' || status === 'skipped') continue;
    const message = errors.map((error) => error.message ?? '').join('\n');
    const cause = CAUSES.find(([pattern]) => pattern.test(message))?.[1];
    others.push([name, title, cause ?? `${FAILED}${message.split('\n')[0]}`]);
  }
  return [...[...passed].map(([name, count]) => [name, '', `${count} passed`]), ...others];
}

/** Returns the results of the browser tests; those of other files than `rows` has stay. @param {string[][]} rows @returns {Found} */
export function withRows(rows) {
  const results = new URL('./results/firefox.json', import.meta.url);
  const earlier = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')).suite : undefined;
  const files = new Set(rows.map(([file]) => file));
  /** @type {string[][]} */
  const kept = (earlier?.rows ?? []).filter((/** @type {string[]} */ [file]) => !files.has(file));
  const all = [...kept, ...rows].sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const failed = rows.filter(([, , result]) => result?.startsWith(FAILED)).length;
  return { columns: ['file', 'test', 'result'], rows: all, failed };
}

/** Runs the parts that are named first, or all, and returns the exit code. @param {string[]} asked */
export async function firefox(asked) {
  const missing = missingFirefox();
  if (missing) throw new Error(`Firefox: ${missing}`);
  const [part, ...words] = asked;
  if (part !== undefined && !PARTS.includes(part))
    throw new Error(`firefox: expected ${PARTS.join(' or ')}, found ${part}`);
  process.chdir(root);
  const browser = await read(findFirefox() ?? '', ['--version']);
  let failures = 0;
  for (const name of part ? [part] : PARTS) {
    const { failed, ...found } = await (name === 'families'
      ? families()
      : withRows(await suite(words)));
    failures += failed;
    written('firefox', PARTS, name, { browser, adapter: 'lavapipe', ...found });
    console.log(`${name}: ${found.rows.length} rows, ${failed} failed`);
  }
  return failures === 0 ? 0 : 1;
}
