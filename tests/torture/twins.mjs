// Every writer produces the same bytes in the browser as natively: files, and the receipts that list their checksums.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY, differences } from './arena.mjs';
import { makeModels } from './make-models.mjs';

const FAULT = 'line 44: files have the bytes of the native program';
const GGUF_TYPES = [
  'as-base',
  'f32',
  'f16',
  'bf16',
  'q8_0',
  'q6_k',
  'q5_1',
  'q5_0',
  'q4_k',
  'q4_k_m',
  'q4_1',
  'q4_0',
];
const DTYPES = ['stored', 'f32', 'bf16', 'f16'];
const GOLDEN = join(root, 'tests', 'golden');
const QWEN3_PARTS = [1, 2, 3].map((part) => `qwen3-0000${part}-of-00003.gguf`);

const ggufOf = (types, more = {}) => types.map((type) => ({ format: 'gguf', type, ...more }));
const folders = (dtypes) => dtypes.map((dtype) => ({ dtype }));
const JSONS = ['numbers', 'base64'].map((encoding) => ({ format: 'json', encoding }));
const SHARDED = {
  dtype: 'bf16',
  shardBytes: 100_000,
  manifest: true,
  card: { license: 'mit', baseModel: 'a/b', data: 'some words', text: 'More.' },
};

/** Copies the golden model of these files to a separate folder, since the native program takes all files of a folder. */
function goldenIn(made, name, files) {
  mkdirSync(join(made, name));
  for (const file of files)
    copyFileSync(join(GOLDEN, 'models', file), join(made, name, basename(file)));
}

/** Returns models by the name of their folder, and the exports of each; the short form uses fewer models, and each type once. */
function models(made, short) {
  const types = short ? ['f16', 'q8_0', 'q4_k_m'] : GGUF_TYPES;
  const dtypes = short ? ['f16'] : DTYPES;
  makeModels(made);
  goldenIn(made, 'gguf', ['llama3.gguf']);
  goldenIn(made, 'split', QWEN3_PARTS);
  goldenIn(made, 'tiny', ['qwen2/config.json', 'qwen2/model.safetensors']);
  const others = short ? [] : ['llama-3', 'llama-tied', 'qwen3', 'qwen3-tied'];
  return [
    { name: 'qwen2', ask: [...ggufOf(GGUF_TYPES), ...folders(DTYPES), SHARDED] },
    { name: 'gpt2', ask: [...ggufOf(short ? ['f16'] : types), ...folders(dtypes)] },
    // Rows that the blocks of 256 divide.
    {
      name: 'wide',
      ask: [...ggufOf(short ? ['q5_1', 'q6_k', 'q4_k_m'] : types), ...folders(dtypes)],
    },
    ...others.map((name) => ({ name, ask: [...ggufOf(types), ...folders(dtypes), SHARDED] })),
    {
      name: 'gguf',
      ask: [...JSONS, ...folders(dtypes), ...ggufOf(['as-base'], { base: ['llama3.gguf'] })],
    },
    { name: 'split', ask: [...ggufOf(['as-base'], { base: QWEN3_PARTS }), ...folders(dtypes)] },
    {
      name: 'tiny',
      ask: [
        ...JSONS,
        ...ggufOf(['as-base', 'q8_0'], { base: ['qwen2.gguf'] }),
        ...ggufOf(['as-base'], { base: ['llama3.gguf'] }),
      ],
    },
    {
      name: 'tiny',
      adapter: 'qwen2-patterns',
      ask: [
        ...ggufOf(short ? ['q8_0'] : types),
        ...ggufOf(short ? ['q4_k_m'] : types, { base: ['qwen2.gguf'] }),
        ...folders(short ? ['bf16'] : DTYPES),
        ...JSONS,
      ],
    },
  ];
}

