// Tokenizers of folders as GGUF: llama.cpp gives the texts the ids of the folder, or the export is refused.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installNode } from './install.mjs';
import { texts } from './judge.mjs';
import { readsVocabularies } from './programs.mjs';
import { BASES, SPECIAL, TEXTS } from './vocabulary-cases.mjs';

/** Number of texts. */
const COUNT = 52;

const split = (regex, behavior = 'Isolated', invert = false) => ({
  type: 'Split',
  pattern: { Regex: regex },
  behavior,
  invert,
});
const bytes = (useRegex, spaced = false) => ({
  type: 'ByteLevel',
  add_prefix_space: spaced,
  trim_offsets: true,
  use_regex: useRegex,
});
const digits = (one) => ({ type: 'Digits', individual_digits: one });
const after = (parts, useRegex = false) => ({
  type: 'Sequence',
  pretokenizers: [...parts, bytes(useRegex)],
});
const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const REST = String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const LLAMA = String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|${REST}`;
const QWEN = LLAMA.replace('{1,3}', '');
const CL100K = String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`;
const [UPPER, LOWER] = [
  String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`,
  String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`,
];
const TEKKEN = String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
/** Letters of DeepSeek LLM's document, in which the case of letters is defined. */
const LATIN = [
  String.raw`\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼι`,
  String.raw`ῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-`,
  String.raw`𞥃]+`,
].join('');
const WIDE = String.raw`\s?[!-/:-~！-／：-～‘-‟　-。]+`;
const CJK = '[一-龥ࠀ-一가-\ud7ff]+';
const GPT4O = String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${CONTRACTIONS}?|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${CONTRACTIONS}?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const V3 = String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_${'`'}{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const BLOOM = String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`;
const SEED = String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`;
const NFC = { type: 'NFC' };
const replaced = (from, to) => ({ type: 'Replace', pattern: { String: from }, content: to });
const steps = (...normalizers) => ({ type: 'Sequence', normalizers });
const LLAMA2 = steps({ type: 'Prepend', prepend: '▁' }, replaced(' ', '▁'));
const metaspace = (scheme, splits = false) => ({
  type: 'Metaspace',
  replacement: '▁',
  prepend_scheme: scheme,
  split: splits,
});

/** Returns a post-processor that begins a text with these tokens. */
const begins = (...tokens) => ({
  type: 'TemplateProcessing',
  single: [
    ...tokens.map((id) => ({ SpecialToken: { id, type_id: 0 } })),
    { Sequence: { id: 'A', type_id: 0 } },
  ],
  pair: [],
  special_tokens: Object.fromEntries(
    tokens.map((id) => [id, { id, ids: [BASES.bytes.tokens.indexOf(id)], tokens: [id] }]),
  ),
});

/** @type {Record<string, Parameters<typeof documents>[0]>} Each folder: name → how its documents differ from GPT-2's, or from Llama 2's with `pieces`. */
export const FOLDERS = {
  'GPT-2': {},
  SmolLM: { pre: after([digits(true)], true) },
  'Llama 3': { pre: after([split(LLAMA)]), whole: true, post: begins('<|im_start|>') },
  'Llama 3, without ignore_merges': { pre: after([split(LLAMA)]) },
  'Qwen2, not composed': { pre: after([split(QWEN)]) },
  Qwen2: { pre: after([split(QWEN)]), normalizer: NFC },
  OLMo: { normalizer: NFC },
  'Command R': { pre: after([digits(true)], true), normalizer: NFC },
  'GPT-4, by tiktoken': { pre: after([split(CL100K, 'Removed', true)]) },
  'DeepSeek Coder': {
    pre: after([
      ...[String.raw`[\r\n]`, String.raw`\s?\p{L}+`, String.raw`\s?\p{P}+`, CJK].map((r) =>
        split(r),
      ),
      digits(true),
    ]),
  },
  'DeepSeek LLM': {
    pre: after([
      ...[String.raw`[\r\n]`, LATIN, WIDE, String.raw`\s+$`, CJK].map((r) => split(r)),
      digits(true),
    ]),
  },
  'DeepSeek LLM, without its letters': {
    pre: after([...[String.raw`[\r\n]`, WIDE, CJK].map((r) => split(r)), digits(true)]),
  },
  'GPT-4o': { pre: after([split(GPT4O)]) },
  'DeepSeek V3': {
    pre: after([String.raw`\p{N}{1,3}`, '[一-龥\u3040-ゟ゠-ヿ]+', V3].map((r) => split(r))),
  },
  Bloom: { pre: after([split(BLOOM)]) },
  Viking: { pre: after([split(BLOOM), digits(true)]) },
  'Seed Coder': { pre: after([split(SEED)]) },
  SuperBPE: { pre: after([split(String.raw`\p{N}+`), split(String.raw`(?=(\d{3})+(?!\d))`)]) },
  Tekken: { pre: after([split(TEKKEN)]), whole: true },
  'a space before a text': { pre: bytes(true, true) },
  'quotes replaced': { normalizer: replaced('``', '"') },
  'lower case': { normalizer: { type: 'Lowercase' } },
  'GPT-2 with ignore_merges': { whole: true },
  'numbers apart': { pre: after([digits(false)], true) },
  'two tokens before a text': { post: begins('<|im_start|>', '<|endoftext|>') },
  'special tokens by tokenizer_config.json alone': { plain: true },
  'Llama 2': { pieces: true, normalizer: LLAMA2 },
  'pieces without a first space': { pieces: true, normalizer: steps(replaced(' ', '▁')) },
  'Metaspace, never': { pieces: true, pre: metaspace('never') },
  'Metaspace, first': { pieces: true, pre: metaspace('first') },
  'Metaspace, always': { pieces: true, pre: metaspace('always') },
  'Metaspace, in parts': { pieces: true, pre: metaspace('never', true) },
  'pieces without bytes': { pieces: true, normalizer: LLAMA2, noBytes: true },
  'tokens in the normalized text': { pieces: true, normalizer: LLAMA2, normalized: true },
};

/** Returns every division of a piece into two others, the best score first. */
function divisions({ tokens, scores }) {
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const all = tokens.flatMap((token, id) => {
    const characters = [...token];
    const cuts = characters
      .slice(1)
      .map((_, at) => [characters.slice(0, at + 1).join(''), characters.slice(at + 1).join('')]);
    return cuts.filter((pair) => pair.every((part) => ids.has(part))).map((pair) => ({ id, pair }));
  });
  return all.sort((a, b) => scores[b.id] - scores[a.id] || a.id - b.id).map(({ pair }) => pair);
}

/**
 * Returns tokenizer.json and tokenizer_config.json of a folder.
 * @param {{ pre?: any, normalizer?: any, post?: any, whole?: boolean, plain?: boolean, pieces?: boolean, noBytes?: boolean, normalized?: boolean }} kind
 */
export function documents({
  pre,
  normalizer = null,
  post = null,
  whole = false,
  plain = false,
  pieces = false,
  noBytes = false,
  normalized = false,
}) {
  const { tokens } = pieces ? BASES.pieces : BASES.bytes;
  const special = pieces ? ['<unk>', '<s>', '</s>', ...SPECIAL] : SPECIAL;
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const entry = (content) => ({
    id: vocab[content],
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized,
    special: true,
  });
  const model = {
    type: 'BPE',
    dropout: null,
    unk_token: pieces ? '<unk>' : null,
    fuse_unk: pieces,
    byte_fallback: pieces && !noBytes,
    ignore_merges: whole,
    vocab,
    merges: pieces
      ? divisions(BASES.pieces)
      : BASES.bytes.merges.filter((pair) => !/\d \d/.test(pair) && !/\d\d/.test(pair)),
  };
  const decoder = pieces
    ? {
        type: 'Sequence',
        decoders: [replaced('▁', ' '), { type: 'ByteFallback' }, { type: 'Fuse' }],
      }
    : bytes(true);
  const added = plain
    ? special.filter((token) => token !== '<|im_end|>' && token !== '<mask>')
    : special;
  const pre_tokenizer = pre ?? (pieces ? null : bytes(true));
  const document = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added.map(entry),
    normalizer,
    pre_tokenizer,
  };
  const named = {
    eos_token: pieces ? '</s>' : '<|im_end|>',
    ...(post ? { bos_token: '<|im_start|>' } : {}),
    ...(plain ? { additional_special_tokens: ['<mask>'] } : {}),
  };
  return [
    { ...document, post_processor: post, decoder, model },
    { tokenizer_class: 'PreTrainedTokenizerFast', ...named },
  ];
}

