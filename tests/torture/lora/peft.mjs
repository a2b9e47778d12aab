// Adapters exported for Python PEFT, and adapters imported from there.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPeft, installPython } from '../consumers/install.mjs';
import { peftReads } from '../consumers/programs.mjs';
import { figure } from '../consumers/report.mjs';
import { makeModels } from '../make-models.mjs';
import { adapters, data, exported, train } from './trained.mjs';

const LOSS_OFF = 1e-5;

/** Returns tabtune's loss of `ids` with the adapter of a folder, before a step. */
export async function firstLoss(tabtune, work, base, adapter, ids) {
  const tokens = join(work, 'ids.tokens');
  writeFileSync(tokens, Buffer.from(Uint32Array.from(ids).buffer));
  const options = [
    '--steps',
    '1',
    '--batch-size',
    '1',
    '--seq-len',
    String(ids.length - 1),
    '--learning-rate',
    '1e-3',
    '--device',
    'cpu',
  ];
  const lines = await tabtune.lines(
    'train',
    '--model',
    base,
    '--adapter',
    adapter,
    '--data',
    tokens,
    ...options,
  );
  return lines.find(({ grad_norm: norm }) => norm !== undefined).loss;
}

export async function peft({ tabtune, work, fail }) {
  await installPython();
  await installPeft();
  makeModels(join(work, 'models'));
  const cases = [];
  for (const model of ['llama-3', 'llama-tied', 'qwen2', 'gpt2']) {
    const base = join(work, 'models', model);
    const ids = (await tabtune.ids(base, readFileSync(data, 'utf8').slice(0, 600))).slice(0, 65);
    const [wide, other, norm] =
      model === 'gpt2' ? ['c_attn', 'mlp.c_fc', 'ln_f'] : ['q_proj', 'v_proj', 'model.norm'];
    for (const [which, settings] of Object.entries({
      ...adapters(model),
      saved: { r: 3, alpha: 6, modules_to_save: [norm] },
    })) {
      const at = join(work, `${model}-${which}`);
      await train(tabtune, work, base, settings, at);
      const adapter = await exported(tabtune, fail, at, `${at}-peft`, '--format', 'peft');
      cases.push({ model, which, from: 'tabtune', base, adapter, ids });
    }
    const all = { r: 4, lora_alpha: 8, lora_dropout: 0, target_modules: 'all-linear' };
    const theirs = {
      plain: all,
      rsLoRA: { ...all, use_rslora: true },
      patterned: {
        ...all,
        target_modules: [wide, other],
        rank_pattern: { [wide]: 2 },
        alpha_pattern: { [other]: 5 },
        layers_to_transform: [1],
      },
      saved: { ...all, target_modules: [wide], modules_to_save: [norm.split('.').at(-1)] },
    };
    for (const [which, config] of Object.entries(theirs)) {
      cases.push({
        model,
        which,
        from: 'PEFT',
        base,
        adapter: join(work, `${model}-${which}-theirs`),
        ids,
        config,
      });
    }
  }
  const answers = await peftReads(
    work,
    cases.map(({ base, adapter, ids, config }, at) =>
      config ? { base, save: adapter, ids, config, seed: at } : { base, adapter, ids },
    ),
  );
  const rows = [];
  for (const [at, { model, which, from, base, adapter, ids }] of cases.entries()) {
    const { loss, unused = [], missing = [], other = [] } = answers[at];
    const ours = await firstLoss(tabtune, work, base, adapter, ids);
    const off = Math.abs(ours / loss - 1);
    const name = `${model} ${which} of ${from}`;
    if (!(off <= LOSS_OFF)) fail(`${name}: loss ${ours}, PEFT ${loss}`);
    for (const [what, names] of Object.entries({ unused, missing, other }))
      if (names.length > 0) fail(`${name}: ${what} ${names.slice(0, 3).join(', ')}`);
    rows.push([model, which, from, loss.toFixed(6), figure(off)]);
  }
  return {
    title: 'folders to and from Python PEFT',
    words: `Of folders that tabtune wrote, PEFT 0.17.1 takes every tensor with its value, and its model has no other; of folders that PEFT saved with random factors,
\`train --adapter\` trains them further. The loss of ${64} tokens is PEFT's in float64; tabtune's is that of the first step of a run (allowed ${LOSS_OFF} relative).`,
    columns: ['model', 'adapter', 'written by', 'loss', 'off by'],
    rows,
  };
}
