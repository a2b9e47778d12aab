// A model of any size whose file takes hardly any room on the disk, and a server of it that counts what is asked and fails as it is asked to.
import { createHash } from 'node:crypto';
import { createReadStream, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @typedef {{ bytes: number, ranges?: boolean, etag?: string, status?: number, cut?: number, shift?: number, flip?: boolean, hops?: number }} Flaws */

const BASE = {
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_size: 1024,
  intermediate_size: 4096,
  num_attention_heads: 8,
  num_key_value_heads: 8,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  vocab_size: 64,
  hidden_act: 'silu',
  tie_word_embeddings: true,
};

/** Returns names and shapes of the tensors of some blocks, whose weights are zero. @param {number} blocks */
function tensorsOf(blocks) {
  const { hidden_size: hidden, intermediate_size: mlp, vocab_size: vocabulary } = BASE;
  /** @type {[string, number[]][]} */
  const all = [
    ['model.norm.weight', [hidden]],
    ['model.embed_tokens.weight', [vocabulary, hidden]],
  ];
  for (let block = 0; block < blocks; block += 1) {
    const at = `model.layers.${block}`;
    for (const norm of ['input_layernorm', 'post_attention_layernorm'])
      all.push([`${at}.${norm}.weight`, [hidden]]);
    for (const name of ['q', 'k', 'v', 'o'])
      all.push([`${at}.self_attn.${name}_proj.weight`, [hidden, hidden]]);
    for (const name of ['gate', 'up']) all.push([`${at}.mlp.${name}_proj.weight`, [mlp, hidden]]);
    all.push([`${at}.mlp.down_proj.weight`, [hidden, mlp]]);
  }
  return all;
}

/** Writes the model, and serves it with its configuration. @param {number} blocks Each has 64 MiB. */
export async function sparseModel(blocks) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-sparse-'));
  const path = join(folder, 'model.safetensors');
  let end = 0;
  const tensors = tensorsOf(blocks).map(([name, shape]) => {
    const begin = end;
    end += 4 * shape.reduce((size, length) => size * length, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(tensors)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const file = openSync(path, 'w');
  writeSync(file, Buffer.concat([length, header]));
  const size = 8 + header.length + end;
  ftruncateSync(file, size);
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path)) hash.update(piece);
  const config = Buffer.from(JSON.stringify({ ...BASE, num_hidden_layers: blocks }));

  /** Behaviour of the server; `bytes` counts those of the weights that it has sent. @type {Flaws} */
  const state = { bytes: 0 };
  /** @type {string[]} */
  const ranges = [];
  const server = createServer((request, response) => {
    const { ranges: hasRanges = true, etag = '"one"', status, cut, shift = 0, flip, hops } = state;
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-expose-headers', '*');
    response.setHeader('access-control-allow-headers', '*');
    response.setHeader('cache-control', 'no-store');
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    const url = request.url ?? '';
    if (url.startsWith('/config')) return response.writeHead(200).end(config);
    ranges.push(request.headers.range ?? 'all');
    if (status !== undefined) return response.writeHead(status).end();
    if (hops !== undefined && !url.endsWith('?there'))
      return response.writeHead(302, { location: `${url}?there` }).end();
    const [, first, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const part = hasRanges && first !== undefined;
    const start = part ? Number(first) : 0;
    const to = Math.min(part && last !== '' ? Number(last) : Infinity, size - 1);
    const all = { etag, 'content-length': to - start + 1 };
    response.writeHead(
      part ? 206 : 200,
      part ? { ...all, 'content-range': `bytes ${start + shift}-${to}/${size}` } : all,
    );
    let left = cut ?? Infinity;
    let at = start;
    const stream = createReadStream(path, { start, end: to });
    stream.on('data', (piece) => {
      const bytes = Buffer.from(/** @type {Buffer} */ (piece).subarray(0, Math.max(0, left)));
      if (flip && at <= size / 2 && at + bytes.length > size / 2)
        bytes[Math.floor(size / 2) - at] ^= 1;
      left -= bytes.length;
      at += bytes.length;
      state.bytes += bytes.length;
      if (!response.write(bytes)) {
        stream.pause();
        response.once('drain', () => stream.resume());
      }
      if (left > 0) return;
      stream.destroy();
      setTimeout(() => response.destroy(), 50);
    });
    stream.on('end', () => response.end());
    response.on('close', () => stream.destroy());
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `http://127.0.0.1:${port}`;
  return {
    size,
    sha256: hash.digest('hex'),
    ranges,
    files: [`${url}/config.json`, `${url}/model.safetensors`],
    /** Changes what the server does from now on, and counts from zero. @param {Partial<Flaws>} flaws */
    set(flaws = {}) {
      for (const key of Object.keys(state)) Reflect.deleteProperty(state, key);
      Object.assign(state, { bytes: 0, ...flaws });
      ranges.length = 0;
    },
    get bytes() {
      return state.bytes;
    },
    close() {
      server.close().closeAllConnections();
      rmSync(folder, { recursive: true });
    },
  };
}
