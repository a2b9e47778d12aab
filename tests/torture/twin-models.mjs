// The models whose exports are compared between the browser and the native program, with the exports of each.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { makeModels } from './make-models.mjs';

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
export function models(made, short) {
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
export async function merged(binary, made, short) {
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
