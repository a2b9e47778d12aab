// Runs in the page: converts a Llama of repeated noise to a GGUF file of F32, which is compared word for word while it is written, and stored
// nowhere.
import { padded, taken } from './gguf.mjs';

/** GGUF's names of Llama's tensors. */
const NAMES = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};
/** Number of words after which the noise repeats. */
const PERIOD = 1 << 18;

function ggufName(name) {
  const [, layer, inner] = /^model\.layers\.(\d+)\.(.+)\.weight$/.exec(name) ?? [];
  if (inner) return `blk.${layer}.${NAMES[inner]}.weight`;
  return name === 'model.norm.weight' ? 'output_norm.weight' : 'token_embd.weight';
}

/** Returns the header of a safetensors file, and the noise that its payload repeats. */
async function headOf(file) {
  const header = Number(new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true));
  const tensors = JSON.parse(await file.slice(8, 8 + header).text());
  return {
    tensors,
    noise: new Uint32Array(await file.slice(8 + header, 8 + header + 4 * PERIOD).arrayBuffer()),
  };
}

/** Returns a stream that compares; `report()` returns the number of bytes received, of complete tensors, and the differences. */
export async function comparing(file, heads) {
  const { tensors, noise } = await headOf(file);
  const sources = new Map(
    Object.entries(tensors).map(
      ([
        name,
        {
          shape,
          data_offsets: [begin, end],
        },
      ]) => [
        ggufName(name),
        { first: begin / 4, words: (end - begin) / 4, width: shape.at(-1), rows: shape[0] },
      ],
    ),
  );
  const found = {
    bytes: 0,
    beyond: 0,
    words: 0,
    wrong: /** @type {string[]} */ ([]),
    tensors: 0,
    highest: 0,
  };
  let layout;
  /** Returns the source of row `row` of a tensor: rows of q and k are interleaved in pairs, the first half of a head with its second. */
  const rowOf = (name, row, rows) => {
    if (!/attn_[qk]\./.test(name)) return row;
    const dim = rows / heads;
    const [head, inner] = [Math.floor(row / dim), row % dim];
    return head * dim + (inner % 2) * (dim / 2) + Math.floor(inner / 2);
  };
  function compared(name, source, from, words) {
    for (let at = 0; at < words.length;) {
      const row = Math.floor((from + at) / source.width);
      const column = (from + at) % source.width;
      const count = Math.min(source.width - column, words.length - at);
      const first = source.first + rowOf(name, row, source.rows) * source.width + column;
      for (let k = 0; k < count; k++) {
        if (words[at + k] !== noise[(first + k) % PERIOD]) {
          if (found.wrong.length < 5) found.wrong.push(`${name}, word ${from + at + k}`);
          break;
        }
      }
      found.words += count;
      at += count;
    }
  }
  const write = (chunk) => {
    if (!layout) {
      // The header of a model without a vocabulary is in the first piece; the end of the last tensor is not known yet.
      layout = taken(chunk, Number.MAX_SAFE_INTEGER).tensors;
      found.tensors = layout.length;
      for (const { name, kind } of layout)
        if (kind !== 0 || !sources.has(name)) found.wrong.push(`${name} of type ${kind}`);
    }
    const [begin, end] = [found.bytes, found.bytes + chunk.byteLength];
    for (const { name, begin: first } of layout) {
      const source = sources.get(name);
      if (source === undefined) continue;
      const [from, to] = [Math.max(begin, first), Math.min(end, first + 4 * source.words)];
      if (from >= to) continue;
      compared(
        name,
        source,
        (from - first) / 4,
        new Uint32Array(chunk.buffer, chunk.byteOffset + from - begin, (to - from) / 4),
      );
      if (first > 2 ** 32 && from === first) found.beyond += 1;
      found.highest = Math.max(found.highest, padded(to));
    }
    found.bytes = end;
  };
  return {
    stream: new WritableStream({ write }),
    report: () => ({
      ...found,
      expected: [...sources.values()].reduce((sum, { words }) => sum + words, 0),
      names: sources.size,
    }),
  };
}
