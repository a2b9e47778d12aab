/**
 * Messages about failures that TypeScript finds, in `tests/golden/messages-page.txt`, and that it renders the core's values as Rust does.
 * `MESSAGES=update npx vitest run --config web/vitest.config.ts messages` writes the golden file.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { toData } from '../src/page/data-inputs.js';
import { refusedWorker } from '../src/page/addresses.js';
import { toSource, toSources } from '../src/page/inputs.js';
import { proposals } from '../src/page/proposals.js';
import { workerOptions } from '../src/page/spawn.js';
import { aborted, fault, finding, protocolError, TabtuneError } from '../src/protocol/errors.js';
import { CODES } from '../src/protocol/generated/codes.js';
import { PAGE_CODES } from '../src/protocol/generated/page-codes.js';
import { CORE_SENTENCES, WORKER_CODES } from '../src/protocol/generated/worker-codes.js';
import { addSentences, spoken } from '../src/protocol/sentence.js';
import { checkWhole } from '../src/protocol/whole.js';
import { unevaluated } from '../src/worker/data.js';
import { blobSource } from '../src/worker/sources.js';
import { checked } from '../src/worker/storage/chunks.js';
import { readContainer } from '../src/worker/storage/container.js';
import {
  absent,
  blocked,
  broken,
  closed,
  corrupt,
  failed,
  noRoom,
  tooNew,
  vanished,
} from '../src/worker/storage/faults.js';
import { readFolder } from '../src/worker/storage/folder.js';
import { readManifest, readRun } from '../src/worker/storage/manifest.js';

const golden = new URL('../../tests/golden/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, golden), 'utf8');

const front = (head: string, magic = 'TABTUNE1', length = head.length): Blob => {
  const size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(length), true);
  return new Blob([magic, size, head]);
};
const chunk = { index: 2, bytes: 3, sha256: '0'.repeat(64) };
const [NAME, PAGE] = ['hf:owner/name@main', 'https://huggingface.co/owner/name'];
/** Settings of a run that needs too much memory. */
const SETTINGS = {
  batch_size: 8,
  seq_len: 256,
  gradient_accumulation_steps: 1,
  gradient_release: false,
  gradient_checkpointing: false,
  precision: 'f32',
};

/** Calls that fail as those of a caller do. */
const CALLS: readonly (() => unknown)[] = [
  () => aborted('the save'),
  () => checked(new ArrayBuffer(3), chunk, 'chunk 2 of run r, generation 1'),
  () => checked(new ArrayBuffer(2), chunk, 'chunk 2 of run r, generation 1'),
  () => readContainer(front('{}', 'TABTUNE2')),
  () => readContainer(front('{}', 'TABTUNE1', 1e6)),
  () => readFolder([{ name: 'notes.txt', blob: new Blob() }]),
  () => readManifest({ format: 1 }, 'r', 1),
  () => readRun({}, 'r'),
  () => absent('r'),
  () => tooNew(2, 1),
  () => toData(new File([], 'empty.txt'), undefined),
  () =>
    unevaluated(
      { validation: [blobSource('b.txt', new Blob(['b']))] } as unknown as Parameters<
        typeof unevaluated
      >[0],
      0,
    )[0],
  () => workerOptions({ wasm: 1 } as unknown as Parameters<typeof workerOptions>[0]),
  () => protocolError('unknown request model.fly'),
  () => finding('run.memory', { hint: proposals(SETTINGS) }),
  () => toSource(new Response('gone', { status: 404 }), 'model', 'model.safetensors'),
  () => toSources([new File([], 'config.json'), new File([], 'config.json')], 'files'),
  () => blobSource('corpus.txt', new Blob([], { type: 'text/html' })).warning,
  () => blobSource('model.gguf', new Blob(['ab']).slice(0, 1)).read(0, 4),
  () => checkWhole('corpus.txt', 2 ** 40),
  () => blocked(),
  () => closed(),
  () => failed('the database was closed'),
  () => noRoom(50_000_000, 1_000_000),
  () => broken('model.safetensors', 'expected 4 bytes at 0 of 8, found its end'),
  () => vanished('r', 'chunk 2'),
  () => refusedWorker(new Error('SecurityError')),
  () => refusedWorker(new DOMException('it cannot be accessed', 'SecurityError')),
];