/** Returns bases of every kind with one adapter, and their exports after merging it. */
async function merged(binary, made, short) {
  const run = (...given) => promisify(execFile)(binary, given);
  const [wide, run1] = [join(made, 'wide'), join(made, 'run')];
  const settings = [
    '--steps',
    '2',
    '--batch-size',
    '1',
    '--seq-len',
    '16',
    '--learning-rate',
    '1e-2',
    '--seed',
    '1',
    '--device',
    'cpu',
  ];
  await run(
    'train',
    '--model',
    wide,
    '--lora',
    '--lora-r',
    '4',
    '--lora-targets',
    'all-linear',
    '--data',
    join(root, 'LICENSE'),
    ...settings,
    '--out',
    run1,
  );
  await run('export', '--checkpoint', run1, '--format', 'peft', '--to', join(made, 'factors'));
  const bases = short ? ['q4_k_m'] : ['f32', 'f16', 'bf16', 'q8_0', 'q4_k_m'];
  const outs = [
    ...folders(short ? ['stored', 'f32'] : DTYPES),
    ...ggufOf(short ? ['as-base', 'q4_k_m'] : ['as-base', 'f32', 'f16', 'bf16', 'q8_0', 'q4_k_m']),
  ];
  for (const base of bases) {
    const blocks = base.startsWith('q');
    const to = join(made, `wide-${base}`);
    if (blocks) mkdirSync(to);
    await run(
      'convert',
      '--model',
      wide,
      ...(blocks
        ? ['--format', 'gguf', '--type', base, '--to', join(to, 'model.gguf')]
        : ['--dtype', base, '--to', to]),
    );
  }
  for (const base of bases)
    for (const file of readdirSync(join(made, `wide-${base}`)))
      if (file.includes('receipt')) rmSync(join(made, `wide-${base}`, file));
  return bases.map((base) => ({ name: `wide-${base}`, adapter: 'factors', ask: outs }));
}

/**
 * Options of an export, under the names of both sides.
 * @typedef {{ license?: string, baseModel?: string, data?: string, text?: string }} Card
 * @typedef {{ type?: string, dtype?: string, encoding?: string, shardBytes?: number, manifest?: boolean, base?: string[], card?: Card }} Options
 * @typedef {{ files?: [string, number, string][], refused?: string }} Found
 */

/**
 * Returns the arguments for the native program.
 * @param {{ model?: string, adapter?: string }} subject @param {Options & { format?: string }} options @param {string} to
 */
function args(
  { model, adapter },
  { format = 'safetensors', type, dtype, encoding, shardBytes, manifest, base = [], card = {} },
  to,
) {
  const pairs = {
    type,
    dtype,
    encoding,
    'shard-bytes': shardBytes,
    license: card.license,
    'base-model': card.baseModel,
    'data-note': card.data,
    note: card.text,
    'merge-adapter': adapter,
  };
  const given = Object.entries(pairs).flatMap(([key, value]) =>
    value === undefined ? [] : [`--${key}`, String(value)],
  );
  const files = base.map((name) => join(GOLDEN, 'models', name));
  return [
    'convert',
    '--json',
    '--model',
    model,
    '--to',
    to,
    '--format',
    format,
    '--name',
    'm',
    ...(files.length > 0 ? ['--base', ...files] : []),
    ...(manifest ? ['--manifest'] : []),
    ...given,
  ];
}

/**
 * Returns name, size and SHA-256 of each file that the native program writes; a receipt next to a file gets the name that it has in the browser.
 * @returns {Promise<Found>}
 */
async function natively(binary, to, given) {
  try {
    await promisify(execFile)(binary, given);
  } catch (/** @type {any} */ { stdout, stderr }) {
    return { refused: JSON.parse((stdout || stderr).trim().split('\n').at(-1)).error.code };
  }
  const paths = statSync(to).isDirectory()
    ? readdirSync(to).map((name) => join(to, name))
    : [to, `${to}.receipt.json`];
  const files = paths.map((path) => {
    const bytes = readFileSync(path);
    const name = basename(path).endsWith('.receipt.json') ? 'tabtune.receipt.json' : basename(path);
    return /** @type {[string, number, string]} */ ([
      name,
      bytes.length,
      createHash('sha256').update(bytes).digest('hex'),
    ]);
  });
  return { files };
}

/** @param {Found} found */
const sorted = ({ files, refused }) =>
  files ? files.sort(([a], [b]) => (a < b ? -1 : 1)) : refused;

/** Returns the same for the page. */
const inPage = (page, subject) =>
  page.do(async (_, { name, names, served: adapter, ask }) => {
    const e = await import('/torture/exports.mjs');
    const mergeAdapter =
      adapter && (await e.fetched(adapter, ['adapter_config.json', 'adapter_model.safetensors']));
    const exported = async (model) => {
      const all = [];
      for (const { base, ...options } of ask) {
        const given = base && { base: await e.fetched('/models', base) };
        all.push(
          await e.summed(model, {
            ...options,
            name: 'm',
            card: { ...options.card, name: 'm' },
            ...given,
          }),
        );
      }
      return all;
    };
    return e.withModel(await e.fetched(`/made/${name}`, names), exported, { mergeAdapter });
  }, subject);

/**
 * Compares exports of a run in the browser with those of its checkpoint natively: weights, optimizer, groups. The receipt has the run's own record.
 */
