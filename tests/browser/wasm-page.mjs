// Runs in the page: the wasm module itself, without the package's worker around it.
const core = await import('/pkg/tabtune.js');
const { __wasm_call_ctors: construct } = await core.default();
// As `web/src/worker/wasm.ts` does: `crate/build.rs` keeps the linker from calling them on every entry.
construct();
await core.initDevice();

const TEXT = 'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. '.repeat(5);
const SHAPE = {
  model_type: 'llama', hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1,
  max_position_embeddings: 16, rms_norm_eps: 1e-5, tie_word_embeddings: true,
};

function source(name, bytes) {
  return { name, size: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length) };
}

const hex = (digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** The files of a session's checkpoint, by name. */
async function save(session) {
  const stream = session.checkpoint('a test');
  const files = stream.files().map(({ name, bytes }) => ({ name, bytes: new Uint8Array(Number(bytes)), filled: 0 }));
  let index = 0;
  for (let chunk = await stream.nextChunk(); chunk !== undefined; chunk = await stream.nextChunk()) {
    while (files[index].filled === files[index].bytes.length) index++;
    stream.hashed(hex(await crypto.subtle.digest('SHA-256', chunk)));
    files[index].bytes.set(chunk, files[index].filled);
    files[index].filled += chunk.length;
  }
  stream.free();
  return files;
}

async function digests(session) {
  const named = (await save(session)).map(async ({ name, bytes }) => [name, [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].join()]);
  return Object.fromEntries(await Promise.all(named));
}

/** Losses of the next steps; a decay by hand begins after the first step of the run. */
async function go(session, count, decay) {
  const losses = [];
  for (let step = 0; step < count; step++) {
    const { reports } = await session.step();
    losses.push(...reports.map(({ loss }) => loss));
    if (decay && step === 0) session.startDecay();
  }
  return losses;
}

function start(config, data) {
  const model = core.ModelHandle.fromScratch(JSON.stringify(SHAPE), 'characters', data.read(0, data.size));
  return core.Session.create(model, data, JSON.stringify(config), false);
}

async function finish(session, before, count) {
  const losses = [...before, ...(await go(session, count))];
  const result = { losses, digests: await digests(session) };
  session.free();
  return result;
}

const text = new TextEncoder().encode(TEXT);
const data = source('text.txt', text);

/** Losses and digests of a run of four steps that is saved after two and goes on, and of the one resumed from that save. */
export async function resume({ decay, ...config }) {
  const session = await start(config, data);
  const before = await go(session, 2, decay);
  const files = await save(session);
  const live = await finish(session, before, 2);
  const again = await core.Session.resume(files.map(({ name, bytes }) => source(name, bytes)), data, undefined, [], []);
  return { live, resumed: await finish(again, [], 2) };
}

/** The same of a run that is never saved before its end. */
export async function straight({ decay, ...config }) {
  const session = await start(config, data);
  return finish(session, await go(session, 1, decay), 3);
}

let maps = 0;
const { mapAsync } = GPUBuffer.prototype;
GPUBuffer.prototype.mapAsync = function (...given) {
  maps++;
  return mapAsync.apply(this, given);
};

/**
 * So many steps, and what they end in: losses, the most steps whose reports were on their way, reads in the steps, the refusal of one and the
 * step before it, and digests.
 */
export async function together(count, config) {
  const session = await start(config, data);
  const [losses, before] = [[], maps];
  let most = 0;
  let refused;
  for (let step = 1; step <= count && !refused; step++) {
    try {
      const { completedSteps, reports } = await session.step();
      losses.push(...reports.map(({ loss }) => loss));
      most = Math.max(most, completedSteps - losses.length);
    } catch ({ kind, tensor, step }) {
      refused = { kind, tensor, step };
    }
  }
  const reads = maps - before;
  losses.push(...(await session.settle()).reports.map(({ loss }) => loss));
  const { completedSteps } = session.info();
  const { 'model.safetensors': model, 'optimizer.safetensors': optimizer } = await digests(session);
  session.free();
  return { losses, most, reads, refused, completedSteps, model, optimizer };
}

/** Names of the tensors that APOLLO leaves to AdamW. */
export async function fallbacks(config) {
  const session = await start(config, data);
  const { fallbacks } = session.info();
  session.free();
  return fallbacks;
}
