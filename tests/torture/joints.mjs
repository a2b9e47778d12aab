// npm run lab -- joints [tokenizer …]: compares the ids of prompts with their completions with Hugging Face's tokenizers, in real vocabularies. Its results
// are results/joints.json. Words restrict the test to the tokenizers of these names; then nothing is written. TABTUNE names the program to test.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { python } from './chats/install.mjs';
import { TOKENIZERS, installed } from './joints/install.mjs';
import { written } from './report.mjs';

process.chdir(root);
const called = promisify(execFile);
const binary = process.env.TABTUNE ?? (await (await import('./files.mjs')).native());
const peer = await python();
const words = process.argv.slice(2);
const names = Object.keys(TOKENIZERS).filter((name) => words.length === 0 || words.includes(name));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Returns the ids of each row, and which of them are learned. */
async function shown(folder, count) {
  const settings = [
    '--model',
    join(folder, 'model'),
    '--json',
    '--show',
    String(count),
    '--seq-len',
    '1024',
    '--on-bad-row',
    'skip',
  ];
  const { stdout } = await called(binary, ['data', join(folder, 'rows.jsonl'), ...settings], {
    maxBuffer: 256 << 20,
  });
  const tokens = (segments) =>
    segments.flatMap(({ tokens, learned }) => tokens.map(({ id }) => ({ id, learned })));
  return new Map(
    JSON.parse(stdout).preview.map(({ row, segments }) => [row.line, tokens(segments)]),
  );
}

/** Returns the faults of one row. */
function faultsOf(truth, { begin, end }, found) {
  if (truth === null || found === undefined)
    return truth === null && found === undefined
      ? []
      : [`refused by ${truth === null ? 'tokenizers' : 'tabtune'} alone`];
  const ids = [...begin, ...truth.ids, end];
  const learned = [...begin.map(() => false), ...truth.learned, true].map(
    (counts, at) => counts && at > 0,
  );
  const wrong = [];
  if (
    !same(
      found.map(({ id }) => id),
      ids,
    )
  )
    wrong.push('other ids');
  else if (
    !same(
      found.map((token) => token.learned),
      learned,
    )
  )
    wrong.push('other tokens are learned');
  return wrong;
}

const failures = [];
const rows = [];
const started = Date.now();
for (const name of names) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-joints-'));
  try {
    await called(peer, [
      join(root, 'tests', 'torture', 'joints', 'pairs.py'),
      name,
      await installed(name),
      join(folder, 'made'),
    ]);
    const truth = JSON.parse(readFileSync(join(folder, 'made', 'truth.json'), 'utf8'));
    const lines = readFileSync(join(folder, 'made', 'rows.jsonl'), 'utf8').split('\n');
    const found = await shown(join(folder, 'made'), truth.rows.length);
    const wrong = truth.rows.map((row, at) => faultsOf(row, truth, found.get(at + 1)));
    wrong.forEach((faults, at) =>
      faults.forEach((fault) => failures.push(`${name}, ${lines[at]}: ${fault}`)),
    );
    const count = (test) => String(truth.rows.filter(test).length);
    const { npm, pip } = TOKENIZERS[name];
    const kind =
      truth.kind === 'BPE'
        ? truth.byte_level
          ? 'byte-level BPE'
          : "SentencePiece's BPE"
        : truth.kind;
    const equal = String(
      truth.rows.filter((row, at) => row !== null && wrong[at].length === 0).length,
    );
    rows.push([
      name,
      npm ?? pip,
      kind,
      String(truth.size),
      String(wrong.length),
      equal,
      count((row) => row?.crosses),
      count((row) => row === null),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
const columns = [
  'tokenizer',
  'package',
  'kind',
  'tokens',
  'pairs',
  'equal',
  'a token crosses the joint',
  'both refuse',
];
console.log(`== ${((Date.now() - started) / 1000).toFixed(0)} s`);
for (const row of [columns, ...rows]) console.log(row.join(' | '));
const title = `${rows.length} tokenizers, ${rows.reduce((sum, row) => sum + Number(row[4]), 0)} pairs`;
if (words.length === 0) written('joints', ['pairs'], 'pairs', { title, columns, rows });
for (const failure of failures.slice(0, 40)) console.log(`FAILED ${failure}`);
console.log(`${failures.length} failures`);
process.exitCode = failures.length === 0 ? 0 : 1;
