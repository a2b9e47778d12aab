// Receipts: their checksums compared with those of sha256sum, equal ones for equal runs, and one byte changed in a thousand places.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { draws, makeModels } from '../make-models.mjs';
import { moved, operations, trained } from './receipt-cases.mjs';

const FLIPS = 1000;
const SEED = 10;
const RECEIPT = /receipt\.json$/;

const sha256sum = (path) =>
  execFileSync('sha256sum', ['--', path], { encoding: 'utf8' }).split(' ')[0].replace(/^\\/, '');

/** Returns the files of a folder, and the receipt among them. */
function filesOf(folder) {
  const files = readdirSync(folder).map((name) => join(folder, name));
  return {
    files: files.filter((path) => !RECEIPT.test(path)),
    receipt: files.find((path) => RECEIPT.test(path)),
  };
}

/** Returns the files of the receipt that do not match sha256sum, in words; `paths` are the available files. */
function otherSums(claims, paths, sums) {
  return claims.flatMap(({ name, bytes, sha256 }) => {
    const named = paths.filter((path) => basename(path) === basename(name));
    const equal = named.some((path) => sums.get(path) === sha256 && statSync(path).size === bytes);
    return equal
      ? []
      : [
          `${name} has the sum ${sha256}, sha256sum says ${named.map((path) => sums.get(path)).join(', ') || 'nothing of it'}`,
        ];
  });
}

/** Changes one byte of a file while `work` runs. */
async function flipped(path, at, change, work) {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  try {
    readSync(file, byte, 0, 1, at);
    writeSync(file, Buffer.of(byte[0] ^ change), 0, 1, at);
    return await work();
  } finally {
    writeSync(file, byte, 0, 1, at);
    closeSync(file);
  }
}

/** Returns the result of `verify`; a receipt or a file that cannot be read is refused too. */
async function verified(tabtune, paths) {
  try {
    const [answer] = await tabtune.lines('verify', ...paths);
    return answer.ok;
  } catch {
    return false;
  }
}

/**
 * An operation, and what is found of its receipt.
 * @typedef {{ name: string, inputs: string[], to: string, command: string[], flips: number, refused: number, equal: boolean }} Operation
 * @typedef {Operation & { paths: string[], files: string[], targets: string[], sums: number, wrong: number }} Case
 */

export async function receipts({ tabtune, work, fail }) {
  makeModels(join(work, 'models'));
  const runs = ['trained', 'trained-again'].map((name) => join(work, name, 'checkpoint'));
  const base = join(work, 'base.gguf');
  await tabtune.convert(
    join(work, 'models', 'llama-tied'),
    base,
    '--format',
    'gguf',
    '--type',
    'q4_0',
  );
  for (const run of runs) await trained(tabtune, base, run);
  await moved(tabtune, work);
  const all = Object.entries(operations(work)).map(
    ([name, operation]) => /** @type {Case} */ ({ name, ...operation, flips: 0, refused: 0 }),
  );
  for (const [at, each] of all.entries()) {
    const made = [];
    for (const time of ['once', 'again']) {
      // A folder's name is the title of its card.
      const folder = join(work, `${at}-${time}`, 'model');
      execFileSync('mkdir', ['-p', folder]);
      const command =
        time === 'again'
          ? each.command.map((word) => (word === runs[0] ? runs[1] : word))
          : each.command;
      const to = each.to === 'out' ? folder : join(folder, each.to);
      const [verb, ...options] = command;
      await tabtune.lines(verb, ...options, '--to', to);
      made.push({ folder, ...filesOf(folder) });
    }
    each.paths = [made[0].folder, ...each.inputs];
    const [receipt, again] = made.map((one) =>
      JSON.parse(readFileSync(String(one.receipt), 'utf8')),
    );
    each.equal = receipt.receipt_digest === again.receipt_digest;
    if (!/^[0-9a-f]{64}$/.test(receipt.receipt_digest) || !each.equal)
      fail(
        `receipts, ${each.name}: receipt_digest ${receipt.receipt_digest} and ${again.receipt_digest}`,
      );
    each.files = [...made[0].files, ...each.inputs];
    const sums = new Map(each.files.map((path) => [path, sha256sum(path)]));
    const skipped = receipt.checks.some(
      ({ name, result }) => name === 'base' && result === 'skipped',
    );
    const claims = [...receipt.inputs, ...(receipt.base?.files ?? [])].filter(
      ({ sha256 }) => sha256 !== undefined || !skipped,
    );
    const wrong = [
      ...otherSums(receipt.outputs, made[0].files, sums),
      ...otherSums(claims, each.inputs, sums),
    ];
    const listed = receipt.outputs.map(({ name }) => name).sort();
    const there = made[0].files.map((path) => basename(path)).sort();
    if (String(listed) !== String(there)) wrong.push(`lists ${listed}, there are ${there}`);
    // A file is changed only if the receipt lists it.
    const known = new Set([...receipt.outputs, ...receipt.inputs].map(({ sha256 }) => sha256));
    each.targets = each.files.filter(
      (path) => known.has(sums.get(path)) && statSync(path).size > 0,
    );
    for (const path of each.inputs)
      if (!each.targets.includes(path)) wrong.push(`does not list the input ${basename(path)}`);
    for (const words of wrong) fail(`receipts, ${each.name}: ${words}`);
    each.sums =
      receipt.outputs.length +
      receipt.inputs.filter(({ sha256 }) => sha256 !== undefined || !skipped).length;
    each.wrong = wrong.length;
    if (!(await verified(tabtune, each.paths)))
      fail(`receipts, ${each.name}: verify does not confirm it`);
  }
  const draw = draws(SEED);
  const below = (count) => Math.floor((draw() / 2 ** 32) * count);
  for (let flip = 0; flip < FLIPS; flip++) {
    const each = all[below(all.length)];
    const path = each.targets[below(each.targets.length)];
    const [at, change] = [below(statSync(path).size), 1 + below(255)];
    each.flips++;
    if (await flipped(path, at, change, () => verified(tabtune, each.paths)))
      fail(`receipts, ${each.name}: byte ${at} of ${path} ^ ${change} is not seen`);
    else each.refused++;
  }
  for (const each of all)
    if (!(await verified(tabtune, each.paths)))
      fail(`receipts, ${each.name}: not confirmed at the end`);
  const total = (of) => String(all.reduce((sum, each) => sum + each[of], 0));
  const rows = all.map((each) => [
    each.name,
    `${each.sums - each.wrong} of ${each.sums}`,
    each.equal ? 'equal' : 'OTHER',
    `${each.flips}`,
    `${each.refused}`,
  ]);
  return {
    title: 'receipts and what they are of',
    words: `Each operation twice, in two folders; those of a checkpoint from two runs. The files of the receipt whose SHA-256 is that of \`sha256sum\`, inputs and outputs, which
are all files that were written (a checkpoint alone knows no sum of all of its base, and its receipt says so); whether both receipts have one
\`receipt_digest\`; then ${FLIPS} random changes of one byte in an input or an output, after each of which \`tabtune verify\` has to refuse, as before and after them all it has to confirm.`,
    columns: [
      'operation',
      'sums as of sha256sum',
      'receipts of two runs',
      'bytes changed',
      'refused',
    ],
    rows: [...rows, ['all', '', '', total('flips'), total('refused')]],
  };
}
