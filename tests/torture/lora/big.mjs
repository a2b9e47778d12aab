// A packed model of 1.54 billion weights, with Qwen2.5-1.5B's shapes: opened with an adapter, and a step, natively and in Chromium.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Arena } from '../arena.mjs';
import { beginning, ofF32, ofI32s, ofText, ofTexts, ofU32 } from '../gguf.mjs';
import { padded } from '../in-browser/gguf.mjs';
import { WASM, inTab, mb } from './tab.mjs';

const [VOCABULARY, WIDTH, MLP, LAYERS, HEADS, KV_HEADS, HEAD] = [
  151_936, 1536, 8960, 28, 12, 2, 128,
];
const TEXT = 'It is a truth universally acknowledged. '.repeat(40);
const SHAPE = { r: 16, alpha: 32, seqLen: 16 };
const MIB = 2 ** 20;
/** Bytes of the process in addition to those of its tensors, and the share by which bytes in use may exceed the plan. */
const [HOST, ABOVE] = [200 * MIB, 0.1];
/** Maximum duration of a step in the browser. */
const PATIENCE_MINS = 15;

/**
 * ggml's number of a type, bytes of a block of 256, and halves of it that give weights a spread of 0.06: the scale 2.3e-4 with a minimum of 1.7e-3;
 * the scale 4.4e-5.
 */
const TYPES = { q4_k: [12, 144, { 0: 0x0b89, 2: 0x1714 }], q6_k: [14, 210, { 208: 0x02e2 }] };
const PIECE_BLOCKS = 8192;

/** Returns blocks of random bits with those halves. @param {(number | object)[]} type */
function blocks([kind, size, halves]) {
  const bytes = createHash('shake256', { outputLength: PIECE_BLOCKS * size })
    .update(`big ${kind}`)
    .digest();
  for (let at = 0; at < bytes.length; at += size)
    for (const [place, half] of Object.entries(halves))
      bytes.writeUInt16LE(half, at + Number(place));
  return bytes;
}

/**
 * Writes the model with a table of this type: a tensor repeats one piece of blocks. Its tokens are those of bytes, and others that no text contains.
 */
function made(path, table) {
  const metadata = new Map([
    ['general.architecture', ofText('llama')],
    ['tokenizer.ggml.model', ofText('gpt2')],
    ['tokenizer.ggml.pre', ofText('gpt-2')],
  ]);
  const numbers = {
    block_count: LAYERS,
    context_length: 2048,
    embedding_length: WIDTH,
    feed_forward_length: MLP,
    'attention.head_count': HEADS,
    'attention.head_count_kv': KV_HEADS,
    vocab_size: VOCABULARY,
  };
  for (const [key, value] of Object.entries(numbers)) metadata.set(`llama.${key}`, ofU32(value));
  metadata.set('llama.attention.layer_norm_rms_epsilon', ofF32(1e-5));
  // Every byte is its own character in this text, except for the space.
  const tokens = Array.from({ length: VOCABULARY }, (_, id) =>
    id === 32 ? 'Ġ' : id > 32 && id < 127 ? String.fromCharCode(id) : `<${id}>`,
  );
  metadata.set('tokenizer.ggml.tokens', ofTexts(tokens)).set('tokenizer.ggml.merges', ofTexts([]));
  metadata.set('tokenizer.ggml.token_type', ofI32s(tokens.map(() => 1)));

  const matrix = (name, type, rows, columns) => ({
    name: `${name}.weight`,
    kind: TYPES[type][0],
    dims: [columns, rows],
    length: (rows * columns * TYPES[type][1]) / 256,
    type,
  });
  const norm = (name) => ({ name: `${name}.weight`, kind: 0, dims: [WIDTH], length: 4 * WIDTH });
  const layer = (at) => {
    const of = (part, ...rest) => matrix(`blk.${at}.${part}`, ...rest);
    const attention = [
      of('attn_q', 'q4_k', HEADS * HEAD, WIDTH),
      of('attn_k', 'q4_k', KV_HEADS * HEAD, WIDTH),
      of('attn_v', 'q6_k', KV_HEADS * HEAD, WIDTH),
      of('attn_output', 'q4_k', WIDTH, HEADS * HEAD),
    ];
    const mlp = [
      of('ffn_gate', 'q4_k', MLP, WIDTH),
      of('ffn_up', 'q4_k', MLP, WIDTH),
      of('ffn_down', 'q4_k', WIDTH, MLP),
    ];
    return [norm(`blk.${at}.attn_norm`), ...attention, norm(`blk.${at}.ffn_norm`), ...mlp];
  };
  const tensors = [
    matrix('token_embd', table, VOCABULARY, WIDTH),
    ...Array.from({ length: LAYERS }, (_, at) => layer(at)).flat(),
    norm('output_norm'),
  ];
  const pieces = { q4_k: blocks(TYPES.q4_k), q6_k: blocks(TYPES.q6_k) };
  const ones = Buffer.from(new Float32Array(WIDTH).fill(1).buffer);
  const file = openSync(path, 'w');
  writeSync(file, beginning(metadata, tensors));
  for (const { type, length } of tensors) {
    const piece = pieces[type] ?? ones;
    for (let left = length; left > 0; left -= piece.length)
      writeSync(file, piece, 0, Math.min(left, piece.length));
    writeSync(file, Buffer.alloc(padded(length) - length));
  }
  closeSync(file);
  return path;
}

