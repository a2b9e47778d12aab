// GGUF vocabularies with keys left out, of other types, or with other words, of which llama.cpp's ids and ends are recorded.
import { ofF32s, ofI32s, ofText, ofTexts, ofTruth, ofU32, together } from '../gguf.mjs';
import { BASES, NORMAL, SPECIAL, USER } from './border-vocabularies.mjs';

const ID = (name) => `tokenizer.ggml.${name}_token_id`;
const KEY = (name) => `tokenizer.ggml.${name}`;

/** Returns the keys of a vocabulary: [key, kind, value]; '@' is the list of the base. */
function complete(base) {
  const { tokens } = BASES[base];
  const id = (token) => tokens.indexOf(token);
  const common = [
    [KEY('model'), 'text', BASES[base].model],
    [KEY('tokens'), 'texts', '@'],
    [KEY('token_type'), 'i32s', '@'],
  ];
  return base === 'bytes'
    ? [
        ...common,
        [KEY('pre'), 'text', 'llama-bpe'],
        [KEY('merges'), 'texts', '@'],
        [ID('bos'), 'u32', id('<|im_start|>')],
        [ID('eos'), 'u32', id('<|im_end|>')],
        [ID('padding'), 'u32', id('<|endoftext|>')],
        [KEY('add_bos_token'), 'bool', true],
        [KEY('add_eos_token'), 'bool', false],
      ]
    : [
        ...common,
        [KEY('scores'), 'f32s', '@'],
        [ID('bos'), 'u32', 1],
        [ID('eos'), 'u32', 2],
        [ID('unknown'), 'u32', 0],
        [KEY('add_bos_token'), 'bool', true],
        [KEY('add_eos_token'), 'bool', false],
        [KEY('add_space_prefix'), 'bool', true],
      ];
}

/** Words of `tokenizer.ggml.pre`: those of llama.cpp, and one that it does not have. */
export const WORDS =
  `gpt-2 phi-2 jina-es jina-v1-en jina-v2-de jina-v2-code roberta-bpe gigachat a.x-4.0 mellum modern-bert mpt olmo jais trillion
  granite-docling exaone4 smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral
  midm-2.0 lfm2 jina-v5-nano qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe dbrx
  smaug-bpe chatglm-bpe glm4 deepseek-llm deepseek-coder deepseek-v3 hunyuan-dense joyai-llm youtu falcon qwen35 bloom poro-chat gpt3-finnish viking
  tekken chameleon gpt-4o llama4 kanana2 minimax-m2 tiny_aya kimi-k2 superbpe seed-coder afmoe exaone-moe jais-2 default gemma4 unheard-of`.split(
    /\s+/,
  );

/** Returns all subsets of at most `most` of these. */
const subsets = (items, most) =>
  items.reduce(
    (all, item) => [...all, ...all.filter((set) => set.length < most).map((set) => [...set, item])],
    [[]],
  );

