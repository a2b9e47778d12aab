// The documents of tokenizers in folders: rules of published ones, and rules that no word of llama.cpp has.
import { BASES, SPECIAL } from './border-vocabularies.mjs';

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
