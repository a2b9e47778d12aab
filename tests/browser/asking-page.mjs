// Runs in the page: a small model that has a chat template, and its wasm module without the package's worker around it.

import * as tabtune from '/dist/index.js';

/** A template that writes tools by their names, and each message with the token that ends a turn. */
const TEMPLATE =
  '{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.content }}|{% endfor %}';
const SHAPE = {
  hiddenSize: 32,
  numHiddenLayers: 2,
  numAttentionHeads: 2,
  numKeyValueHeads: 1,
  intermediateSize: 64,
  maxPositionEmbeddings: 64,
  initializerRange: 0.2,
};
const TEXT = 'it is a truth | ok? add why not | '.repeat(8);

/** @type {File[] | undefined} */
let files;

/** Returns the files of the model, made once: those of a new one with a template, in whose tokenizer `|` is special. */
export async function talking() {
  if (files) return files;
  const model = await tabtune.newModel(SHAPE, { text: TEXT });
  const trainer = await tabtune.Trainer.create({
    model,
    data: { text: TEXT },
    steps: 1,
    batchSize: 1,
    seqLen: 8,
    seed: 3,
    autosave: false,
  });
  const made = await trainer.exportFiles({ dtype: 'f32' });
  await trainer.dispose();
  const kept = made
    .filter(({ name }) => !/receipt|README|chat_template/.test(name))
    .map(({ name, blob }) => new File([blob], name));
  const others = kept.filter(({ name }) => name !== 'tokenizer.json');
  const [written] = kept.filter((file) => !others.includes(file));
  const tokenizer = JSON.parse(await written.text());
  const id = tokenizer.model.vocab['|'];
  tokenizer.added_tokens = [
    {
      id,
      content: '|',
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    },
  ];
  files = [
    ...others,
    new File([JSON.stringify(tokenizer)], 'tokenizer.json'),
    new File([TEMPLATE], 'chat_template.jinja'),
  ];
  return files;
}

/** @param {string} content @returns {import('tabtune').ChatMessage} */
export const user = (content) => ({ role: 'user', content });
/** @param {string} content @returns {import('tabtune').ChatMessage} */
export const assistant = (content) => ({ role: 'assistant', content });

/**
 * Collects a whole answer: its tokens, its text, and the reason why it ended.
 * @param {AsyncGenerator<import('tabtune').SampledToken, import('tabtune').SampleEnd | undefined>} answer
 */
export async function whole(answer) {
  const tokens = [];
  for (;;) {
    const { value, done } = await answer.next();
    if (done) return { tokens, text: tokens.map(({ text }) => text).join(''), end: value };
    tokens.push(value);
  }
}

/** Rows of chats that all have the same answer. */
export const ROWS = ['it is', 'why not', 'a truth', 'is it', 'not a']
  .map((said) => JSON.stringify({ messages: [user(said), assistant('ok')] }))
  .join('\n');

/** Returns the weights of the same files in the wasm module, and answers with the numbers of prompt tokens that are reused and computed. */
export async function core() {
  const module = await import('/pkg/tabtune.js');
  const { __wasm_call_ctors: construct } = await module.default();
  construct();
  await module.initDevice();
  const read = await Promise.all(
    (await talking()).map(async (file) => ({
      name: file.name,
      bytes: new Uint8Array(await file.arrayBuffer()),
    })),
  );
  const source = ({ name, bytes }) => ({
    name,
    size: bytes.length,
    read: (offset, length) => bytes.subarray(offset, offset + length),
  });
  const answered = async (weights, messages, maxTokens, base = false) => {
    const stream = await weights.chat(messages, { max_tokens: maxTokens, temperature: 0 }, base);
    const ids = [];
    for (let token = await stream.next(); token !== undefined; token = await stream.next())
      ids.push(token.id);
    const prompt = [...stream.promptTokens()];
    stream.free();
    return { ids, prompt };
  };
  const model = module.ModelHandle.open(read.map(source), undefined, [], false, false);
  return {
    module,
    model,
    answered,
    text: (ids) => model.detokenize(Uint32Array.from(ids)),
    data: source({ name: 'rows.jsonl', bytes: new TextEncoder().encode(ROWS) }),
  };
}
