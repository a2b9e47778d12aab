// A small byte-level BPE vocabulary, learnt from a text by the rule of arXiv:1508.07909, as the tokenizer.json of each kind that llama.cpp names.

/** Text from which the merges are learnt: words, contractions in both cases, runs of digits, signs before line ends, two scripts. */
const TEXT = `The stars of the northern sky turn about the pole, and the pole star stands still; the others rise and set with the seasons.
It's said that in 1813 there were 3000 stars in the list, 1234 of them named. By 2024 there were 1000000, and 2024 names.
"Don't count," she'd said. "They're countless; we'll name a hundred, we've time, I'm sure."
DON'T COUNT THE STARS! THEY'RE STARS, IT'S TIME. It'S I'M WE'LL
if (x == 1) {
    return x + 10;
}

while (true) { x = x - 1; }

The hours 10:00, 11:30 and 12:45; the years 1999, 2000, 2001; 100 and 1000 and 3.14.
Das Lied der Sterne: größer, schöner. Звёзды, звёзды.
`;

/** Words as Llama 3 splits a text: the splits of the other kinds are inside these. */
const WORDS =
  /'[sStTmMdD]|'[rR][eE]|'[vV][eE]|'[lL][lL]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/** Returns GPT-2's printable character for each byte. */
function alphabet() {
  const printable = (byte) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
}

export const BYTES = alphabet();

/** Returns the pairs of parts that follow each other in these words with their numbers, the most frequent first, then by their texts. */
export function pairsOf(words) {
  const seen = new Map();
  for (const word of words)
    for (let at = 1; at < word.length; at++) {
      const pair = `${word[at - 1]} ${word[at]}`;
      seen.set(pair, (seen.get(pair) ?? 0) + 1);
    }
  return [...seen].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
}

/** Returns the words with this pair as one part. */
export const merged = (words, left, right) =>
  words.map((word) => {
    const out = [];
    for (const part of word) {
      if (part === right && out.at(-1) === left) out[out.length - 1] = left + right;
      else out.push(part);
    }
    return out;
  });

/** Returns the best `count` merges; among equally frequent pairs, the first by their texts. */
export function learn(count) {
  let words = (TEXT.match(WORDS) ?? []).map((word) =>
    [...Buffer.from(word)].map((byte) => BYTES[byte]),
  );
  const merges = [];
  while (merges.length < count) {
    const [[best]] = pairsOf(words);
    const [left, right] = best.split(' ');
    merges.push([left, right]);
    words = merged(words, left, right);
  }
  return merges;
}

const LLAMA_BPE =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const bytes = (useRegex) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: useRegex,
});
const sequence = (first, useRegex) => ({
  type: 'Sequence',
  pretokenizers: [first, bytes(useRegex)],
});
const pattern = (regex) => ({
  type: 'Split',
  pattern: { Regex: regex },
  behavior: 'Isolated',
  invert: false,
});

/** llama.cpp's name of a kind → normalizer, pre-tokenizer, and true if a whole word that is a token skips the merges. */
const KINDS = {
  'gpt-2': [null, bytes(true), false],
  smollm: [null, sequence({ type: 'Digits', individual_digits: true }, true), false],
  'llama-bpe': [null, sequence(pattern(LLAMA_BPE), false), true],
  dbrx: [null, sequence(pattern(LLAMA_BPE), false), false],
  qwen2: [{ type: 'NFC' }, sequence(pattern(LLAMA_BPE.replace('{1,3}', '')), false), false],
};

/** Returns a post-processor that begins a text with the token `bos`. */
const begins = (bos, id) => ({
  type: 'TemplateProcessing',
  single: [{ SpecialToken: { id: bos, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [
    { SpecialToken: { id: bos, type_id: 0 } },
    { Sequence: { id: 'A', type_id: 0 } },
    { Sequence: { id: 'B', type_id: 1 } },
  ],
  special_tokens: { [bos]: { id: bos, ids: [id], tokens: [bos] } },
});

/**
 * Returns the tokenizer.json of a kind, and the id of every token. The special tokens come first or last, as in the published vocabularies of the
 * kind; `bos` precedes every text.
 * @param {{ kind: string, merges: string[][], special: string[], last: boolean, bos?: string }} vocabulary
 */
export function tokenizer({ kind, merges, special, last, bos }) {
  const plain = [...BYTES, ...merges.map((pair) => pair.join(''))];
  const texts = last ? [...plain, ...special] : [...special, ...plain];
  const ids = Object.fromEntries(texts.map((text, id) => [text, id]));
  const [normalizer, pre, whole] = KINDS[kind];
  const added = special.map((content) => ({
    id: ids[content],
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  // Tokens that are in no vocabulary get the ids after it, so those that come first are in it.
  const vocab = Object.fromEntries(
    Object.entries(ids).filter(([text]) => !last || !special.includes(text)),
  );
  const model = {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: whole,
    vocab,
    merges: merges.map((pair) => pair.join(' ')),
  };
  const document = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer,
    pre_tokenizer: pre,
    post_processor: bos ? begins(bos, ids[bos]) : null,
    decoder: bytes(true),
    model,
  };
  return { document, ids };
}
