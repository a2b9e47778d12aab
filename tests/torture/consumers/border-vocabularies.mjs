// Two vocabularies, of bytes and of pieces, whose tokens cross every border that a tokenizer's rule can have.
import { BYTES, merged, pairsOf } from './vocabulary.mjs';

/** Texts in which the rules, and the special tokens, differ. */
export const TEXTS = [
  'hello\né',
  ' hello  world ',
  'hi<|im_end|>\n',
  '<s>hello</s> hello<unk>',
  "It's 12345 of  the words,\n\tand don't:  she'LL go.",
  'e\u0301e\u0301 é １２ Ａ。　！你好,世界 ٣٤5 1234567',
  'ПриветМир ÜberGroß ABCdefGHI naïveTest',
  'a<|eot_id|><end_of_turn> b<|endoftext|>  <|end|>',
  '[PAD]<|fim_pad|><|fim_prefix|><|channel|>x<mask> [MASK]',
  "\r\n\n  x\u00a0y   '''''S 1,000,000.00 (a+b)*c==d  /* hi */\n\n\n    done",
];

/** Special tokens at the end of both vocabularies. */
export const SPECIAL = [
  '<|im_start|>',
  '<|im_end|>',
  '<|eot_id|>',
  '<end_of_turn>',
  '<|endoftext|>',
  '<|end|>',
  '<|fim_pad|>',
  '<|fim_prefix|>',
  '<|channel|>',
  '<mask>',
  '[MASK]',
];
/** Types of tokens in a GGUF file. */
export const [NORMAL, UNKNOWN, CONTROL, USER, BYTE] = [1, 2, 3, 4, 6];

/** Learns merges of texts that nothing splits, so that a token crosses every border that a rule can have. */
function learn(texts, count, seed) {
  const known = new Set(seed);
  const merges = [];
  let words = texts;
  while (merges.length < count) {
    const fresh = pairsOf(words).find(([pair]) => !known.has(pair.replace(' ', '')));
    if (!fresh) break;
    const [left, right] = fresh[0].split(' ');
    known.add(left + right);
    merges.push([left, right]);
    words = merged(words, left, right);
  }
  return merges;
}

const plain = TEXTS.map((text) => text.replace(/<[^ >]+>|\[[A-Z]+\]/g, '\n'));

function byteLevel() {
  const merges = learn(
    plain.map((text) => [...Buffer.from(text)].map((byte) => BYTES[byte])),
    260,
    SPECIAL,
  );
  const tokens = [...BYTES, ...merges.map((pair) => pair.join('')), ...SPECIAL];
  const types = tokens.map((token) => (SPECIAL.includes(token) ? CONTROL : NORMAL));
  return { model: 'gpt2', tokens, types, merges: merges.map((pair) => pair.join(' ')) };
}

function pieces() {
  const escaped = plain.map((text) => [...` ${text}`.replace(/ /g, '▁')]);
  const merges = learn(escaped, 160, SPECIAL);
  const characters = [...new Set(escaped.flat())]
    .filter((character) => !'\néＡ٣'.includes(character))
    .sort();
  const usable = merges.filter(([l, r]) =>
    [...(l + r)].every((character) => characters.includes(character)),
  );
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  );
  const made = [...new Set(usable.map((pair) => pair.join('')))].filter(
    (piece) => !characters.includes(piece),
  );
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...made, ...characters, ...SPECIAL];
  const kind = (token, id) =>
    id === 0 ? UNKNOWN : id < 3 || SPECIAL.includes(token) ? CONTROL : id < 259 ? BYTE : NORMAL;
  // Distinct scores; whatever is no piece has one too.
  return {
    model: 'llama',
    tokens,
    types: tokens.map(kind),
    scores: tokens.map((_, id) => (id < 259 ? 0 : 259 - id)),
  };
}

export const BASES = { bytes: byteLevel(), pieces: pieces() };
