// npm run lab -- chats [word …]: compares what tabtune learns from conversations with transformers, in every chat template of trl's wheel. Its results
// are results/chats.json. Words restrict the test to templates whose names contain one of them; then nothing is written. TABTUNE names the program to
// test; by default the debug build is made and used. transformers is installed once, 310 MB below the cache folder.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { python } from './chats/install.mjs';
import { judged, ORDER } from './chats/judge.mjs';
import { written } from './report.mjs';

const DAY = '2024-07-26';
process.chdir(root);
const called = promisify(execFile);
const binary = process.env.TABTUNE ?? (await (await import('./files.mjs')).native());
const peer = await python();
const work = mkdtempSync(join(tmpdir(), 'tabtune-chats-'));
const words = process.argv.slice(2);

/** Returns the digest of a training on one row, or the reason why there is none. */
async function trained({ template, row, length }, folder) {
  mkdirSync(folder, { recursive: true });
  const [data, out] = [join(folder, 'row.jsonl'), join(folder, 'out')];
  writeFileSync(data, `${row}\n`);
  rmSync(out, { recursive: true, force: true });
  const model = join(work, 'models', template);
  const settings = [
    '--device',
    'cpu',
    '--steps',
    '1',
    '--batch-size',
    '1',
    '--seq-len',
    String(length),
    '--learning-rate',
    '1e-6',
    ...dated,
  ];
  try {
    await called(
      binary,
      ['train', '--model', model, '--data', data, '--out', out, '--json', ...settings],
      { maxBuffer: 64 << 20 },
    );
  } catch (/** @type {any} */ error) {
    if (error.signal || !(error.code > 0 && error.code < 100))
      throw new Error(`tabtune broke off: ${error.message}`, { cause: error });
    return { refusal: error.stderr.trim() || error.stdout.trim() };
  }
  return { digest: JSON.parse(readFileSync(join(out, 'checkpoint.json'), 'utf8')).data_digest };
}

let dated = [];
const started = Date.now();
const rows = [];
try {
  // A program that accepts a date uses it; otherwise templates that ask for the date find no clock.
  const { stdout } = await called(binary, ['train', '--help']);
  if (stdout.includes('--chat-date')) dated = ['--chat-date', DAY];
  const { stdout: made } = await called(peer, [
    join(root, 'tests', 'torture', 'chats', 'cases.py'),
    work,
    ...(dated.length > 0 ? ['--date', DAY] : []),
  ]);
  console.log(made.trim());
  const all = JSON.parse(readFileSync(join(work, 'cases.json'), 'utf8'));
  const cases = all.filter(
    ({ template }) => words.length === 0 || words.some((word) => template.includes(word)),
  );
  const worker = async (number) => {
    for (let next = cases.shift(); next; next = cases.shift()) {
      rows.push({
        ...next,
        ...judged(next, await trained(next, join(work, `trained-${number}`)), dated.length > 0),
      });
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, (_, number) => worker(number)));
} finally {
  rmSync(work, { recursive: true, force: true });
}

const faults = rows.filter(({ explained }) => !explained);
const kinds = [...new Set(rows.map(({ kind }) => kind))].sort(
  (a, b) => ORDER.indexOf(a) - ORDER.indexOf(b),
);
const columns = ['what was found', 'cases', 'templates', 'explained'];
const cells = kinds.map((kind) => {
  const of = rows.filter((row) => row.kind === kind);
  return [
    kind,
    String(of.length),
    String(new Set(of.map(({ template }) => template)).size),
    of.every(({ explained }) => explained) ? 'yes' : 'no',
  ];
});
console.log(`\n== ${rows.length} cases (${((Date.now() - started) / 1000).toFixed(0)} s)`);
for (const row of [columns, ...cells]) console.log(row.join(' | '));
const title = `${rows.length} cases in ${new Set(rows.map(({ template }) => template)).size} templates`;
const day =
  dated.length > 0
    ? `The day of \`strftime_now\` is ${DAY}.`
    : 'Templates that ask `strftime_now` for the day get none.';
if (words.length === 0)
  written('chats', ['rows'], 'rows', { title, words: day, columns, rows: cells });
for (const { template, name, kind, detail } of faults)
  console.log(`FAILED ${template}, ${name}: ${kind}${detail ? `: ${detail}` : ''}`);
console.log(`${faults.length} failures`);
process.exitCode = faults.length === 0 ? 0 : 1;