/** Values that no test can raise: another browser, a GPU that goes away, a server, a second tab. */
const CONSTRUCTED: readonly (() => unknown)[] = [
  () => fault('browser.insecure'),
  () => fault('browser.worker'),
  () => fault('browser.origin'),
  () => fault('core.build', { expected: '3f9a51c07d2e', found: '90b1c2d4e8f0' }),
  () => fault('worker.taken'),
  () => corrupt('chunk 2 of run r, generation 1 is missing', 'checkpoint.chunk.missing'),
  () => corrupt('chunk 2 of 0 bytes', 'checkpoint.container.chunk'),
  () => corrupt('expected 80 bytes, found 79', 'checkpoint.container.length'),
  () => corrupt('a file name that is a path, or a duplicate', 'checkpoint.container.name'),
  () => finding('checkpoint.environment', { subject: 'apple m3', expected: 'nvidia ada' }),
  () => corrupt('config.json: expected 20 bytes, found 19', 'checkpoint.file.length'),
  () => corrupt({ subject: 'r' }, 'checkpoint.head'),
  () => fault('core.panic', { found: 'unreachable' }),
  () => fault('data.missing', {}, { path: 'data' }),
  () =>
    finding('data.not-kept', {
      found: fault('source.read', { subject: 'a.txt', found: 'it has changed' }).message,
    }),
  () => fault('data.parquet', { artifact: 'rows.parquet', found: 'the footer is missing' }),
  () => fault('device.feature', { subject: 'timestamp-query', found: 'time kernels' }),
  () => fault('device.lost', { found: 'the driver was reset' }),
  () =>
    fault('device.no-adapter', {
      found: 'WebGPU did not answer within 10 seconds, so its process may hang',
      hint: 'restart the browser',
    }),
  () => fault('device.out-of-memory'),
  () => fault('device.unavailable'),
  () => fault('device.uncaptured', { found: 'Buffer size exceeds the limit' }),
  () => fault('export.stream', { subject: 'model.safetensors', expected: 1000, found: 512 }),
  () => fault('export.zip-size', { found: 5e9 }),
  () => fault('loop.running'),
  () => fault('model.taken'),
  () =>
    finding('run.evaluation', { found: 'the loss is NaN; expected a finite mean over 40 tokens.' }),
  () => finding('run.overfitting', { expected: '4.3902', found: '4.5114' }),
  () => fault('run.locked', { subject: 'r' }),
  () => finding('run.private'),
  () =>
    finding('run.recovered', {
      subject: 12,
      expected: 10,
      found: 'the GPU was lost: the driver was reset.',
    }),
  () =>
    finding('run.sample', {
      found: 'the text cannot be turned into tokens: the vocabulary lacks the character "I".',
    }),
  () => finding('run.unlocked'),
  () => finding('run.unprotected'),
  () => fault('session.busy', { found: 'another save of this run' }),
  () => fault('sink.write', { found: 'the disk is full' }),
  () => fault('source.changed', { subject: 'https://example.org/model.gguf' }),
  () =>
    fault('source.range', {
      subject: 'https://example.org/model.gguf',
      expected: 'bytes 0 to 64',
      found: 'HTTP 200',
    }),
  () =>
    fault('source.truncated', {
      subject: 'the download of https://example.org/a.txt',
      expected: '20 bytes',
      found: '5 (the connection was lost)',
    }),
  () => fault('data.room', { expected: 4_000_000_000, found: 1_000_000 }),
  () => finding('run.storage', { found: 'access to storage is denied for this document' }),
  () =>
    finding('storage.silent', { subject: 'how much room it has', found: 'a save may find none' }),
  () => finding('tokenizer.text', { found: 'the vocabulary lacks the character "I"' }),
  () => fault('wasm.load', { found: 'HTTP 404' }),
  () =>
    fault('download.room', {
      subject: 'https://example.org/m.gguf',
      expected: 4_000_000_000,
      found: 1_000_000,
    }),
  () =>
    finding('download.unkept', {
      subject: 'https://example.org/m.gguf',
      found: 'this browser has no files for it',
    }),
  ...['hub.gated', 'hub.unknown'].map(
    (code) => () => fault(code as 'hub.gated', { subject: NAME, expected: PAGE }),
  ),
  () => fault('hub.missing', { subject: NAME, expected: PAGE, found: 'there is no such revision' }),
  () =>
    fault('hub.files', {
      subject: NAME,
      expected: 'model.safetensors and no GGUF file',
      found: 'pytorch_model.bin (99 bytes)',
    }),
  () => finding('hub.left', { subject: NAME, found: 'data/test.jsonl' }),
  () => finding('hub.offline', { subject: NAME, found: '0'.repeat(40) }),
  () =>
    fault('source.integrity', {
      subject: 'https://example.org/m.gguf',
      expected: '0'.repeat(64),
      found: '1'.repeat(64),
    }),
  () =>
    fault('worker.silent', {
      found: 'within 30 seconds',
      hint: 'check that its script imports tabtune/worker and is served',
    }),
];

