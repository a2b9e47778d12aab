// Models of every family, trained from nothing: their GGUF files and adapters in llama.cpp, their adapters in PEFT.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { firstLoss } from '../lora/peft.mjs';
import { data, exported, train } from '../lora/trained.mjs';
import { installNode, installPeft } from './install.mjs';
import { POSITIONS, comparePositions } from './judge.mjs';
import { peftReads, runs } from './programs.mjs';
import { figure, ranAs } from './report.mjs';

const GOLDEN = join(root, 'tests', 'golden', 'models');
const TEXT = join(root, 'web', 'demo', 'assets', 'pride-and-prejudice.txt');
const VOCABULARY = 384;
const TYPES = ['f32', 'f16', 'q8_0'];
const PROMPT = 'It is a truth universally acknowledged';
/** Settings of the run from nothing. After these steps the logits spread, so that an error would show. */
const RUN = '--steps 60 --batch-size 2 --seq-len 64 --learning-rate 0.005 --device cpu --seed 1';
/** Families with GELU, which llama.cpp looks up in a table of F16, and the error that it allows. */
const GELU = /^(gemma|gpt2)/;
const TABLE = 5e-4;
/** Families whose adapters transformers 4.44 and PEFT can read. */
const KNOWN = ['gemma2', 'mistral', 'qwen2'];
/** Number of ids whose loss is compared. */
const IDS = 65;
const ADAPTER = { r: 4, alpha: 8, target_modules: 'all-linear' };
const LOSS_OFF = 1e-5;
/** Fifty times the allowed error. */
const LEAST_MOVED = 0.005;

/** Settings in which every row of a matrix consists of whole blocks of Q8_0. */
const SETTINGS = {
  hidden_size: 64,
  n_embd: 64,
  intermediate_size: 96,
  shared_intermediate_size: 96,
  block_ff_dim: 96,
  head_dim: 16,
  linear_key_head_dim: 16,
  linear_value_head_dim: 16,
  max_position_embeddings: 128,
  n_positions: 128,
  query_pre_attn_scalar: 16,
  // Granite 4 without rotation has no GGUF.
  position_embedding_type: 'rope',
};

/** Returns the configuration of a golden model with these settings. @param {string} name */
function widened(name) {
  const config = JSON.parse(readFileSync(join(GOLDEN, name, 'config.json'), 'utf8'));
  const before = config.head_dim ?? config.hidden_size / config.num_attention_heads;
  for (const [key, value] of Object.entries(SETTINGS)) if (key in config) config[key] = value;
  const scaling = config.rope_scaling ?? {};
  // GGUF can state the published numbers alone.
  if (scaling.rope_type === 'llama3') {
    config.rope_theta = 500_000;
    scaling.original_max_position_embeddings = 2048;
  }
  // llama.cpp sees through windows of Phi-3, and takes the factors of long texts where its context is longer than the original one.
  if (name === 'phi3')
    Object.assign(config, {
      sliding_window: null,
      original_max_position_embeddings: 512,
      max_position_embeddings: 1024,
    });
  // One factor for each pair of dimensions that rotate.
  for (const key of ['short_factor', 'long_factor'])
    scaling[key] &&= scaling[key].flatMap((/** @type {number} */ each) =>
      Array(SETTINGS.head_dim / before).fill(each),
    );
  return config;
}

/** Returns what a model says of the tokens after the prompt, as the judge takes it. */
async function said(tabtune, model, ...options) {
  const lines = await tabtune.lines(
    ...['generate', '--model', model, `--prompt=${PROMPT}`, '--max-tokens', `${POSITIONS}`],
    ...['--temperature', '0', '--top-logprobs', `${VOCABULARY}`, '--device', 'cpu', ...options],
  );
  return lines
    .filter(({ top }) => top)
    .map(({ top }) => {
      const logs = top.map(({ id, prob }) => [id, Math.log(prob)]);
      // Half the range of the logits, which is at most the largest of them.
      const largest = (logs[0][1] - logs.at(-1)[1]) / 2;
      return { top: logs.slice(0, 5), gap: logs[0][1] - logs[1][1], largest };
    });
}

/**
 * Compares the losses of adapters with those of PEFT: one that tabtune trains on the run's model, and one that PEFT saves. Returns the larger relative
 * difference.
 */
async function inPeft(tabtune, work, fail, name, run) {
  const [base, at] = [join(work, `${name}-folder`), join(work, `${name}-of-folder`)];
  await tabtune.convert(run, base, '--format', 'safetensors');
  await train(tabtune, work, base, ADAPTER, at);
  const own = await exported(tabtune, fail, at, `${at}-peft`, '--format', 'peft');
  const theirs = join(work, `${name}-theirs`);
  const config = { r: 4, lora_alpha: 8, lora_dropout: 0, target_modules: 'all-linear' };
  const ids = (await tabtune.ids(base, readFileSync(data, 'utf8').slice(0, 600))).slice(0, IDS);
  const answers = await peftReads(work, [
    { base, adapter: own, ids },
    { base, save: theirs, ids, config, seed: 1 },
  ]);
  const offs = [];
  for (const [place, adapter] of [own, theirs].entries()) {
    const { loss, unused = [], missing = [], other = [] } = answers[place];
    offs.push(Math.abs((await firstLoss(tabtune, work, base, adapter, ids)) / loss - 1));
    for (const [what, names] of Object.entries({ unused, missing, other }))
      if (names.length > 0) fail(`${name}: ${what} in PEFT: ${names.slice(0, 3).join(', ')}`);
  }
  const off = Math.max(...offs);
  if (!(off <= LOSS_OFF)) fail(`${name}: a loss is off from PEFT's by ${off}`);
  return off;
}