async function trained(arena, binary, tally, out) {
  const ways = [
    { dtype: 'stored', optimizer: true, manifest: true },
    { dtype: 'bf16' },
    { format: 'gguf', type: 'f16' },
    { format: 'gguf', type: 'q8_0' },
  ];
  const { checkpoint, found } = await arena.with((page) =>
    page.do(
      async (s, { setting, ways }) => {
        const e = await import('/torture/exports.mjs');
        await s.create(setting);
        await s.step(2);
        await s.current().save();
        const place = await (
          await navigator.storage.getDirectory()
        ).getDirectoryHandle('trained', { create: true });
        await s.current().checkpoints.exportFolder(place);
        const checkpoint = [];
        const gather = async (handle) => {
          for await (const entry of handle.values()) {
            if (entry.kind === 'directory') await gather(entry);
            else
              checkpoint.push([
                entry.name,
                Array.from(new Uint8Array(await (await entry.getFile()).arrayBuffer()), (byte) =>
                  byte.toString(16).padStart(2, '0'),
                ).join(''),
              ]);
          }
        };
        await gather(place);
        const found = [];
        for (const way of ways)
          found.push(await e.summed(s.current(), { ...way, name: 'm', card: { name: 'm' } }));
        await s.current().dispose();
        return { checkpoint, found };
      },
      { setting: TINY, ways },
    ),
  );
  const folder = mkdtempSync(join(out, 'checkpoint-'));
  for (const [name, hex] of checkpoint) writeFileSync(join(folder, name), Buffer.from(hex, 'hex'));
  /** @param {Found} found */
  const own = ({ files, refused }) =>
    refused ?? sorted({ files: files?.filter(([name]) => !/receipt|README/.test(name)) });
  for (const [index, way] of ways.entries()) {
    const to = join(mkdtempSync(join(out, 'm-')), way.format ? 'm.gguf' : 'm');
    const options = args({}, way, to).slice(4);
    const expected = await natively(binary, to, [
      'export',
      '--json',
      '--checkpoint',
      folder,
      ...(way.optimizer ? ['--optimizer'] : []),
      ...options,
    ]);
    tally.add(FAULT, [
      ...differences(`a run ${JSON.stringify(way)}`, own(found[index]), own(expected)),
      ...(expected.files ? [] : [expected.refused]),
    ]);
  }
}

export async function twins(binary, tally, { short }) {
  const made = mkdtempSync(join(tmpdir(), 'tabtune-twins-'));
  const out = mkdtempSync(join(tmpdir(), 'tabtune-twins-out-'));
  const arena = await Arena.start({
    folders: {
      '/made/': made,
      '/models/': join(GOLDEN, 'models'),
      '/adapters/': join(GOLDEN, 'adapters'),
    },
  });
  try {
    /** @param {{ name: string, adapter?: string }} subject */
    const places = ({ name, adapter }) => {
      const own = adapter === 'factors';
      const factors = adapter && {
        adapter: own ? join(made, adapter) : join(GOLDEN, 'adapters', adapter),
        served: `/${own ? 'made' : 'adapters'}/${adapter}`,
      };
      return { ...factors, model: join(made, name), names: readdirSync(join(made, name)) };
    };
    const listed = models(made, short);
    const all = [...listed, ...(await merged(binary, made, short))].map((each) => ({
      ...each,
      ...places(each),
    }));
    const natives = async (subject) => {
      const found = [];
      for (const options of subject.ask) {
        const to = join(
          mkdtempSync(join(out, 'm-')),
          { gguf: 'm.gguf', json: 'm.state_dict.json' }[options.format] ?? 'm',
        );
        found.push(await natively(binary, to, args(subject, options, to)));
      }
      return found;
    };
    let refused = 0;
    await arena.with(async (page) => {
      for (const subject of all) {
        const [found, expected] = await Promise.all([inPage(page, subject), natives(subject)]);
        for (const [index, options] of subject.ask.entries()) {
          const title = `${subject.name} ${subject.adapter ?? ''} ${JSON.stringify(options)}`;
          tally.add(FAULT, differences(title, sorted(found[index]), sorted(expected[index])));
          if (expected[index].refused) refused += 1;
        }
      }
    });
    await trained(arena, binary, tally, out);
    tally.note(
      FAULT,
      `${all.length} models and a run; ${refused} refused, in both with the same code`,
    );
  } finally {
    await arena.end();
    rmSync(made, { recursive: true });
    rmSync(out, { recursive: true });
  }
}
