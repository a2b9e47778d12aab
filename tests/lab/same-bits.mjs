// npm run lab -- same-bits REF [word …]: checks that the runner of this checkout computes exactly the bits of the runner at REF, a commit, on this
// machine: on the CPU, on the GPU device, and, if that is a software adapter, on it with the kernels for GPUs. Compared for every update rule and
// every family, f32 and bf16: the losses of 50 steps, the SHA-256 of both safetensors files of the last checkpoint, and its checkpoint.json except for its origin; and
// a run saved by REF in the middle and continued by this checkout. Words restrict the cases to names that contain all of them. Building both is
// better than committed bits, which change with driver and CPU. A model that REF does not open is `new`. The output ends with
// `N equal, N different`.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDir, environment, root, run } from '../../web/toolchain.mjs';

const STEPS = 50;
const MIDDLE = 25;
/** Number of cases at once: a run waits for its device most of the time. */
const AT_ONCE = 2;

const RULES = {
  adamw: { type: 'adamw', weight_decay: 0.1 },
  adafactor: { type: 'adafactor', weight_decay: 0.1 },
  'adafactor relative': { type: 'adafactor', relative_step: true },
  'apollo normal': { type: 'apollo', rank: 4, update_steps: 20 },
  'apollo orthogonal': { type: 'apollo', rank: 4, update_steps: 20, projector: 'orthogonal' },
  'apollo mini': { type: 'apollo', mini: true, rank: 1, update_steps: 20 },
  sgd: { type: 'sgd', weight_decay: 0.1 },
  'sgd momentum': { type: 'sgd', momentum: 0.9 },
};
/** Widths that use the kernels for large blocks, and some that no block fits. */
const LLAMA = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 160,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
};
const GPT2 = {
  model_type: 'gpt2',
  n_embd: 36,
  n_layer: 2,
  n_head: 3,
  n_positions: 64,
  layer_norm_epsilon: 1e-5,
  activation_function: 'gelu_new',
};
const SETTINGS = {
  steps: STEPS,
  batch_size: 2,
  seq_len: 33,
  gradient_accumulation_steps: 2,
  learning_rate: 3e-3,
  seed: 5,
  groups: 'no_decay',
  schedule: { type: 'cosine', warmup_steps: 5, warmup_from_zero: false },
};
const RELEASE = { gradient_release: true, gradient_accumulation_steps: 1, max_grad_norm: 0 };
const TEXT =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. '.repeat(
    40,
  );

/** Returns the configurations of the golden models, one for every model type. */
function goldens() {
  const folder = join(root, 'tests/golden/models');
  const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return names.map(({ name }) =>
    JSON.parse(readFileSync(join(folder, name, 'config.json'), 'utf8')),
  );
}

const DEVICES = { CPU: ['--device', 'cpu'], GPU: [], 'as a GPU': ['--as-gpu'] };

function* cases() {
  const each = function* (name, config, settings) {
    for (const precision of ['f32', 'bf16']) {
      for (const [device, options] of Object.entries(DEVICES))
        yield {
          name: `${name}, ${precision}, ${device}`,
          config,
          options,
          settings: { ...SETTINGS, ...settings, precision },
        };
    }
  };
  for (const [name, optimizer] of Object.entries(RULES)) yield* each(name, LLAMA, { optimizer });
  yield* each('GPT-2', GPT2, { optimizer: RULES.adamw });
  for (const { vocab_size, ...config } of goldens())
    yield* each(config.model_type, config, { seq_len: 9, optimizer: RULES.adamw });
  yield* each('gradient release', LLAMA, { optimizer: RULES.adafactor, ...RELEASE });
}

/**
 * Builds the runner of `source`, stored under `kept`. A setting distinguishes its own packages from this checkout's, so that both builds share the
 * dependencies.
 */
async function built(source, kept, apart) {
  mkdirSync(join(kept, '..'), { recursive: true });
  const packages = [
    'tabtune',
    'tabtune-shaders',
    'tabtune-border',
    'tabtune-native',
    'tabtune-bench',
    'tabtune-registers',
  ];
  const options = apart
    ? packages.flatMap((name) => ['--config', `profile.dev.package.${name}.debug=0`])
    : [];
  await run(
    'cargo',
    ['build', '--locked', '--quiet', '--package', 'tabtune-native', '--bins', ...options],
    { cwd: source },
  );
  copyFileSync(join(environment.CARGO_TARGET_DIR, 'debug', 'tabtune'), `${kept}.new`);
  renameSync(`${kept}.new`, kept);
}

