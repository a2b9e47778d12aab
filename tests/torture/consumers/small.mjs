// Small models of every family in every type: read and run by other programs.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { NAMES, makeModels } from '../make-models.mjs';
import { installNode, installPython } from './install.mjs';
import { POSITIONS, compareHeaders, compareOwn, comparePositions, compareTexts, texts } from './judge.mjs';
import { forward, headers, readsGguf, runs } from './programs.mjs';
import { prove, proved, sum } from './proved.mjs';
import { figure } from './report.mjs';

const PLAIN = ['f32', 'f16', 'bf16', 'q8_0'];
/** Types of blocks of 256 for the model whose rows have whole ones; the other block types, and rows that fall back, on one model each. */
const MORE = { wide: ['q4_k', 'q6_k', 'q4_k_m'], 'llama-3': ['q4_0', 'q4_1', 'q5_0', 'q5_1', 'q4_k_m'], gpt2: ['q4_k_m'] };
const PROMPT = 'The stars of the northern sky turn about the pole; in 2024';
/** The prompt of a model; that of llama-3 begins with its own token. */
const promptOf = (model) => `${model === 'llama-3' ? '<|begin_of_text|>' : ''}${PROMPT}`;

/** Every file of the part: `<model>-<type>.gguf`, which is also the name inside it. */
export const FILES = NAMES.flatMap((model) => [...PLAIN, ...(MORE[model] ?? [])].map((type) => ({ model, type, name: `${model}-${type}.gguf` })));

/** Makes the models in `work` and converts them all. */
export async function convertAll(tabtune, work) {
  makeModels(join(work, 'models'));
  for (const { model, type, name } of FILES) {
    await tabtune.convert(join(work, 'models', model), join(work, name), '--format', 'gguf', '--type', type);
  }
}

/** Name → SHA-256 of the models, and of what they were converted to. */
export function sums(work) {
  const folder = join(work, 'models');
  const models = NAMES.flatMap((model) => readdirSync(join(folder, model)).map((file) => [`${model}/${file}`, sum(join(folder, model, file))]));
  return { models: Object.fromEntries(models), files: Object.fromEntries(FILES.map(({ name }) => [name, sum(join(work, name))])) };
}

/** What differs from the committed list, without any other program. */
export async function checkSums(tabtune, work) {
  await convertAll(tabtune, work);
  const [found, expected] = [sums(work), proved()];
  return ['models', 'files'].flatMap((kind) =>
    [...new Set([...Object.keys(found[kind]), ...Object.keys(expected[kind])])].filter((name) => found[kind][name] !== expected[kind][name]).map((name) => `${name} is ${found[kind][name]}, proved was ${expected[kind][name]}`),
  );
}

/** tabtune's ids of the texts by each model's tokenizer.json, and whether its own GGUF gives them again. */
async function tokenized(tabtune, work, asked, fail) {
  const out = {};
  for (const model of NAMES) {
    out[model] = [];
    for (const text of asked) {
      const ids = await tabtune.ids(join(work, 'models', model), text);
      const again = await tabtune.ids(join(work, `${model}-f32.gguf`), text);
      if (String(ids) !== String(again)) fail(`${model}: tabtune's ids of ${JSON.stringify(text)} from the folder and from the file`);
      out[model].push(ids);
    }
  }
  return out;
}

export async function small({ tabtune, work, fail }) {
  await installNode();
  await installPython();
  await convertAll(tabtune, work);
  const asked = texts();
  const expected = await tokenized(tabtune, work, asked, fail);
  const prompts = Object.fromEntries(await Promise.all(NAMES.map(async (model) => [model, await tabtune.ids(join(work, 'models', model), promptOf(model))])));

  const path = ({ name }) => join(work, name);
  const exact = await forward(work, FILES.map((file) => ({ path: path(file), ids: prompts[file.model], count: POSITIONS })));
  // The folder itself, before it was converted.
  const source = await forward(work, NAMES.map((model) => ({ path: join(work, 'models', model), ids: prompts[model], count: POSITIONS })));
  const wanted = exact.map(({ positions }) => positions.map(({ top }) => top.map(([id]) => id)));
  const ran = await runs(work, FILES.map((file, at) => ({ path: path(file), ids: exact[at].ids, wanted: wanted[at], texts: asked })));
  const read = await readsGguf(work, FILES.map((file) => ({ path: path(file), folder: join(work, 'models', file.model), type: file.type })));
  const listed = await headers(work, FILES.map(path));

  const rows = [];
  for (const [at, file] of FILES.entries()) {
    const { model, type, name } = file;
    const positions = comparePositions(type, exact[at].positions, ran[at].positions);
    const own = compareOwn(exact[at].positions, await tabtune.continued(path(file), promptOf(model), POSITIONS), prompts[model].length);
    const wrongTexts = compareTexts(asked, expected[model], ran[at].texts);
    const [inspected] = await tabtune.lines('inspect', path(file));
    const plain = ['F32', 'F16', 'BF16'];
    const inventory = read[at].tensors.map(({ name, dtype, shape }) => ({ name, dtype: plain.includes(dtype) ? dtype : `GGML:${dtype}`, shape }));
    const wrongHeader = compareHeaders(read[at], listed[at]);
    if (JSON.stringify(inspected.inventory) !== JSON.stringify(inventory)) wrongHeader.push('tabtune inspect lists other tensors than gguf-py');
    const asFolder = type === 'f32' ? comparePositions('f32', source[NAMES.indexOf(model)].positions, exact[at].positions.map(({ top }) => ({ best: top[0][0], of: top.map(([, log]) => log) }))).wrong : [];
    for (const wrong of [...positions.wrong, ...own.wrong, ...wrongTexts, ...wrongHeader, ...read[at].wrong, ...asFolder]) fail(`${name}: ${wrong}`);
    const count = exact[at].positions.length;
    const blocks = read[at].worst ? `${figure(read[at].worst)} of a run` : 'equal';
    rows.push([model, type, figure(positions.worst), `${(100 * positions.share).toFixed(0)} %`, `${positions.bests} of ${count}`, `${asked.length - wrongTexts.length} of ${asked.length}`, read[at].wrong.length === 0 ? `${read[at].tensors.length}, ${blocks}` : 'WRONG', wrongHeader.length === 0 ? 'equal' : 'WRONG', `${figure(own.worst)} (${own.count})`]);
  }
  return {
    title: 'small models of the four families',
    words: `For each file: the largest difference between llama.cpp's and the expected log-probabilities of the five best tokens, over the positions of a prompt and
${POSITIONS} best tokens after it, and its share of what is allowed (F32 1e-4, F16 and BF16 2e-3, blocks 0.01 of the file's largest logit); how often the best
token is the same, which it must be where it is ahead by more than twice that; the texts to which llama.cpp gives the ids of tokenizer.json; the tensors whose bytes gguf-py
encodes exact (K types: their largest error); whether @huggingface/gguf and \`tabtune inspect\` list the same; and how far tabtune's own log-probabilities of the
same file are off, in parts of the largest logit (and at how many positions: it stops at an end).`,
    columns: ['model', 'type', 'llama.cpp off by', 'of what is allowed', 'best tokens', 'texts', 'gguf-py', 'headers', 'tabtune off by'],
    rows,
    prove: () => existsSync(work) && prove(...Object.values(sums(work))),
  };
}
