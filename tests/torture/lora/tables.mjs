// Adapters of Python PEFT whose files have more than pairs of matrices, or names without a tensor: their results when merged.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installPeft } from '../consumers/install.mjs';
import { peftReads } from '../consumers/programs.mjs';
import { figure } from '../consumers/report.mjs';
import { makeModels } from '../make-models.mjs';

const NEW_TOKENS = 3;
/** Maximum error relative to the largest logit: some roundings of an f32. */
const LARGEST_OFF = 1e-6;

/** Returns settings of PEFT by the unusual property of their files. `grow`: the vocabulary was resized before. */
function kinds(model) {
  const [wide, other, table, head] =
    model === 'gpt2'
      ? ['c_attn', 'c_fc', 'wte', 'lm_head']
      : ['q_proj', 'v_proj', 'embed_tokens', 'lm_head'];
  const tied = model !== 'llama-3';
  const of = (more) => ({
    r: 4,
    lora_alpha: 8,
    lora_dropout: 0,
    target_modules: [wide],
    fan_in_fan_out: model === 'gpt2',
    ...more,
  });
  const both = tied ? [table] : [table, head];
  return {
    'a table saved': { config: of({ modules_to_save: [table] }) },
    'a head saved': { config: of({ modules_to_save: [head] }) },
    'a table as target': { config: of({ target_modules: [wide, table] }) },
    'a larger vocabulary': { config: of({}), grow: NEW_TOKENS },
    'a larger vocabulary, saved': { config: of({ modules_to_save: both }), grow: NEW_TOKENS },
    'modules left out': { config: of({ target_modules: [wide, other], exclude_modules: [other] }) },
    'a target that is not there': { config: of({ target_modules: [wide, 'query_key_value'] }) },
  };
}

export async function tables({ tabtune, work, fail }) {
  await installPeft();
  makeModels(join(work, 'models'));
  const text = readFileSync(join(root, 'LICENSE'), 'utf8').slice(0, 400);
  const cases = [];
  for (const model of ['llama-3', 'llama-tied', 'gpt2']) {
    const base = join(work, 'models', model);
    const rows = JSON.parse(readFileSync(join(base, 'config.json'), 'utf8')).vocab_size;
    const known = (await tabtune.ids(base, text)).slice(0, 40);
    for (const [which, { config, grow = 0 }] of Object.entries(kinds(model))) {
      const ids = [...known, ...Array.from({ length: grow }, (_, at) => rows + at)];
      cases.push({
        model,
        which,
        base,
        ids,
        config,
        grow,
        adapter: join(work, `${model}-${cases.length}`),
      });
    }
  }
  await peftReads(
    work,
    cases.map(({ base, adapter, ids, config, grow }, seed) => ({
      base,
      save: adapter,
      ids,
      config,
      seed,
      grow,
    })),
  );
  for (const { base, adapter, grow } of cases) {
    await tabtune.convert(
      base,
      `${adapter}-merged`,
      '--merge-adapter',
      adapter,
      '--dtype',
      'f32',
      ...(grow > 0 ? ['--resize-vocabulary'] : []),
    );
  }
  const answers = await peftReads(
    work,
    cases.map(({ base, adapter, ids, grow }) => ({
      base,
      adapter,
      ids,
      grow,
      merged: `${adapter}-merged`,
    })),
  );
  const rows = cases.map(({ model, which }, at) => {
    const { off, largest } = answers[at];
    if (!(off <= LARGEST_OFF * largest))
      fail(`${model}, ${which}: logits off by ${off}, the largest is ${largest}`);
    return [model, which, largest.toFixed(3), figure(off / largest)];
  });
  return {
    title: "PEFT's saved tables, larger vocabularies and names without a tensor, merged",
    words: `Folders that PEFT saved with random factors, merged into F32 by tabtune. The logits of the merged folder, in float64, compared with those of PEFT's model of base and
adapter, as a share of the largest (allowed ${LARGEST_OFF}: the merged values are F32). A larger vocabulary has ${NEW_TOKENS} tokens more, which occur in the text.`,
    columns: ['model', 'adapter', 'largest logit', 'off by, of it'],
    rows,
  };
}

/** Tests adapters of a model that was trained from another, which its config.json names. */
export async function auto({ tabtune, work, fail }) {
  await installPeft();
  makeModels(join(work, 'models'));
  const tuned = join(work, 'tuned');
  cpSync(join(work, 'models', 'llama-tied'), tuned, { recursive: true });
  const config = join(tuned, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      ...JSON.parse(readFileSync(config, 'utf8')),
      _name_or_path: join(work, 'models', 'llama-tied'),
    }),
  );
  const run = join(work, 'run');
  const settings = [
    '--lora',
    '--lora-r',
    '2',
    '--steps',
    '2',
    '--batch-size',
    '1',
    '--seq-len',
    '16',
    '--learning-rate',
    '1e-3',
    '--device',
    'cpu',
  ];
  await tabtune.lines(
    'train',
    '--model',
    tuned,
    '--data',
    join(root, 'LICENSE'),
    ...settings,
    '--out',
    run,
  );
  const rows = [];
  /** @type {[string, string[], (found: { base?: string, refused?: string }) => boolean][]} */
  const exported = [
    ['not named', [], ({ base, refused }) => base === undefined && refused !== undefined],
    ['named', ['--base-model', tuned], ({ base }) => base === tuned],
  ];
  for (const [which, options, right] of exported) {
    const to = join(work, which);
    await tabtune.lines('export', '--checkpoint', run, '--to', to, '--format', 'peft', ...options);
    const [answer] = await peftReads(work, [{ auto: to }]);
    if (!right(answer)) fail(`${which}: ${JSON.stringify(answer)}`);
    rows.push([
      which,
      answer.base === tuned ? 'the base' : (answer.base ?? 'none, and refuses the adapter'),
    ]);
  }
  return {
    title: 'the base that PEFT loads by itself',
    words:
      'Of an adapter of a model that was trained from another, whose name is in its config.json as transformers writes it: what `AutoPeftModelForCausalLM` loads.',
    columns: ['the base is', 'PEFT loads'],
    rows,
  };
}
