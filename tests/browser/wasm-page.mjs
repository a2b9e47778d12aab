// Runs in the page: the wasm module itself, without the package's worker around it.

/** Number of calls so far: of the module to JavaScript, and of WebGPU by the name of the method. @type {Record<string, number>} */
const calls = { javascript: 0 };
const { instantiateStreaming } = WebAssembly;
WebAssembly.instantiateStreaming = (source, imports) => {
  const counted = (member) =>
    typeof member !== 'function' ? member : (...given) => (calls.javascript++, member(...given));
  const each = (object, map) =>
    Object.fromEntries(Object.entries(object).map(([name, member]) => [name, map(member)]));
  return instantiateStreaming(
    source,
    each(imports, (module) => each(module, counted)),
  );
};
/** @type {[{ prototype: object }, string][]} */
const METHODS = [
  [GPUDevice, 'createBindGroup'],
  [GPUDevice, 'createBuffer'],
  [GPUQueue, 'writeBuffer'],
  [GPUQueue, 'submit'],
  [GPUBuffer, 'mapAsync'],
  [GPUComputePassEncoder, 'dispatchWorkgroups'],
];
let dispatches = true;
for (const [{ prototype }, name] of METHODS) {
  const method = prototype[name];
  calls[name] = 0;
  prototype[name] = function (...given) {
    calls[name]++;
    if (dispatches || name !== 'dispatchWorkgroups') return method.apply(this, given);
  };
}

const core = await import('/pkg/tabtune.js');
const { __wasm_call_ctors: construct } = await core.default();
// As in `web/src/worker/wasm.ts`: `web/build-wasm.mjs` keeps the linker from calling the constructors on every entry.
construct();
await core.initDevice();

const TEXT =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. '.repeat(
    5,
  );
const SHAPE = {
  model_type: 'llama',
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  max_position_embeddings: 16,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: true,
};

function source(name, bytes) {
  return {
    name,
    size: bytes.length,
    read: (offset, length) => bytes.subarray(offset, offset + length),
  };
}

const hex = (digest) =>
  [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Returns the files of a session's checkpoint, by name. */
async function save(session) {
  const stream = session.checkpoint('a test');
  const files = stream
    .files()
    .map(({ name, bytes }) => ({ name, bytes: new Uint8Array(Number(bytes)), filled: 0 }));
  let index = 0;
  for (
    let chunk = await stream.nextChunk();
    chunk !== undefined;
    chunk = await stream.nextChunk()
  ) {
    while (files[index].filled === files[index].bytes.length) index++;
    stream.hashed(hex(await crypto.subtle.digest('SHA-256', chunk)));
    files[index].bytes.set(chunk, files[index].filled);
    files[index].filled += chunk.length;
  }
  stream.free();
  return files;
}

async function digests(session) {
  const named = (await save(session)).map(async ({ name, bytes }) => [
    name,
    [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].join(),
  ]);
  return Object.fromEntries(await Promise.all(named));
}

/** Makes steps and returns their losses; a manual decay begins after the first step of the run. */
async function go(session, count, decay) {
  const losses = [];
  for (let step = 0; step < count; step++) {
    const { reports } = await session.step();
    losses.push(...reports.map(({ loss }) => loss));
    if (decay && step === 0) session.startDecay();
  }
  return losses;
}

async function start(config, data, shape = {}) {
  const model = await core.ModelHandle.fromScratch(
    { ...SHAPE, ...shape },
    undefined,
    data,
    {},
    false,
  );
  return core.Session.create(model, data, config, false, [], []);
}

async function finish(session, before, count) {
  const losses = [...before, ...(await go(session, count))];
  const result = { losses, digests: await digests(session) };
  session.free();
  return result;
}

const text = new TextEncoder().encode(TEXT);
const dataOf = (...files) => ({ files, validation: [] });
const data = dataOf(source('text.txt', text));
/** Rows with different numbers of learned tokens. */
const LINES = Array.from({ length: 40 }, (_, row) =>
  JSON.stringify({
    prompt: TEXT.slice(row, row + 5),
    completion: TEXT.slice(row + 5, row + 8 + (row % 5)),
  }),
).join('\n');
const rows = dataOf(source('rows.jsonl', new TextEncoder().encode(LINES)));

/** Returns losses and digests of a run of four steps that is saved after two and continues, and of the one resumed from that save. */
export async function resume({ decay, ...config }) {
  const session = await start(config, data);
  const before = await go(session, 2, decay);
  const files = await save(session);
  const live = await finish(session, before, 2);
  const again = await core.Session.resume(
    files.map(({ name, bytes }) => source(name, bytes)),
    data,
    undefined,
    [],
    [],
    false,
  );
  return { live, resumed: await finish(again, [], 2) };
}

/** Returns the same for a run that is never saved before its end. */
export async function straight({ decay, ...config }) {
  const session = await start(config, data);
  return finish(session, await go(session, 1, decay), 3);
}

/**
 * Makes `count` steps and returns the outcome: losses, the maximum number of steps whose reports were pending, reads in the steps, the refusal of one
 * and the step before it, and digests.
 */
export async function together(count, config) {
  const session = await start(config, data);
  const [losses, before] = [/** @type {number[]} */ ([]), calls.mapAsync];
  let most = 0;
  /** @type {{ kind?: string, tensor?: string, step?: number } | undefined} */
  let refused;
  for (let step = 1; step <= count && !refused; step++) {
    try {
      const { completedSteps, reports } = await session.step();
      losses.push(...reports.map(({ loss }) => loss));
      most = Math.max(most, completedSteps - losses.length);
    } catch (/** @type {any} */ { kind, tensor, step }) {
      refused = { kind, tensor, step };
    }
  }
  const reads = calls.mapAsync - before;
  losses.push(...(await session.settle()).reports.map(({ loss }) => loss));
  const { completedSteps } = session.info();
  const { 'model.safetensors': model, 'optimizer.safetensors': optimizer } = await digests(session);
  session.free();
  return { losses, most, reads, refused, completedSteps, model, optimizer };
}

/** Returns the bytes of a safetensors file with NaN in the first rows of a tensor of f32. */
function poisoned(bytes, name, rows) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const {
    data_offsets: [first, end],
    shape,
  } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)))[name];
  const copy = bytes.slice();
  const from = 8 + length + first + (rows * (end - first)) / shape[0];
  for (let at = from; at < 8 + length + first + ((rows + 1) * (end - first)) / shape[0]; at += 4)
    new DataView(copy.buffer).setUint32(at, 0x7fc00000, true);
  return copy;
}

