// npm run lab -- torture firefox [families|suite [word …]]: the system's Firefox on lavapipe; results are results/firefox.json.
//   families   a third of the reference cases of ../shared/assets/families-public.json; FAMILIES names the folder of their models
//   suite      the browser tests, or those of the files that words name, with the cause of each that cannot run there
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { findFirefox, line, missingFirefox, read, root, run } from '../../web/toolchain.mjs';
import { written } from './report.mjs';

const PARTS = ['families', 'suite'];
const ENV = { TABTUNE_BROWSER: 'firefox' };
/** Causes for which a test cannot run in Firefox, by words of its error. @type {[RegExp, string][]} */
const CAUSES = [
  [/CDP session is only available/, "uses Chromium's DevTools protocol"],
  [/grantPermissions/, 'grants a permission that WebDriver BiDi does not know'],
  [/The operation is insecure/, 'clears the storage of a page before it has an address'],
  [/measureUserAgentSpecificMemory/, "reads Chromium's measurement of memory"],
];

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

/** Runs the browser tests: a row for each file, and one for each test that cannot run or fails. @param {string[]} words @returns {Promise<Found>} */
async function suite(words) {
  const scratch = mkdtempSync(join(tmpdir(), 'tabtune-firefox-'));
  const report = join(scratch, 'report.json');
  const chosen = line`${words.map((word) => `browser/${word}`)} --project=browser --workers=1`;
  const options = line`--reporter list,json --output ${join(scratch, 'output')}`;
  const command = line`playwright test --config tests --timeout 180000`;
  const args = [...command[1], ...[chosen, options].flatMap(([first, more]) => [first, ...more])];
  const env = { ...ENV, PLAYWRIGHT_JSON_OUTPUT_FILE: report };
  await run(command[0], args, { env, allowFailure: true });
  /** @type {{ suites: Suite[] }} */
  const { suites } = JSON.parse(readFileSync(report, 'utf8'));
  rmSync(scratch, { recursive: true });
  /** @type {Map<string, number>} */
  const passed = new Map();
  /** @type {unknown[][]} */
  const others = [];
  let failed = 0;
  for (const [file, { title, tests }] of suites.flatMap(specsOf)) {
    const { status = 'skipped', errors = [] } = tests[0]?.results.at(-1) ?? {};
    const name = basename(file, '.test.mjs');
    passed.set(name, (passed.get(name) ?? 0) + Number(status === 'passed'));
    if (status === 'passed' || status === 'skipped') continue;
    const message = errors.map((error) => error.message ?? '').join('\n');
    const cause = CAUSES.find(([pattern]) => pattern.test(message))?.[1];
    if (!cause) failed++;
    others.push([`${name}: ${title}`, cause ?? `FAILED: ${message.split('\n')[0]}`]);
  }
  const rows = [...[...passed].map(([name, count]) => [name, `${count} passed`]), ...others];
  return { columns: ['file or test', 'result'], rows, failed };
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
    const { failed, ...found } = await (name === 'families' ? families() : suite(words));
    failures += failed;
    if (words.length === 0)
      written('firefox', PARTS, name, { browser, adapter: 'lavapipe', ...found });
    console.log(`${name}: ${found.rows.length} rows, ${failed} failed`);
  }
  return failures === 0 ? 0 : 1;
}