export async function trained({ tabtune, work, fail }) {
  await installNode();
  await installPeft();
  const tokenizer = join(work, 'tokenizer.json');
  await tabtune.lines(
    ...['tokenizer', 'train', '--vocab-size', `${VOCABULARY}`, '--out', tokenizer, TEXT],
  );
  /** @type {{ name: string, type: string, path: string, lora?: string, ours: Awaited<ReturnType<typeof said>> }[]} */
  const cases = [];
  /** @type {Record<string, number>} */
  const losses = {};
  const names = readdirSync(GOLDEN, { withFileTypes: true }).filter((each) => each.isDirectory());
  for (const { name } of names) {
    const [config, run] = [join(work, `${name}.json`), join(work, `${name}-run`)];
    writeFileSync(config, JSON.stringify(widened(name)));
    await tabtune.lines(
      ...['train', '--config', config, '--tokenizer', tokenizer, '--data', TEXT, '--out', run],
      ...RUN.split(' '),
    );
    if (KNOWN.includes(name)) losses[name] = await inPeft(tabtune, work, fail, name, run);
    for (const type of TYPES) {
      const path = join(work, `${name}-${type}.gguf`);
      // llama.cpp expects certain tokens in a model whose name has "phi3" in it.
      const named = ['--name', 'trained', '--type', type];
      await tabtune.convert(run, path, '--format', 'gguf', ...named);
      cases.push({ name, type, path, ours: await said(tabtune, path) });
    }
    const [base, at] = [join(work, `${name}-f32.gguf`), join(work, `${name}-adapter`)];
    await train(tabtune, work, base, ADAPTER, at);
    const lora = await exported(
      ...[tabtune, fail, at, `${at}.gguf`, '--format', 'gguf-adapter', '--base', base],
    );
    const ours = await said(tabtune, base, '--adapter', at);
    // An adapter that changes nothing would prove nothing.
    const [plain] = await said(tabtune, base);
    const moved = Math.abs(ours[0].top[0][1] - plain.top[0][1]);
    if (!(moved >= LEAST_MOVED)) fail(`${name}: the adapter moves a log-probability by ${moved}`);
    cases.push({ name, type: 'f32', path: base, lora, ours });
  }
  const prompt = await tabtune.ids(cases[0].path, PROMPT);
  const ran = await runs(
    work,
    cases.map(({ path, lora, ours }) => {
      const wanted = ours.map(({ top }) => top.map(([id]) => id));
      // The best tokens follow the prompt; the probabilities after its other tokens are not compared.
      const ids = [...prompt, ...ours.slice(0, -1).map(({ top }) => top[0][0])];
      return { path, lora, ids, wanted: [...prompt.slice(1).map(() => []), ...wanted] };
    }),
  );
  const rows = cases.map(({ name, type, lora, ours }, at) => {
    const theirs = ran[at].positions.slice(prompt.length - 1);
    const found = comparePositions(
      type,
      ours,
      theirs,
      type === 'f32' && GELU.test(name) ? TABLE : 0,
    );
    const row = `${name}, ${type}${lora ? ' with an adapter' : ''}`;
    for (const words of found.wrong) fail(`${row}: ${words}`);
    const loss = lora && name in losses ? figure(losses[name]) : '';
    return [name, type, lora ? 'adapter' : '', ...ranAs(found, ours), loss];
  });
  return {
    title: 'models of every family, trained from nothing',
    words: `The configuration of each golden model with wider matrices, trained for 60 steps on a book with a vocabulary of ${VOCABULARY} tokens, and written as GGUF; and an adapter, trained on the F32 file
for 30 steps. For each: how far llama.cpp's log-probabilities of the five best tokens are off from tabtune's own, computed in F32 from the values of the file, at ${POSITIONS}
best tokens after a prompt; its share of what is allowed (F32 1e-4, with GELU, which it looks up in a table, 6e-4, F16 2e-3, Q8_0 0.01 of half the range of the logits); and how often the best token is the same. Where transformers 4.44.2 has the family: how far
the loss of an adapter that tabtune trained, and of one that PEFT 0.17.1 saved, are off from PEFT's in float64 (allowed ${LOSS_OFF} relative).`,
    columns: [
      'model',
      'type',
      'adapter',
      'llama.cpp off by',
      'of what is allowed',
      'best tokens',
      'PEFT off by',
    ],
    rows,
  };
}
