// Folders of safetensors, whole and in shards, from folders and from GGUF files: read by Python's safetensors, run by transformers.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NAMES, makeModels } from '../make-models.mjs';
import { installPython, installTransformers, transformers } from './install.mjs';
import { POSITIONS, compareOwn } from './judge.mjs';
import { forward, readsSafetensors, transformersReads } from './programs.mjs';
import { figure, ownAs } from './report.mjs';

/** Models that transformers 4.44 supports: its Llama supports no head of another width, and it lacks Qwen3. */
const RUN = ['llama-3', 'llama-tied', 'qwen2', 'gpt2'];
/** Shard size that gives a few shards for each model. */
const SHARD_BYTES = 150_000;
const ALLOWED = 1e-4;
const TEXT = 'The stars of the northern sky turn about the pole; in 2024';

/** Conversions to a folder: name → dtype, and the options. */
const WAYS = {
  f32: ['F32', '--dtype', 'f32'],
  f16: ['F16', '--dtype', 'f16'],
  bf16: ['BF16', '--dtype', 'bf16'],
  sharded: ['F32', '--shard-bytes', String(SHARD_BYTES)],
  'f16, sharded': ['F16', '--dtype', 'f16', '--shard-bytes', String(SHARD_BYTES / 2)],
  'bf16, sharded': ['BF16', '--dtype', 'bf16', '--shard-bytes', String(SHARD_BYTES / 2)],
  'from-gguf': ['F32'],
};

/** Returns the ids at which the converted model ends. */
const endsOf = (folder) =>
  [JSON.parse(readFileSync(join(folder, 'generation_config.json'), 'utf8')).eos_token_id].flat();

export async function folders({ tabtune, work, fail }) {
  await installPython();
  await installTransformers();
  const source = (model) => join(work, 'models', model);
  makeModels(join(work, 'models'));
  const made = NAMES.flatMap((model) =>
    Object.keys(WAYS).map((way) => ({
      model,
      way,
      folder: join(work, `${model}-${way.replace(', ', '-')}`),
    })),
  );
  for (const { model, way, folder } of made) {
    const [, ...options] = WAYS[way];
    let from = source(model);
    if (way === 'from-gguf') {
      from = `${folder}.gguf`;
      await tabtune.convert(source(model), from, '--format', 'gguf', '--type', 'f32');
    }
    await tabtune.convert(from, folder, '--format', 'safetensors', ...options);
  }
  const read = await readsSafetensors(
    work,
    made.map(({ model, way, folder }) => ({ folder, source: source(model), dtype: WAYS[way][0] })),
  );

  const ids = Object.fromEntries(
    await Promise.all(RUN.map(async (model) => [model, await tabtune.ids(source(model), TEXT)])),
  );
  const run = made.filter(({ model }) => RUN.includes(model));
  // The expected results are computed from the values that a folder holds, rounded or not.
  const logits = (folder) => `${folder}.npy`;
  const exact = await forward(
    work,
    run.map(({ model, folder }) => ({
      path: folder,
      ids: ids[model],
      count: POSITIONS,
      logits: logits(folder),
    })),
  );
  const job = ({ model, folder }) => ({
    folder,
    ids: ids[model],
    logits: logits(folder),
    ends: endsOf(source(model)),
  });
  const ran = await transformersReads(work, transformers, run.map(job));
  const own = [];
  for (const [at, { model, folder }] of run.entries()) {
    own.push(
      compareOwn(
        exact[at].positions,
        await tabtune.continued(folder, TEXT, POSITIONS),
        ids[model].length,
      ),
    );
  }

  const rows = made.map(({ model, way, folder }, at) => {
    const place = run.findIndex((each) => each.folder === folder);
    const found = ran[place];
    const name = `${model}, ${way}`;
    for (const wrong of read[at].wrong) fail(`${name}: ${wrong}`);
    if (way.includes('sharded') && read[at].files < 2) fail(`${name}: ${read[at].files} file`);
    const cells = [
      model,
      way,
      `${read[at].files}`,
      read[at].wrong.length === 0 ? `${read[at].tensors} equal` : 'WRONG',
    ];
    if (!found) return [...cells, '', '', '', ''];
    for (const wrong of own[place].wrong) fail(`${name}: ${wrong}`);
    if (!(found.worst <= ALLOWED)) fail(`${name}: transformers' logits are off by ${found.worst}`);
    if (found.tokenizer) fail(`${name}: transformers' tokenizer: ${found.tokenizer}`);
    else if (String(found.ids) !== String(ids[model]))
      fail(
        `${name}: transformers' ids of ${JSON.stringify(found.text)}: ${found.ids}, expected ${ids[model]}`,
      );
    const stopped = found.stops.filter(({ end, said }) => String(said) === String([end]));
    for (const { end, prompt, said } of found.stops)
      if (String(said) !== String([end]))
        fail(`${name}: after ${prompt} the end ${end} gives ${said}`);
    return [
      ...cells,
      figure(found.worst),
      figure(found.largest),
      `${stopped.length} of ${found.stops.length}`,
      ownAs(own[place]),
    ];
  });
  return {
    title: 'folders of safetensors',
    words: `For each folder: its files, the tensors in which Python's safetensors finds the names, dtypes, shapes and bytes of the model (rounded to nearest where the dtype is another);
how far the logits of transformers 4.44.2, computed in F32, are off over a text from those of the values that the folder holds (allowed ${figure(ALLOWED)}), the largest of them, and at
how many of the model's end ids its \`generate\` stops, which passes them when it is given none; and how far tabtune's own log-probabilities of the folder are off, in parts of
the largest logit (and at how many positions). transformers 4.44 has no Qwen3, and no Llama whose heads have a width of their own.`,
    columns: [
      'model',
      'way',
      'files',
      'tensors',
      'logits off by',
      'largest logit',
      'ends',
      'tabtune off by',
    ],
    rows,
  };
}