/** Writes a model of zeros as safetensors. */
function weights(rows) {
  const square = [
    'self_attn.q_proj',
    'self_attn.k_proj',
    'self_attn.v_proj',
    'self_attn.o_proj',
    'mlp.gate_proj',
    'mlp.up_proj',
    'mlp.down_proj',
  ];
  const norms = ['input_layernorm', 'post_attention_layernorm'];
  /** @type {(name: string, ...shape: number[]) => [string, number[]]} */
  const named = (name, ...shape) => [name, shape];
  const shapes = [
    named('model.embed_tokens.weight', rows, 8),
    named('model.norm.weight', 8),
    ...norms.map((name) => named(`model.layers.0.${name}.weight`, 8)),
    ...square.map((name) => named(`model.layers.0.${name}.weight`, 8, 8)),
  ];
  let at = 0;
  const header = Object.fromEntries(
    shapes.map(([name, shape]) => {
      const begin = at;
      at += 4 * shape.reduce((a, b) => a * b);
      return [name, { dtype: 'F32', shape, data_offsets: [begin, at] }];
    }),
  );
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, Buffer.alloc(at)]);
}

const config = (rows) => ({
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_act: 'silu',
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  num_key_value_heads: 1,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
  vocab_size: rows,
});

export async function tokenizers({ tabtune, work, fail }) {
  await installNode();
  const asked = [...TEXTS, ...texts()].slice(0, COUNT);
  const found = [];
  for (const [at, [name, kind]] of Object.entries(FOLDERS).entries()) {
    const [folder, path] = [join(work, `folder-${at}`), join(work, `${at}.gguf`)];
    mkdirSync(folder);
    const rows = (kind.pieces ? BASES.pieces : BASES.bytes).tokens.length;
    const [document, settings] = documents(kind);
    const put = (file, value) => writeFileSync(join(folder, file), JSON.stringify(value));
    put('config.json', config(rows));
    put('tokenizer.json', document);
    put('tokenizer_config.json', settings);
    writeFileSync(join(folder, 'model.safetensors'), weights(rows));
    const refused = await tabtune.convert(folder, path, '--format', 'gguf').then(
      () => undefined,
      (error) => String(error.message),
    );
    const ids = refused ? [] : await Promise.all(asked.map((text) => tabtune.ids(folder, text)));
    if (refused && !refused.includes('export.gguf.tokenizer')) fail(`${name}: ${refused}`);
    const part =
      ['pre_tokenizer', 'normalizer', 'post_processor', 'added_tokens', 'model'].find((word) =>
        refused?.includes(word),
      ) ?? 'its kind';
    found.push({ name, path, ids, refused, part, kind });
  }
  const written = found.filter(({ refused }) => !refused);
  const theirs = await readsVocabularies(
    work,
    written.map(({ path }) => ({ path, texts: asked })),
  );
  const rows = found.map(({ name, ids, part, refused, kind }) => {
    if (refused) return [name, 'refused', part];
    const read = theirs[written.findIndex((one) => one.name === name)];
    if (read.refused) {
      fail(`${name}: llama.cpp refuses the file`);
      return [name, 'not read', ''];
    }
    // Composed texts: the export says that others differ.
    const counted = [...asked.keys()].filter(
      (at) => !kind.normalizer || kind.pieces || asked[at] === asked[at].normalize('NFC'),
    );
    const equal = counted.filter((at) => String(read.ids[at]) === String(ids[at]));
    for (const at of counted.filter((at) => !equal.includes(at)))
      fail(
        `${name}: ids of ${JSON.stringify(asked[at])}: llama.cpp ${read.ids[at]}, tabtune ${ids[at]}`,
      );
    return [name, `${equal.length} of ${counted.length}`, ''];
  });
  return {
    title: 'tokenizers of folders, exported as GGUF',
    words: `${rows.length} folders whose documents have rules of published tokenizers, or rules that no word of llama.cpp has, with vocabularies whose
      tokens cross every border. The texts to which llama.cpp gives the ids that the folder gives them (where a document composes characters, of those
      that are composed, since the export says that others differ), or the part of the document for which the export is refused.`,
    columns: ['folder', 'ids', 'refused for'],
    rows,
  };
}
