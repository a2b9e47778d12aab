// Small models of every family in every type: read and run by other programs.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { NAMES, makeModels } from '../make-models.mjs';
import { installNode, installPython } from './install.mjs';
import {
  POSITIONS,
  compareHeaders,
  compareOwn,
  comparePositions,
  compareTexts,
  texts,
} from './judge.mjs';
import { forward, headers, readsGguf, runs } from './programs.mjs';
import { prove, proved, sum } from './proved.mjs';
import { figure, ownAs, ranAs } from './report.mjs';

const PLAIN = ['f32', 'f16', 'bf16', 'q8_0'];
/** Types with blocks of 256 for the model whose rows consist of whole blocks; the other block types, and rows that fall back, on one model each. */
const MORE = {
  wide: ['q4_k', 'q6_k', 'q4_k_m'],
  'llama-3': ['q4_0', 'q4_1', 'q5_0', 'q5_1', 'q4_k_m'],
  gpt2: ['q4_k_m'],
};
const PROMPT = 'The stars of the northern sky turn about the pole; in 2024';
/** Returns the prompt of a model; that of llama-3 begins with its own token. */
const promptOf = (model) => `${model === 'llama-3' ? '<|begin_of_text|>' : ''}${PROMPT}`;

/** Every file of the part: `<model>-<type>.gguf`, which is also the name inside it. */
export const FILES = NAMES.flatMap((model) =>
  [...PLAIN, ...(MORE[model] ?? [])].map((type) => ({
    model,
    type,
    name: `${model}-${type}.gguf`,
  })),
);

/** Creates the models in `work` and converts all of them. */
export async function convertAll(tabtune, work) {
  makeModels(join(work, 'models'));
  for (const { model, type, name } of FILES) {
    await tabtune.convert(
      join(work, 'models', model),
      join(work, name),
      '--format',
      'gguf',
      '--type',
      type,
    );
  }
}

/** Returns name → SHA-256 of the models, and of their conversions. */
export function sums(work) {
  const folder = join(work, 'models');
  const paths = NAMES.flatMap((model) =>
    readdirSync(join(folder, model)).map((file) => `${model}/${file}`),
  );
  const models = paths.map((path) => [path, sum(join(folder, path))]);
  return {
    models: Object.fromEntries(models),
    files: Object.fromEntries(FILES.map(({ name }) => [name, sum(join(work, name))])),
  };
}

/** Returns the differences from the committed list, without any other program. */
export async function checkSums(tabtune, work) {
  await convertAll(tabtune, work);
  const [found, expected] = [sums(work), proved()];
  return ['models', 'files'].flatMap((kind) => {
    const names = new Set([...Object.keys(found[kind]), ...Object.keys(expected[kind])]);
    const other = [...names].filter((name) => found[kind][name] !== expected[kind][name]);
    return other.map(
      (name) => `${name} has the sum ${found[kind][name]}, proved was ${expected[kind][name]}`,
    );
  });
}

/** Returns tabtune's ids of the texts by each model's tokenizer.json, and checks that its own GGUF reproduces them. */
async function tokenized(tabtune, work, asked, fail) {
  const out = {};
  for (const model of NAMES) {
    out[model] = [];
    for (const text of asked) {
      const ids = await tabtune.ids(join(work, 'models', model), text);
      const again = await tabtune.ids(join(work, `${model}-f32.gguf`), text);
      if (String(ids) !== String(again))
        fail(
          `${model}: tabtune's ids of ${JSON.stringify(text)} from the folder and from the file`,
        );
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
  const source = (model) => join(work, 'models', model);
  const prompts = {};
  for (const model of NAMES) prompts[model] = await tabtune.ids(source(model), promptOf(model));

  const path = ({ name }) => join(work, name);
  const exact = await forward(
    work,
    FILES.map((file) => ({ path: path(file), ids: prompts[file.model], count: POSITIONS })),
  );
  const before = await forward(
    work,
    NAMES.map((model) => ({ path: source(model), ids: prompts[model], count: POSITIONS })),
  );
  const wanted = exact.map(({ positions }) => positions.map(({ top }) => top.map(([id]) => id)));
  const ran = await runs(
    work,
    FILES.map((file, at) => ({
      path: path(file),
      ids: exact[at].ids,
      wanted: wanted[at],
      texts: asked,
    })),
  );
  const read = await readsGguf(
    work,
    FILES.map((file) => ({ path: path(file), folder: source(file.model), type: file.type })),
  );
  const listed = await headers(work, FILES.map(path));

  const rows = [];
  for (const [at, file] of FILES.entries()) {
    const { model, type, name } = file;
    const positions = comparePositions(type, exact[at].positions, ran[at].positions);
    const own = compareOwn(
      exact[at].positions,
      await tabtune.continued(path(file), promptOf(model), POSITIONS),
      prompts[model].length,
    );
    const wrongTexts = compareTexts(asked, expected[model], ran[at].texts);
    const [inspected] = await tabtune.lines('inspect', path(file));
    const plain = ['F32', 'F16', 'BF16'];
    const inventory = read[at].tensors.map(({ name, dtype, shape }) => ({
      name,
      dtype: plain.includes(dtype) ? dtype : `GGML:${dtype}`,
      shape,
    }));
    const wrongHeader = compareHeaders(read[at], listed[at]);
    if (JSON.stringify(inspected.inventory) !== JSON.stringify(inventory))
      wrongHeader.push('tabtune inspect lists other tensors than gguf-py');
    // The file computes the same as the folder before the conversion.
    const again = exact[at].positions.map(({ top }) => ({
      best: top[0][0],
      of: top.map(([, log]) => log),
    }));
    const changed =
      type === 'f32'
        ? comparePositions(type, before[NAMES.indexOf(model)].positions, again).wrong
        : [];
    const wrong = [
      ...positions.wrong,
      ...own.wrong,
      ...wrongTexts,
      ...wrongHeader,
      ...read[at].wrong,
      ...changed,
    ];
    for (const words of wrong) fail(`${name}: ${words}`);
    const blocks = read[at].worst ? `${figure(read[at].worst)} of a run` : 'equal';
    const bytes = read[at].wrong.length === 0 ? `${read[at].tensors.length}, ${blocks}` : 'WRONG';
    const tokenised = `${asked.length - wrongTexts.length} of ${asked.length}`;
    const same = wrongHeader.length === 0 ? 'equal' : 'WRONG';
    rows.push([
      model,
      type,
      ...ranAs(positions, exact[at].positions),
      tokenised,
      bytes,
      same,
      ownAs(own),
    ]);
  }
  return {
    title: 'small models of every family',
    words: `For each file: the largest difference between llama.cpp's and the expected log-probabilities of the five best tokens, over the positions of a prompt and
${POSITIONS} best tokens after it, and its share of what is allowed (F32 1e-4, F16 and BF16 2e-3, blocks 0.01 of the file's largest logit); how often the best
token is the same, which it must be where it is ahead by more than twice that; the texts to which llama.cpp gives the ids of tokenizer.json; the tensors whose bytes gguf-py
encodes to the same (K types: their largest error); whether @huggingface/gguf and \`tabtune inspect\` list the same; and how far tabtune's own log-probabilities of the
same file are off, in parts of the largest logit (and at how many positions: it stops at an end).`,
    columns: [
      'model',
      'type',
      'llama.cpp off by',
      'of what is allowed',
      'best tokens',
      'texts',
      'gguf-py',
      'headers',
      'tabtune off by',
    ],
    rows,
    prove: () => {
      const { models, files } = sums(work);
      prove(models, files);
    },
  };
}
