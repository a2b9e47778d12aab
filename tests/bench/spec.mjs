// The work for every library: sizes, optimizer, token stream, initial weights, rope tables. A plain module, for Node and the browser. Everything
// follows from integer hashes, so that it is the same bytes wherever it runs.

/** Sizes: d hidden, T tokens of a sequence, B sequences of a step. */
export const SIZES = {
  tiny: { d: 128, layers: 4, heads: 4, ffn: 344, vocab: 1024, T: 128, B: 4 },
  small: { d: 256, layers: 6, heads: 8, ffn: 688, vocab: 4096, T: 256, B: 4 },
  medium: { d: 512, layers: 8, heads: 8, ffn: 1376, vocab: 16384, T: 512, B: 2 },
};
/** AdamW; only matrices decay. */
export const OPT = { lr: 1e-3, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.01 };
export const NORM_EPS = 1e-5;
export const ROPE_BASE = 10_000;
/** Number of batches before the stream begins again. */
export const BATCHES = 64;
const TOKEN_SEED = 0x5eed;
const WEIGHT_SEED = 1000;

/**
 * Yields numbers in [0, 1): a counter in steps of the golden ratio, hashed with murmur3's finaliser.
 * @returns {Generator<number, never>}
 */
function* uniforms(seed) {
  for (let counter = (seed + 0x9e3779b9) >>> 0; ; counter = (counter + 0x9e3779b9) >>> 0) {
    let hash = Math.imul(counter ^ (counter >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    yield ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
  }
}

/** Returns 64 batches and one token: half drawn by Zipf's law, half the successor 5t + 17 of the previous token, which can be learned. */
export function makeTokens(size) {
  const { vocab, T, B } = SIZES[size];
  const weights = new Float64Array(vocab);
  let total = 0;
  for (let rank = 0; rank < vocab; rank++) weights[rank] = total += 1 / (rank + 1);
  const random = uniforms(TOKEN_SEED);
  const draw = () => random.next().value;
  let token = 0;
  return Uint16Array.from({ length: BATCHES * B * T + 1 }, () => {
    if (draw() < 0.5) return (token = (token * 5 + 17) % vocab);
    const aim = draw() * total;
    let [low, high] = [0, vocab - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (weights[middle] < aim) low = middle + 1;
      else high = middle;
    }
    return (token = low);
  });
}

/** Returns the inputs and targets [B, T] of step `s`, counted from 0. */
export function batch(size, tokens, s) {
  const { T, B } = SIZES[size];
  const start = (s % BATCHES) * B * T;
  const from = (offset) => Int32Array.from(tokens.subarray(start + offset, start + offset + B * T));
  return { x: from(0), y: from(1) };
}

/** Returns name, shape and standard deviation of each tensor in the order of their seeds; null is a norm, all ones. Matrices are [in, out]. */
export function layout(size) {
  const { d, layers, ffn, vocab } = SIZES[size];
  const [std, residual] = [0.02, 0.02 / Math.sqrt(2 * layers)];
  const square = (name, deviation = std) => [name, [d, d], deviation];
  const block = [
    ['n1', [d], null],
    square('wq'),
    square('wk'),
    square('wv'),
    square('wo', residual),
    ['n2', [d], null],
    ['wg', [d, ffn], std],
    ['wu', [d, ffn], std],
    ['wd', [ffn, d], residual],
  ];
  const blocks = Array.from({ length: layers }, (_, layer) =>
    block.map(([name, ...rest]) => [`l${layer}.${name}`, ...rest]),
  );
  return [['emb', [vocab, d], std], ...blocks.flat(), ['norm', [d], null]];
}

/** Returns the tensors of `layout` with their values, normally distributed by the Box-Muller method. */
export function initWeights(size) {
  return layout(size).map(([name, shape, std], index) => {
    const data = new Float32Array(shape.reduce((product, n) => product * n)).fill(1);
    const random = uniforms(WEIGHT_SEED + index);
    for (let i = 0; std !== null && i < data.length; i += 2) {
      const radius = std * Math.sqrt(-2 * Math.log(1 - random.next().value));
      const angle = 2 * Math.PI * random.next().value;
      data[i] = radius * Math.cos(angle);
      // A write past the end of an odd tensor is dropped.
      data[i + 1] = radius * Math.sin(angle);
    }
    return { name, shape, data };
  });
}

/** Returns cos and sin [T, half] of the angles; element i of a head is rotated with element i + half. */
export function ropeTables(size) {
  const { d, heads, T } = SIZES[size];
  const half = d / heads / 2;
  const table = (of) =>
    Float32Array.from({ length: T * half }, (_, i) =>
      of(Math.floor(i / half) * ROPE_BASE ** (-(i % half) / half)),
    );
  return { cos: table(Math.cos), sin: table(Math.sin), half };
}

/** Returns FNV-1a over the tokens as little-endian 16-bit words, in hexadecimal. */
export function checksum(tokens) {
  let hash = 0x811c9dc5;
  for (const token of tokens) {
    hash = Math.imul(hash ^ (token & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (token >>> 8), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
