// Runs in the page: one reference case of an adapter, through the quick build of the core, which takes steps on chosen windows.
const core = await import('/pkg-quick/tabtune.js');
const { __wasm_call_ctors: construct } = await core.default();
// As in `web/src/worker/wasm.ts`: `web/build-wasm.mjs` keeps the linker from calling the constructors on every entry.
construct();
await core.initDevice();

async function source(path) {
  const bytes = new Uint8Array(await (await fetch(path)).arrayBuffer());
  return {
    name: path.split('/').pop(),
    size: bytes.length,
    read: (offset, length) => bytes.subarray(offset, offset + length),
  };
}
const sources = (paths) => Promise.all(paths.map(source));

/** Number of bytes of the text that are used; no case begins later. */
const TEXT_BYTES = 160_000;
const norm = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
const hex = (digest) =>
  [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const digestOf = async (tensors) =>
  hex(
    await crypto.subtle.digest(
      'SHA-256',
      await new Blob(
        tensors.flatMap(([name, shape, values]) => [name, String(shape), values]),
      ).arrayBuffer(),
    ),
  );

/** Returns the values that the case computes with the base in this storage, and their digest. The core throws plain objects. */
export const run = (ask) =>
  computed(ask).catch((thrown) => Promise.reject(new Error(thrown.message)));

async function computed({ test, files, adapter, text, baseStorage }) {
  const model = core.ModelHandle.open(
    await sources(files),
    undefined,
    await sources(adapter),
    true,
    false,
  );
  const ids = Int32Array.from(
    model.tokenize(new TextDecoder().decode((await source(text)).read(0, TEXT_BYTES))).ids,
  );
  const {
    kind,
    steps = [[0]],
    length = test.count,
    micro_batches: parts = 1,
    optimizer = {},
    groups = [],
  } = test;
  const { kind: type = 'adamw', learning_rate = 1e-3, max_grad_norm = 0, ...rule } = optimizer;
  const settings = {
    steps: steps.length,
    batch_size: steps[0].length / parts,
    gradient_accumulation_steps: parts,
    seq_len: length,
    learning_rate,
    max_grad_norm,
    optimizer: { type, ...rule },
    groups,
    base_storage: baseStorage,
  };
  const data = {
    name: 'ids.tokens',
    size: ids.byteLength,
    read: (offset, count) => new Uint8Array(ids.buffer, offset, count),
  };
  const session = await core.Session.create(
    model,
    { files: [data], validation: [] },
    settings,
    false,
    [],
    [],
  );
  model.free();
  const storage = session.info().base.storage;
  const ended = async (found, tensors) => {
    session.free();
    return { ...found, storage, digest: await digestOf(tensors) };
  };
  const evaluated = async (starts, only) =>
    (await session.evaluateOn(ids, Uint32Array.from(starts), length, only)).loss;
  if (kind === 'lora_ce') {
    const losses = [];
    for (let place = 0; place < length; place++) losses.push(await evaluated([test.start], place));
    const first_ids = [...ids.slice(test.start, test.start + test.expect.first_ids.length)];
    return ended(
      { first_ids, mean: await evaluated([test.start]), first: losses[0], last: losses.at(-1) },
      [['losses', [length], Float32Array.from(losses)]],
    );
  }
  if (kind === 'lora_grad') {
    const loss = await evaluated(test.starts);
    const tensors = await session.gradientsOn(ids, Uint32Array.from(test.starts), length);
    const norms = Object.fromEntries(tensors.map(([name, , values]) => [name, norm(values)]));
    const samples = Object.fromEntries(
      tensors.map(([name, , values]) => [name, [...values.slice(0, 4)]]),
    );
    return ended({ loss, norm: norm(Object.values(norms)), norms, samples }, tensors);
  }
  const before = new Map((await session.trained()).map(([name, , values]) => [name, values]));
  const found = {
    losses: /** @type {number[]} */ ([]),
    grad_norms: /** @type {number[]} */ ([]),
    tensors: {},
  };
  for (const starts of steps) {
    const { loss, gradNorm } = await session.stepOn(ids, Uint32Array.from(starts), length, parts);
    found.losses.push(loss);
    found.grad_norms.push(gradNorm);
  }
  found.final_loss = await evaluated(steps.at(-1));
  const after = await session.trained();
  for (const [name, shape, values] of after) {
    const old = before.get(name);
    const change = norm(values.map((value, at) => value - old[at]));
    found.tensors[name] = { shape, norm: norm(values), change, first: [...values.slice(0, 4)] };
  }
  const all = Object.values(found.tensors);
  return ended(
    {
      ...found,
      adapter_norm: norm(all.map((one) => one.norm)),
      adapter_change: norm(all.map(({ change }) => change)),
    },
    after,
  );
}