/** Returns the lines of a command, and the peak memory of its process in bytes. */
function watched(binary, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, errors] = /** @type {Buffer[][]} */ ([[], []]);
    let most = 0;
    const look = setInterval(() => {
      try {
        most =
          1024 *
          Number(
            /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ??
              most / 1024,
          );
      } catch {
        // It has ended.
      }
    }, 20);
    child.stdout.on('data', (bytes) => out.push(bytes));
    child.stderr.on('data', (bytes) => errors.push(bytes));
    child.on('close', (code) => {
      clearInterval(look);
      const lines = Buffer.concat(out).toString();
      const found = lines
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      const refused = found.find(({ error }) => error)?.error;
      if (code !== 0 && !refused)
        reject(new Error(`${args.join(' ')}: ${lines}${Buffer.concat(errors)}`));
      else resolve({ most, refused, lines: found });
    });
  });
}

/** Opens the model on the device `cpu`, where the process has no driver memory; makes two steps on that of Vulkan. */
async function natively(tabtune, model, data, fail) {
  const { r, alpha, seqLen } = SHAPE;
  const lora = [
    '--lora',
    '--lora-r',
    r,
    '--lora-alpha',
    alpha,
    '--lora-targets',
    'all-linear',
    '--batch-size',
    1,
    '--seq-len',
    seqLen,
  ].map(String);
  const [{ needBytes: planned, parts }] = await tabtune.lines(
    'estimate',
    '--model',
    model,
    ...lora,
  );
  const run = (...more) =>
    watched(tabtune.binary, [
      'train',
      '--json',
      '--model',
      model,
      '--data',
      data,
      ...lora,
      ...more,
    ]);
  const started = Date.now();
  const opened = await run('--device', 'cpu', '--steps', '1', '--stop-at', '0');
  const open = (Date.now() - started) / 1000;
  const host = opened.most - parts.base - parts.adapter;
  if (host > HOST) fail(`natively: ${mb(host)} MB above the tensors when the model is open`);
  const start = ['natively', mb(statSync(model).size), open.toFixed(1)];
  // The second step is the profiled one.
  const { most, refused, lines } = await run('--device', 'wgpu', '--steps', '2', '--profile');
  if (refused)
    return [...start, refused.message, '–', '–', mb(planned), '–', mb(host), mb(most), '–'];
  const seconds = lines.filter(({ loss }) => loss !== undefined).map(({ secs }) => secs.toFixed(1));
  const { in_use_bytes: inUse, reserved_bytes: reserved } = lines.find(
    ({ profile }) => profile,
  ).profile;
  if (inUse > (1 + ABOVE) * planned)
    fail(`natively: ${mb(inUse)} MB in use, planned ${mb(planned)}`);
  return [...start, ...seconds, mb(inUse), mb(planned), mb(reserved), mb(host), mb(most), '–'];
}

async function inChromium(model, fail) {
  const arena = await Arena.start();
  try {
    const { r, alpha, seqLen } = SHAPE;
    const options = {
      steps: 1,
      batchSize: 1,
      seqLen,
      adapter: { r, alpha, targetModules: 'all-linear' },
    };
    const late = new Promise((_, reject) =>
      setTimeout(
        () => reject(new Error(`no step in ${PATIENCE_MINS} minutes`)),
        PATIENCE_MINS * 60_000,
      ).unref(),
    );
    const found = await Promise.race([inTab(arena, model, 'first', { text: TEXT, options }), late]);
    const { planned, open, create, step, wasm, most, refused } = found;
    if (wasm > WASM) fail(`Chromium: wasm memory grew by ${(wasm / MIB).toFixed(1)} MiB`);
    return [
      `Chromium ${arena.browser.version}`,
      mb(statSync(model).size),
      (open + create).toFixed(1),
      refused ?? step.toFixed(1),
      '–',
      '–',
      mb(planned.needBytes),
      mb(most),
      '–',
      '–',
      (wasm / MIB).toFixed(1),
    ];
  } finally {
    await arena.end();
  }
}

export async function big({ tabtune, work, fail }) {
  const data = join(work, 'text.txt');
  writeFileSync(data, TEXT);
  // Mesa's software adapter binds 128 MiB at most: a table in Q4_K fits, one in Q6_K does not. LORA_BIG names another file to use for the latter.
  const [small, large] = [
    made(join(work, 'q4_k.gguf'), 'q4_k'),
    process.env.LORA_BIG ?? made(join(work, 'q6_k.gguf'), 'q6_k'),
  ];
  const rows = [
    await natively(tabtune, small, data, fail),
    await natively(tabtune, large, data, fail),
    await inChromium(large, fail),
  ];
  return {
    title: 'a model of 1.54 billion weights',
    words: `Packed files with Qwen2.5-1.5B's shapes in Q4_K, values in Q6_K, and the table in one or the other, LoRA r ${SHAPE.r} on every matrix, T = ${SHAPE.seqLen}, B = 1, on software adapters
of Vulkan and of WebGPU. MB of the file. Seconds until it is open, of the first step, which compiles the kernels, and of the second. MB in use on the device at most in a step,
planned (allowed 10 % above), and of all buffers. MB of the native process above its tensors when it has opened the model on the device \`cpu\` (allowed 200 MiB); of all of it after
the steps, where the adapter's memory, its driver and its compiler are among them. MiB by which wasm memory grew (allowed ${WASM / MIB}).`,
    columns: [
      'where',
      'file',
      'open',
      'first step',
      'second step',
      'in use',
      'planned',
      'buffers',
      'host, open',
      'process',
      'wasm',
    ],
    rows,
  };
}