interface Shown {
  code: string;
  message: string;
}

/** Returns the failure or the warning of a call. */
async function shown(call: () => unknown): Promise<Shown> {
  const made = await (async () => call())().catch((thrown: unknown) => thrown);
  if (made instanceof TabtuneError)
    return { code: made.detail.code ?? made.code, message: made.message };
  return made as Shown;
}

describe('messages', () => {
  it('of_every_code_of_typescript_are_sentences', async () => {
    const [called, constructed] = [
      await Promise.all(CALLS.map(shown)),
      await Promise.all(CONSTRUCTED.map(shown)),
    ];
    const codes = [...called, ...constructed].map(({ code }) => code);
    expect(constructed.filter(({ code }) => called.some((one) => one.code === code))).toEqual([]);
    // The core raises this one too, and gives its message.
    expect(
      Object.keys({ ...CODES, ...PAGE_CODES, ...WORKER_CODES }).filter(
        (code) => !codes.includes(code) && code !== 'model.context',
      ),
    ).toEqual([]);
    const lines = [...called, ...constructed]
      .map(({ code, message }) => `${message} [${code}]`)
      .sort();
    for (const line of lines) {
      expect(line).not.toMatch(/[\uFDD0-\uFDD2]|\{[?a-z]+\}| {2}| \? |\.\.(?!\.)/);
      expect(line.match(/\[[a-z]+\.[a-z.-]+\]/g)).toHaveLength(1);
      expect(line).toMatch(/[.!…] \[[a-z.-]+\]$/);
    }
    const text = `${lines.join('\n')}\n`;
    if (process.env['MESSAGES'] === 'update')
      writeFileSync(new URL('messages-page.txt', golden), text);
    expect(read('messages-page.txt')).toBe(text);
  });

  it('of_the_core_are_those_of_the_terminal', () => {
    // Without the names of settings, which have another case here.
    addSentences(CORE_SENTENCES, '');
    const examples = JSON.parse(read('messages.json')) as Record<string, string>;
    const lines = read('messages.txt').split('\n');
    expect(Object.keys(examples).length).toBeGreaterThan(250);
    for (const [code, encoded] of Object.entries(examples))
      expect(lines).toContain(`${spoken(encoded)} [${code}]`);
  });

  it('name_settings_as_typescript_has_them', () => {
    addSentences(CORE_SENTENCES, 'batch_size on_bad_row');
    const encoded = (code: string, ...values: string[]): string =>
      `\uFDD0${[code, ...values].join('\uFDD1')}\uFDD2`;
    expect(spoken(encoded('config.invalid', '', 'steps', 'below batch_size', '3'))).toBe(
      'steps is 3, but must be below batchSize.',
    );
    const first = encoded('data.row', 'a.jsonl', 'line 1', '', 'no text');
    expect(spoken(encoded('data.row.skipped', '', '', '', first))).toBe(
      'rows that cannot be used were left out, as onBadRow says. The first: a.jsonl: line 1: the row cannot be used: no text.',
    );
  });
});
