// tabtune/files in Node: it answers about data and files as in a browser, reads large files piece by piece, and leaves nothing that runs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { environment, root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';
import { linked } from './tarball.mjs';

const { inPage } = scenarios();
const base64 = (/** @type {string} */ name) =>
  readFileSync(join(root, 'tests/golden', name)).toString('base64');

/** @type {ReturnType<typeof linked>} */
let app;
test.beforeAll(() => {
  app = linked();
});
test.afterAll(() => app?.remove());

/** Runs a program in Node; returns what it prints. @param {string} program @param {string[]} args */
function run(program, ...args) {
  writeFileSync(join(app.folder, 'program.mjs'), program);
  return execFileSync(process.execPath, ['program.mjs', ...args], {
    cwd: app.folder,
    env: environment,
    encoding: 'utf8',
    timeout: 120_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

const CHATS = Array.from({ length: 30 }, (_, row) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: `How many is ${row}?` },
      { role: 'assistant', content: `It is ${row}.` },
    ],
  }),
).join('\n');

/** Asks the same of the package in a page and in Node; returns each answer or error. */
const answers = async (
  /** @type {Pick<import('./scenario.mjs').Helpers, 'tabtune' | 'bytesOf'>} */ { tabtune, bytesOf },
  { gguf, parquet, chats },
) => {
  const whole = bytesOf(gguf);
  const file = (/** @type {BlobPart} */ part, /** @type {string} */ name) => new File([part], name);
  const lines = file(chats, 'chats.jsonl');
  const broken = whole.slice(0, 900);
  const read = (/** @type {number} */ at, /** @type {number} */ count) =>
    whole.slice(at, at + count);
  const asked = {
    chats: () => tabtune.inspectData(lines),
    several: () => tabtune.inspectData([lines, { text: 'Arms and the man.' }]),
    noChats: () => tabtune.inspectData(file(`${chats}\n{"messages": 1}`, 'chats.jsonl')),
    parquet: () => tabtune.inspectData(file(bytesOf(parquet), 'chats.parquet')),
    gguf: () => tabtune.inspectFiles(file(whole, 'a.gguf'), { read: true, plan: true }),
    buffer: () => tabtune.inspectFiles(whole),
    reader: () => tabtune.inspectFiles({ name: 'a.gguf', size: whole.length, read }),
    broken: () => tabtune.inspectFiles(new Blob([broken])),
    opened: () => tabtune.openModel(file(broken, 'a.gguf')),
    tensor: () =>
      tabtune
        .readTensor(whole, 'output_norm.weight')
        .then(({ bytes, ...of }) => ({ ...of, bytes: [...bytes] })),
    learned: async () => {
      const model = await tabtune.openModel(file(whole, 'a.gguf'), { chatTemplate: 'chatml' });
      const found = await tabtune.inspectData(lines, { model });
      // A program ends though this model is not disposed.
      const exported = await model.exportFiles({ format: 'safetensors', dtype: 'f32' });
      return { ...found, exported: exported.map(({ name, blob }) => [name, blob.size]) };
    },
    option: () => tabtune.inspectFiles(whole, /** @type {any} */ ({ red: true })),
    noOptions: () => tabtune.inspectFiles(whole, /** @type {any} */ (5)),
    aborted: () => tabtune.inspectFiles(whole, { signal: AbortSignal.abort() }),
  };
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, ask] of Object.entries(asked))
    found[name] = await ask().catch(({ name, code, message, detail }) => ({
      ...{ name, code, message, detail },
    }));
  return JSON.stringify(found);
};

test('node: inspects data and files as a browser does', async () => {
  const given = { gguf: base64('lora/tiny.gguf'), parquet: base64('chats.parquet'), chats: CHATS };
  const inBrowser = JSON.parse(await inPage(answers, given));
  const program = `import * as tabtune from 'tabtune/files';
const bytesOf = (text) => new Uint8Array(Buffer.from(text, 'base64'));
console.log(await (${answers})({ tabtune, bytesOf }, ${JSON.stringify(given)}));`;
  const inNode = JSON.parse(run(program));
  assert.deepEqual(inNode, inBrowser);
  assert.deepEqual(inNode.chats[0].rows, 30, JSON.stringify(inNode.chats));
  assert.equal(inNode.gguf.trainable.ok, true);
  assert.ok(inNode.broken.refusals.length > 0);
  assert.equal(inNode.opened.code, 'BAD_MODEL_FILE');
  // A run without a rate keeps a tenth of the rows for evaluation.
  assert.equal(inNode.learned.report.examples, 27);
  assert.ok(inNode.learned.exported.length > 2, JSON.stringify(inNode.learned.exported));
});

test('node: reads of a large file what is needed, and of a changed one nothing', () => {
  const large = join(app.folder, 'large.gguf');
  copyFileSync(join(root, 'tests/golden/lora/tiny.gguf'), large);
  truncateSync(large, 3e9);
  const program = `import { openAsBlob, appendFileSync } from 'node:fs';
import { inspectFiles } from 'tabtune/files';
const blob = await openAsBlob('large.gguf');
const { files } = await inspectFiles(new File([blob], 'large.gguf'));
const used = process.resourceUsage().maxRSS >> 10;
appendFileSync('large.gguf', 'more');
const failed = await inspectFiles(blob).catch(({ code, detail }) => [code, detail.code]);
console.log(JSON.stringify({ files, used, failed }));`;
  const { files, used, failed } = JSON.parse(run(program));
  assert.equal(files[0].format, 'gguf');
  assert.ok(used < 1000, `${used} MiB`);
  assert.deepEqual(failed, ['BAD_MODEL_FILE', 'source.read']);
});
