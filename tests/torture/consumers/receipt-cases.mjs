// The operations whose receipts are checked, and the files that they need.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

const GOLDEN = join(root, 'tests', 'golden');
const TEXT = join(GOLDEN, 'text.txt');

/** Returns operation → the files that it reads, apart from documents, and its command with the options for its output. */
export function operations(work) {
  const model = (name) => join(work, 'models', name);
  const weights = (name) => join(model(name), 'model.safetensors');
  const convert = (name, to, ...options) => ({
    inputs: [weights(name)],
    to,
    command: ['convert', '--model', model(name), ...options],
  });
  const gguf = (name, type) => convert(name, 'out.gguf', '--format', 'gguf', '--type', type);
  const base = join(work, 'base.gguf');
  const trained = join(work, 'trained', 'checkpoint');
  // A checkpoint identifies its base only by the checksum of its header: without the file the receipt says that its bytes were skipped.
  const exported = (to, ...options) => ({
    inputs: options.includes(base) ? [base] : [],
    to,
    command: ['export', '--checkpoint', trained, ...options],
  });
  const [golden, adapter] = [join(GOLDEN, 'models', 'gpt2'), join(GOLDEN, 'adapters', 'gpt2')];
  // A copy, in which a byte may be changed.
  const copies = { golden: join(work, 'golden'), adapter: join(work, 'adapter') };
  for (const [from, to] of [
    [golden, copies.golden],
    [adapter, copies.adapter],
  ])
    execFileSync('cp', ['-r', from, to]);
  // The same model with its values rounded to BF16.
  const [from, moved, delta] = [
    weights('qwen2'),
    join(work, 'moved', 'model.safetensors'),
    join(work, 'moved.delta.safetensors'),
  ];
  const moving = (verb, model) => ({
    inputs: [model, delta],
    to: 'out.safetensors',
    command: ['delta', verb, '--model', model, '--delta', delta],
  });
  return {
    'convert, folder': convert('llama-3', 'out'),
    'convert, bf16 in shards': convert('qwen2', 'out', '--dtype', 'bf16', '--shard-bytes', '75000'),
    'convert, with manifest': convert('qwen3', 'out', '--manifest', '--shard-bytes', '150000'),
    'convert, GGUF f32': gguf('qwen3', 'f32'),
    'convert, GGUF q8_0': gguf('gpt2', 'q8_0'),
    'convert, GGUF q4_k_m': gguf('llama-3', 'q4_k_m'),
    'convert, patch without a change': {
      inputs: [base],
      to: 'out.gguf',
      command: ['convert', '--model', base, '--base', base, '--format', 'gguf'],
    },
    'convert, JSON': convert('gpt2', 'out.state_dict.json', '--format', 'json'),
    'export, folder with optimizer': exported('out', '--optimizer', '--manifest'),
    'export, patch as-base': exported('out.gguf', '--format', 'gguf', '--base', base),
    'export, new GGUF q8_0': exported('out.gguf', '--format', 'gguf', '--type', 'q8_0'),
    'export, JSON in base64': exported(
      'out.state_dict.json',
      '--format',
      'json',
      '--manifest',
      '--encoding',
      'base64',
    ),
    'delta derive': {
      inputs: [from, moved],
      to: 'delta.safetensors',
      command: ['delta', 'derive', '--base', from, '--target', moved],
    },
    'delta apply': moving('apply', from),
    'delta remove': moving('remove', moved),
    'adapter merge': {
      inputs: [
        join(copies.golden, 'model.safetensors'),
        join(copies.adapter, 'adapter_model.safetensors'),
        join(copies.adapter, 'adapter_config.json'),
      ],
      to: 'out',
      command: ['adapter', 'merge', '--model', copies.golden, '--adapter', copies.adapter],
    },
  };
}

/** Makes a run of three steps that starts from a GGUF file. */
export async function trained(tabtune, base, to) {
  const shape = [
    '--steps',
    '3',
    '--batch-size',
    '1',
    '--seq-len',
    '16',
    '--learning-rate',
    '1e-3',
    '--seed',
    '5',
  ];
  await tabtune.lines(
    'train',
    '--model',
    base,
    '--data',
    TEXT,
    ...shape,
    '--device',
    'cpu',
    '--out',
    to,
  );
}

/** Creates a folder with other values than the model's, and the delta between them. */
export async function moved(tabtune, work) {
  const [rounded, to] = [join(work, 'rounded'), join(work, 'moved')];
  await tabtune.convert(join(work, 'models', 'qwen2'), rounded, '--dtype', 'bf16');
  await tabtune.convert(rounded, to, '--dtype', 'f32');
  const [base, target] = [join(work, 'models', 'qwen2'), to].map((folder) =>
    join(folder, 'model.safetensors'),
  );
  await tabtune.lines(
    'delta',
    'derive',
    '--base',
    base,
    '--target',
    target,
    '--to',
    join(work, 'moved.delta.safetensors'),
  );
}