/** Returns the runner at `ref`, built once. */
async function runnerAt(ref) {
  const commit = execFileSync('git', ['-C', root, 'rev-parse', '--verify', `${ref}^{commit}`], {
    encoding: 'utf8',
  }).trim();
  const kept = join(cacheDir, 'same-bits', commit);
  if (existsSync(kept)) return kept;
  const source = join(cacheDir, 'same-bits', 'source');
  rmSync(source, { recursive: true, force: true });
  mkdirSync(source, { recursive: true });
  const archive = execFileSync('git', ['-C', root, 'archive', commit], { maxBuffer: 2 ** 30 });
  // With the current time, so that cargo does not take the sources for older than a build of another commit.
  execFileSync('tar', ['-xm', '-C', source], { input: archive });
  await built(source, kept, true);
  return kept;
}

function trained(binary, folder, out, options) {
  const given = ['train', '--json', '--data', join(folder, 'text.txt'), '--out', out, ...options];
  return new Promise((resolve, reject) => {
    const child = spawn(binary, given, { stdio: ['ignore', 'pipe', 'pipe'] });
    const [said, failed] = /** @type {Buffer[][]} */ ([[], []]);
    child.stdout.on('data', (bytes) => said.push(bytes));
    child.stderr.on('data', (bytes) => failed.push(bytes));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code !== 0)
        return reject(
          new Error(
            `${given.join(' ')}: ${Buffer.concat([...said, ...failed])
              .toString()
              .slice(-600)}`,
          ),
        );
      const lines = Buffer.concat(said)
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      resolve(
        lines
          .filter(({ loss }) => loss !== undefined)
          .map(({ step, loss, grad_norm }) => [step, loss, grad_norm]),
      );
    });
  });
}

/** Returns the contents of a checkpoint folder: digests of its tensors, and its manifest except for its origin. */
function bitsOf(out) {
  const digest = (name) =>
    createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex');
  const {
    written_by,
    environment: place,
    ...manifest
  } = JSON.parse(readFileSync(join(out, 'checkpoint.json'), 'utf8'));
  void [written_by, place];
  return {
    'model.safetensors': digest('model.safetensors'),
    'optimizer.safetensors': digest('optimizer.safetensors'),
    'checkpoint.json': JSON.stringify(manifest),
  };
}

/** Returns the differences between the two runners in one case; `undefined` for a model that the older one does not open. */
async function compared(old, present, { name, config, options, settings }, folder) {
  const place = join(folder, name.replaceAll(/[ ,]+/g, '-'));
  mkdirSync(place);
  const file = (name, value) => {
    writeFileSync(join(place, name), JSON.stringify(value));
    return join(place, name);
  };
  const fresh = [
    '--config',
    file('config.json', config),
    '--train-config',
    file('train.json', settings),
    ...options,
  ];
  const out = (name) => join(place, name);
  const first = await trained(old, folder, out('middle'), [
    ...fresh,
    '--stop-at',
    String(MIDDLE),
  ]).catch((error) => {
    if (/"model\.(arch|config)\.unsupported"/.test(error.message)) return undefined;
    throw error;
  });
  if (first === undefined) return undefined;
  const second = await trained(old, folder, out('old'), ['--resume', out('middle'), ...options]);
  const whole = await trained(present, folder, out('present'), fresh);
  const resumed = await trained(present, folder, out('resumed'), [
    '--resume',
    out('middle'),
    ...options,
  ]);
  const wrong = [];
  const differ = (what, found, expected) => {
    if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push(what);
  };
  differ('losses', whole, [...first, ...second]);
  differ('losses of the resumed run', resumed, second);
  if (whole.length !== STEPS) wrong.push(`${whole.length} of ${STEPS} steps`);
  const expected = bitsOf(out('old'));
  for (const [who, found] of [
    ['', bitsOf(out('present'))],
    ['resumed ', bitsOf(out('resumed'))],
  ]) {
    for (const key of Object.keys(expected)) differ(`${who}${key}`, found[key], expected[key]);
  }
  rmSync(place, { recursive: true });
  return wrong;
}

async function main(ref, ...words) {
  if (ref === undefined)
    throw new Error('expected a commit: npm run lab -- same-bits REF [word …]');
  const old = await runnerAt(ref);
  const present = join(cacheDir, 'same-bits', 'present');
  await built(root, present, false);
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-same-bits-'));
  writeFileSync(join(folder, 'text.txt'), TEXT);
  const queue = [...cases()].filter(({ name }) =>
    words.every((word) => name.toLowerCase().includes(word.toLowerCase())),
  );
  let [equal, different] = [0, 0];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const wrong = await compared(old, present, next, folder).catch((error) => [error.message]);
      if (wrong === undefined) {
        console.log(`new        ${next.name}`);
      } else if (wrong.length === 0) {
        equal++;
        console.log(`equal      ${next.name}`);
      } else {
        different++;
        console.log(`DIFFERENT  ${next.name}: ${wrong.join(', ')}`);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${equal} equal, ${different} different`);
  return different === 0 && equal > 0 ? 0 : 1;
}

try {
  process.exitCode = await main(...process.argv.slice(2));
} catch (/** @type {any} */ error) {
  console.error(`same-bits: ${error.message}`);
  process.exitCode = 1;
}
