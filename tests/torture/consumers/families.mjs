// Folders of every family in mlx-lm: models that were opened from GGUF, so that every key of their configuration is written by tabtune.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installMlx } from './install.mjs';
import { mlxReads } from './programs.mjs';
import { figure } from './report.mjs';

const GOLDEN = join(root, 'tests', 'golden', 'models');
/** Allowed part of the largest logit: mlx computes in F32. */
const ALLOWED = 5e-6;
/** Models whose GGUF has no stretched positions, so that their folders are read. */
const STRETCHED = ['llama3'];
/** Families in which mlx-lm 0.32.2 computes something else, or nothing, and why. */
const OTHER = {
  gemma2: 'its attention has no window',
  glm: 'it rotates all dimensions',
  gpt2: 'it expects names without "transformer."',
  granitemoehybrid: 'there is no GGUF, and the folder leaves out keys that it needs',
  minicpm: 'it expects a tied head',
  phi3: 'it has no head of another width, and always takes the long factors',
  qwen3_5: 'it knows the text model only inside a whole one',
};

export async function families({ tabtune, work, fail }) {
  await installMlx();
  const { ids, models } = JSON.parse(readFileSync(join(GOLDEN, 'logits.json'), 'utf8'));
  const names = Object.keys(models).sort();
  const jobs = [];
  for (const name of names) {
    const parts = readdirSync(GOLDEN).filter((file) => file.startsWith(`${name}-00001-of`));
    const gguf = [`${name}.gguf`, ...parts].find((each) => existsSync(join(GOLDEN, each)));
    const file = gguf === undefined || STRETCHED.includes(name) ? name : gguf;
    const folder = join(work, name);
    await tabtune.convert(join(GOLDEN, file), folder, '--format', 'safetensors', '--dtype', 'f32');
    jobs.push({ folder, ids });
  }
  const read = await mlxReads(work, jobs);
  const rows = names.map((name, at) => {
    const { logits, refused } = read[at];
    const expected = models[name].flat();
    const largest = Math.max(...expected.map(Math.abs));
    const off = logits
      ?.flat(2)
      .reduce((worst, value, place) => Math.max(worst, Math.abs(value - expected[place])), 0);
    const good = off / largest <= ALLOWED;
    if (good === name in OTHER)
      fail(`${name}: ${refused ?? `logits are off by ${off} of ${largest}`}`);
    return [name, refused ?? figure(off), figure(largest), OTHER[name] ?? ''];
  });
  return {
    title: 'folders of every family in mlx-lm',
    words: `How far the logits of mlx-lm 0.32.2 in F32 are off, over two texts, from those in float64 (allowed ${figure(ALLOWED)} of the largest), for folders that were
written from GGUF files; or what it says to the folder; and why, where mlx-lm computes something else than the family's publication.`,
    columns: ['model', 'logits off by', 'largest logit', 'mlx-lm'],
    rows,
  };
}