/**
 * Trains with a token whose embedding is not a number, in each of the steps 1 to `count` in turn; returns the faults in the refusal, in the state
 * after it, or in the following steps.
 */
export async function refusedAt(count, config) {
  const settings = { ...config, data_order: 'sequential', batch_size: 1, seq_len: 8 };
  const rare = (step) => {
    const letters = [...TEXT.slice(0, 400)];
    if (step > 0) letters[(step - 1) * 8 + 3] = '\u0001';
    return dataOf(source('text.txt', new TextEncoder().encode(letters.join(''))));
  };
  const shape = { tie_word_embeddings: false };
  // The lowest character has the first id.
  const made = await start(settings, rare(1), shape);
  const files = (await save(made)).filter(({ name }) => !/checkpoint|optimizer/.test(name));
  made.free();
  const bad = files.map(({ name, bytes }) =>
    source(
      name,
      name === 'model.safetensors' ? poisoned(bytes, 'model.embed_tokens.weight', 0) : bytes,
    ),
  );
  const begin = (text, more) =>
    core.Session.create(
      core.ModelHandle.open(bad, undefined, [], false, false),
      text,
      { ...settings, ...more },
      true,
      [],
      [],
    );
  const weights = async (session) => {
    const { 'model.safetensors': model, 'optimizer.safetensors': optimizer } =
      await digests(session);
    return `${model} ${optimizer}`;
  };
  const straight = await begin(rare(0), { report_every: 1 });
  const before = [];
  for (let step = 1; step <= count; step++) {
    before.push(await weights(straight));
    await straight.step();
  }
  straight.free();
  const faults = [];
  for (let step = 1; step <= count; step++) {
    const session = await begin(rare(step), {});
    /** @type {{ kind: string, step: number, tensor: string } | undefined} */
    let refused;
    while (!refused) await session.step().catch((error) => (refused = error));
    if (refused?.kind !== 'NON_FINITE' || refused.step !== step || refused.tensor !== 'loss')
      faults.push(`step ${step}: ${JSON.stringify(refused)}`);
    if ((await weights(session)) !== before[step - 1] || session.info().completedSteps !== step - 1)
      faults.push(`step ${step} has changed something`);
    session.skipBatch();
    await go(session, 2);
    await session.settle();
    if (session.info().completedSteps !== step + 1)
      faults.push(`step ${step}: the run does not go on`);
    session.free();
  }
  return faults;
}

/** Returns the host's work in each step, after the first ones: calls, and the median of the milliseconds during which nothing is dispatched. @returns {Promise<Record<string, number>>} */
export async function hostWork(count, shape, config, masked = false) {
  const session = await start(config, masked ? rows : data, shape);
  await go(session, 6);
  const before = { ...calls };
  await go(session, count);
  const each = Object.fromEntries(
    Object.entries(calls).map(([name, number]) => [name, (number - before[name]) / count]),
  );
  dispatches = false;
  const millis = [];
  for (let step = 0; step < count; step++) {
    const began = performance.now();
    await session.step();
    millis.push(performance.now() - began);
  }
  dispatches = true;
  session.free();
  return { ...each, hostMillis: millis.sort((a, b) => a - b)[count >> 1] };
}

/** Returns the names of the tensors that APOLLO leaves to AdamW. */
export async function fallbacks(config) {
  const session = await start(config, data);
  const { fallbacks } = session.info();
  session.free();
  return fallbacks;
}
