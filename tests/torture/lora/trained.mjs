// Adapters that tabtune trains and exports, for other programs to read.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

/** Returns settings of the adapters of a model: one scale for all; that of rsLoRA; individual ranks and alphas. */
export const adapters = (model) => {
  const all = { r: 4, alpha: 8, target_modules: 'all-linear' };
  const [wide, other] = model === 'gpt2' ? ['c_attn', 'mlp.c_fc'] : ['q_proj', 'v_proj'];
  return {
    plain: all,
    rsLoRA: { ...all, alpha: 5, rslora: true },
    patterned: { ...all, rank_pattern: { [wide]: 2 }, alpha_pattern: { [wide]: 3, [other]: 12 } },
  };
};

/** The text that adapters learn. */
export const data = join(root, 'LICENSE');

/** Makes a run of 30 steps on `base`, or one with `more` options, in the new folder `out`. */
export async function train(tabtune, work, base, settings, out, ...more) {
  const config = join(work, 'train.json');
  writeFileSync(config, JSON.stringify({ adapter: settings }));
  const options =
    more.length > 0
      ? more
      : ['--steps', '30', '--batch-size', '2', '--learning-rate', '0.005', '--device', 'cpu'];
  await tabtune.lines(
    'train',
    '--model',
    base,
    '--data',
    data,
    '--out',
    out,
    '--train-config',
    config,
    '--seq-len',
    '32',
    '--seed',
    '1',
    ...options,
  );
}

/** Exports a checkpoint twice, which must give equal bytes, and returns the path. */
export async function exported(tabtune, fail, checkpoint, to, ...options) {
  const write = (path) =>
    tabtune.lines(
      'export',
      '--checkpoint',
      checkpoint,
      '--to',
      path,
      '--name',
      'adapter',
      ...options,
    );
  const again = to.replace(/(\.gguf)?$/, '-again$1');
  await write(to);
  await write(again);
  const same = (one, other) => readFileSync(one).equals(readFileSync(other));
  const files = to.endsWith('.gguf')
    ? [['', '']]
    : readdirSync(to).map((name) => [`/${name}`, `/${name}`]);
  for (const [one, other] of files)
    if (!same(to + one, again + other)) fail(`${to}${one}: two exports differ`);
  return to;
}
