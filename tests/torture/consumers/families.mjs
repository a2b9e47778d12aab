// Folders of every family in mlx-lm and transformers: models that were opened from GGUF, so that every key of their configuration is written by tabtune.
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installMlx, installTransformers, transformers } from './install.mjs';
import { mlxReads, transformersReads } from './programs.mjs';
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
  minicpm: 'it expects a tied head',
  phi3: 'it has no head of another width, and always takes the long factors',
};
/** Names of a family that mlx-lm knows in place of ours: of a whole model, whose text model may stand alone. */
const NAMED = { qwen3_5_text: 'qwen3_5' };

/** Models that transformers 4.44 can run: its Phi-3 has no head of another width. */
const KNOWN = ['gemma2', 'mistral', 'qwen2'];

/** Writes rows of numbers as a .npy file of float64. @param {string} path @param {number[][]} rows */
function writeNpy(path, rows) {
  const shape = `(${rows.length}, ${rows[0]?.length ?? 0})`;
  const words = `{'descr': '<f8', 'fortran_order': False, 'shape': ${shape}, }`;
  const header = words.padEnd(Math.ceil((words.length + 11) / 64) * 64 - 11) + '\n';
  const begin = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 0, 0]);
  begin.writeUInt16LE(header.length, 8);
  const values = Buffer.from(Float64Array.from(rows.flat()).buffer);
  writeFileSync(path, Buffer.concat([begin, Buffer.from(header, 'latin1'), values]));
}

/** Cuts values into rows of `width`. @param {number[]} values @param {number} width */
const inRows = (values, width) =>
  Array.from({ length: values.length / width }, (_, at) =>
    values.slice(at * width, (at + 1) * width),
  );

/** The folder itself, or a copy under the name of the family that mlx-lm knows. @param {string} folder @param {string} copy */
function renamed(folder, copy) {
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  const name = NAMED[config.model_type];
  if (name === undefined) return folder;
  cpSync(folder, copy, { recursive: true });
  writeFileSync(join(copy, 'config.json'), JSON.stringify({ ...config, model_type: name }));
  return copy;
}

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
    jobs.push({ folder: renamed(folder, join(work, `${name}-renamed`)), ids });
  }
  const read = await mlxReads(work, jobs);
  await installTransformers();
  const asked = KNOWN.flatMap((name) =>
    ids.map((text, at) => {
      const logits = join(work, `${name}-${at}.npy`);
      const own = models[name][at];
      writeNpy(logits, inRows(own, own.length / text.length));
      return { name, job: { folder: join(work, name), ids: text, logits } };
    }),
  );
  const answers = await transformersReads(
    work,
    transformers,
    asked.map(({ job }) => job),
  );
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
    const ran = answers.filter((_, place) => asked[place].name === name);
    const worst = Math.max(...ran.map((answer) => answer.worst));
    if (ran.length > 0 && !(worst / largest <= ALLOWED))
      fail(`${name}: transformers' logits are off by ${worst} of ${largest}`);
    return [
      name,
      refused ?? figure(off),
      ran.length > 0 ? figure(worst) : '',
      figure(largest),
      OTHER[name] ?? '',
    ];
  });
  return {
    title: 'folders of every family in mlx-lm and transformers',
    words: `How far the logits of mlx-lm 0.32.2, and of transformers 4.44.2 where it has the family, in F32 are off, over two texts, from those in float64 (allowed ${figure(ALLOWED)} of the largest), for folders that were
written from GGUF files (Qwen3.5's under the name of a whole model, qwen3_5); or what it says to the folder; and why, where mlx-lm computes something else than the family's publication.`,
    columns: ['model', 'mlx-lm off by', 'transformers off by', 'largest logit', 'mlx-lm'],
    rows,
  };
}