/** Returns every case: { kind, base, keys, title? }. */
export function cases() {
  const out = [];
  const add = (kind, base, change, title) =>
    out.push({ kind, base, keys: change(complete(base)), title });
  const without = (names) => (keys) => keys.filter(([key]) => !names.includes(key));
  const withKey = (key, type, value) => (keys) => [
    ...keys.filter(([name]) => name !== key),
    [key, type, value],
  ];
  for (const word of WORDS)
    add('word', 'bytes', (keys) =>
      without([KEY('add_bos_token')])(withKey(KEY('pre'), 'text', word)(keys)),
    );
  const ofPieces = [
    ID('bos'),
    ID('eos'),
    ID('unknown'),
    KEY('token_type'),
    KEY('add_bos_token'),
    KEY('add_space_prefix'),
  ];
  for (const names of subsets(ofPieces, 3)) add('left out', 'pieces', without(names));
  const ofBytes = [ID('bos'), ID('eos'), KEY('token_type'), KEY('add_bos_token'), KEY('pre')];
  for (const names of subsets(ofBytes, 3)) add('left out', 'bytes', without(names));
  for (const set of [[], [ID('eos')], [ID('bos'), ID('eos')]])
    add('without a first space', 'pieces', (keys) =>
      without(set)(withKey(KEY('add_space_prefix'), 'bool', false)(keys)),
    );
  for (const word of ['smollm', 'qwen2', 'glm4', 'tekken', 'deepseek-v3'])
    add('left out', 'bytes', (keys) =>
      without([ID('bos'), ID('eos'), KEY('token_type'), KEY('add_bos_token')])(
        withKey(KEY('pre'), 'text', word)(keys),
      ),
    );
  add('equal scores', 'pieces', without([KEY('scores')]));
  const [he, wor, or, hell] = ['he', 'wor', 'or', 'hell'].map((piece) =>
    BASES.pieces.tokens.indexOf(piece),
  );
  for (const [one, other] of [
    [he, wor],
    [or, he],
    [hell, wor],
  ]) {
    const { scores } = BASES.pieces;
    add(
      'equal scores',
      'pieces',
      withKey(
        KEY('scores'),
        'f32s',
        scores.map((score, id) => (id === one ? scores[other] : score)),
      ),
    );
  }
  add('left out', 'bytes', without([KEY('merges')]));
  add('left out', 'bytes', without([KEY('tokens')]));
  add('left out', 'bytes', without([KEY('model')]));
  for (const base of ['bytes', 'pieces']) {
    for (const special of [NORMAL, USER]) {
      const types = BASES[base].types.map((type, id) =>
        SPECIAL.includes(BASES[base].tokens[id]) ? special : type,
      );
      add('special tokens of another type', base, withKey(KEY('token_type'), 'i32s', types));
      add('special tokens of another type', base, (keys) =>
        without([ID('eos')])(withKey(KEY('token_type'), 'i32s', types)(keys)),
      );
      const title = 'Phi-3 mini';
      if (base === 'pieces') add('a name', base, withKey(KEY('token_type'), 'i32s', types), title);
    }
    add('a name', base, (keys) => keys, base === 'pieces' ? 'phi3' : 'modern-bert');
    const other = [
      [ID('bos'), 'i32', 1],
      [ID('eos'), 'i32', 2],
      [ID('eos'), 'u64', 2],
      [ID('eos'), 'text', '2'],
      [ID('unknown'), 'f32', 0],
      [KEY('add_bos_token'), 'text', 'false'],
      [KEY('add_bos_token'), 'u32', 0],
      [KEY('add_eos_token'), 'i32', 1],
      [KEY('add_space_prefix'), 'u32', 0],
      [KEY('pre'), 'u32', 1],
      [KEY('token_type'), 'u32s', BASES[base].types],
      [KEY('tokens'), 'i32s', [1, 2]],
    ];
    for (const [key, type, value] of other) add('of another type', base, withKey(key, type, value));
    const more = [
      [KEY('add_eos_token'), 'bool', true],
      [ID('fim_pad'), 'u32', 300],
      [ID('eot'), 'u32', 301],
      [ID('eom'), 'u32', 302],
    ];
    for (const [key, type, value] of more) add('more keys', base, withKey(key, type, value));
  }
  return out;
}

/** Returns the bytes of a value. */
const bytesOf = (value) => /** @type {Buffer} */ (value[1]);

const WRITE = {
  text: ofText,
  texts: ofTexts,
  i32s: ofI32s,
  f32s: ofF32s,
  bool: ofTruth,
  u32: ofU32,
  i32: (value) => [5, bytesOf(ofU32(value))],
  f32: (value) => [6, bytesOf(ofF32s([value])).subarray(12)],
  u64: (value) => [10, Buffer.from(BigUint64Array.of(BigInt(value)).buffer)],
  u32s: (values) => {
    const bytes = bytesOf(ofI32s(values));
    bytes.writeUInt32LE(4);
    return [9, bytes];
  },
};

/** Returns the list that is written as '@'. */
function listed(base, key) {
  const { tokens, types, merges, scores } = BASES[base];
  return { tokens, token_type: types, merges, scores }[key.replace('tokenizer.ggml.', '')];
}

/** Returns the GGUF file of a case: a Llama of one layer whose numbers are zero. */
export function file({ base, keys, title }) {
  const rows = BASES[base].tokens.length;
  const counts = {
    context_length: 64,
    embedding_length: 8,
    block_count: 1,
    feed_forward_length: 8,
    'attention.head_count': 1,
  };
  const metadata = new Map([
    ['general.architecture', ofText('llama')],
    ...(title ? [['general.name', ofText(title)]] : []),
    ...Object.entries(counts).map(([key, count]) => [`llama.${key}`, ofU32(count)]),
    ['llama.attention.layer_norm_rms_epsilon', WRITE.f32(1e-5)],
    ...keys.map(([key, kind, value]) => [
      key,
      WRITE[kind](value === '@' ? listed(base, key) : value),
    ]),
  ]);
  const tensor = (name, ...dims) => ({
    name,
    kind: 0,
    dims,
    bytes: Buffer.alloc(4 * dims.reduce((a, b) => a * b)),
  });
  const square = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'];
  return together(metadata, [
    tensor('token_embd.weight', 8, rows),
    tensor('output_norm.weight', 8),
    ...['attn_norm', 'ffn_norm'].map((name) => tensor(`blk.0.${name}.weight`, 8)),
    ...square.map((name) => tensor(`blk.0.${name}.weight`, 8, 8)),
  ]);
}
