// Training results of adapters: LoRA on packed bases compared with a full fine-tune, the latter as extracted factors, and SmolLM2's curve.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPython, installSmollm, smollm as smollmFile } from '../consumers/install.mjs';
import { svd } from '../consumers/programs.mjs';
import { asset } from './assets.mjs';

const text = () => asset('text', 'emma.txt');
const glass = () => asset('glass-en', 'hf');
/** On a computer without a graphics card a software adapter of Vulkan is faster than the kernels' twins. */
const DEVICE = process.env.LORA_DEVICE ?? 'wgpu';
const STEPS = 300;
const SHAPE = ['--batch-size', '2', '--seq-len', '128', '--seed', '5'];
/** Share of the text, its last part, that is never trained on. */
const HELD_OUT = 0.05;
const BASES = { F16: 'glass-en-f16.gguf', Q8_0: 'glass-en-q8_0.gguf', Q4_0: 'glass-en-q4_0.gguf' };
const LORA = ['--lora', '--lora-r', '16', '--lora-alpha', '32', '--lora-targets', 'all-linear'];
const LORA_RATES = [5e-4, 2e-3, 5e-3];
/** The rate whose runs are repeated with the same weights in f32. */
const REPEATED = 2e-3;
const FULL_RATES = [1e-4, 5e-4, 2e-3];
/** The rate of the fine-tune that is extracted. */
const EXTRACTED = 5e-4;
const RANKS = [4, 16, 64];
/** Share by which errors of extraction may exceed the best possible ones, and the rounding of factors to f32, which helps as often as it hurts. */
const [ABOVE, ROUNDING] = [0.01, 1e-6];
const SMOL = [
  '--steps',
  '60',
  '--batch-size',
  '1',
  '--seq-len',
  '64',
  '--lora',
  '--lora-r',
  '8',
  '--lora-alpha',
  '16',
  '--lora-targets',
  'all-linear',
  '--learning-rate',
  '2e-4',
  '--seed',
  '5',
];
/** Number of steps in one row of its table. */
const ROW = 6;

const nats = (loss) => loss.toFixed(4);
const percent = (part) => `${(100 * part).toFixed(2)} %`;
const lossesOf = (lines) =>
  lines.filter((line) => line.grad_norm !== undefined).map(({ loss }) => loss);

/** Makes one run; returns its losses, that of the held-out text at its end, and the checksum of the trained weights. */
async function trained(tabtune, out, model, options, weights) {
  const started = Date.now();
  const held = ['--validation-fraction', String(HELD_OUT), '--eval-every', String(STEPS)];
  const lines = await tabtune.lines(
    'train',
    '--model',
    model,
    '--data',
    text(),
    '--device',
    DEVICE,
    '--steps',
    String(STEPS),
    ...SHAPE,
    ...held,
    '--out',
    out,
    ...options,
  );
  const sum = createHash('sha256')
    .update(readFileSync(join(out, weights)))
    .digest('hex');
  return {
    losses: lossesOf(lines),
    held: lines.findLast((line) => line.eval_loss !== undefined).eval_loss,
    sum,
    secs: (Date.now() - started) / 1000,
  };
}

const full = (tabtune, out, rate) =>
  trained(tabtune, out, glass(), ['--learning-rate', String(rate)], 'model.safetensors');

/** Trains LoRA with each rate on each base, once more on f32, and full fine-tunes. */
export async function quality({ tabtune, work, fail }) {
  const rows = [];
  const row = (way, rate, { losses, held, secs }) =>
    rows.push([way, rate, nats(losses[0]), nats(losses.at(-1)), nats(held), secs.toFixed(0)]);
  for (const rate of FULL_RATES)
    row('all weights', rate, await full(tabtune, join(work, `full-${rate}`), rate));
  for (const [type, name] of Object.entries(BASES)) {
    const run = (rate, storage) => {
      const options = [...LORA, '--learning-rate', String(rate), '--base-storage', storage];
      return trained(
        tabtune,
        join(work, `${type}-${rate}-${storage}`),
        asset('glass-en', 'gguf', name),
        options,
        'adapter_model.safetensors',
      );
    };
    for (const rate of LORA_RATES) {
      const stored = await run(rate, 'stored');
      row(`LoRA r 16 on ${type}`, rate, stored);
      if (rate !== REPEATED) continue;
      const wide = await run(rate, 'f32');
      const same =
        stored.sum === wide.sum &&
        stored.held === wide.held &&
        stored.losses.every((loss, at) => loss === wide.losses[at]);
      if (!same) fail(`${type} at rate ${rate}: another run beside the same weights in f32`);
    }
  }
  return {
    title: 'LoRA compared with full fine-tunes',
    words: `${STEPS} steps of glass-en (0.85 million weights) on emma.txt, T = 128, B = 2, AdamW, the last ${percent(HELD_OUT)} of the text held out, on the device \`${DEVICE}\`; LoRA with
alpha 32 on all matrices. The runs at rate ${REPEATED} were made again with \`--base-storage f32\`: every loss and every bit of the factors is equal. Losses in nats.`,
    columns: [
      'what is trained',
      'rate',
      'first loss',
      'last loss',
      'held-out loss after',
      'seconds',
    ],
    rows,
  };
}

/** Extracts a full fine-tune as factors: errors compared with numpy's, losses with the tuned model's. */
export async function extraction({ tabtune, work, fail }) {
  await installPython();
  const [tuned, held] = [join(work, 'tuned'), join(work, 'held-out.txt')];
  await full(tabtune, tuned, EXTRACTED);
  const whole = readFileSync(text(), 'utf8');
  writeFileSync(held, whole.slice(Math.floor(whole.length * (1 - HELD_OUT))));
  const loss = async (model) =>
    (
      await tabtune.lines(
        'evaluate',
        '--model',
        model,
        '--data',
        held,
        '--seq-len',
        '129',
        '--device',
        DEVICE,
      )
    )[0].loss;

  const reports = new Map();
  for (const rank of RANKS) {
    const [to, merged] = [join(work, `rank-${rank}`), join(work, `rank-${rank}-merged`)];
    const started = Date.now();
    const [report] = await tabtune.lines(
      'adapter',
      'extract',
      '--model',
      tuned,
      '--base',
      glass(),
      '--rank',
      String(rank),
      '--to',
      to,
    );
    const secs = (Date.now() - started) / 1000;
    await tabtune.lines(
      'adapter',
      'merge',
      '--model',
      glass(),
      '--adapter',
      to,
      '--dtype',
      'f32',
      '--to',
      merged,
    );
    reports.set(rank, { ...report, secs, loss: await loss(merged) });
  }
  const { tensors, uncovered } = reports.get(RANKS[0]);
  const names = Object.keys(tensors);
  const best = await svd(work, {
    tuned: join(tuned, 'model.safetensors'),
    base: join(glass(), 'model.safetensors'),
    tensors: names,
    ranks: RANKS,
  });
  const rows = [...reports].map(([rank, report]) => {
    const pairs = names.map((name) => ({
      name,
      error: report.tensors[name].error,
      least: best[rank][name],
    }));
    for (const { name, error, least } of pairs)
      if (!(error > least - ROUNDING && error < least * (1 + ABOVE) + ROUNDING))
        fail(`rank ${rank}, ${name}: ${error}, the best is ${least}`);
    const errors = pairs.map(({ error }) => error);
    // If the rank is that of the matrix, only rounding remains.
    const over = pairs
      .filter(({ least }) => least > ROUNDING)
      .map(({ error, least }) => error / least - 1);
    return [
      rank,
      report.error.toFixed(5),
      `${Math.min(...errors).toFixed(4)} to ${Math.max(...errors).toFixed(4)}`,
      percent(Math.max(...over)),
      nats(report.loss),
      report.secs.toFixed(1),
    ];
  });
  const share = Object.values(uncovered).reduce((all, one) => all + one.share, 0);
  const [[largest, { share: part }]] = Object.entries(uncovered).sort(
    ([, a], [, b]) => b.share - a.share,
  );
  return {
    title: 'a full fine-tune as factors',
    words: `The full fine-tune of ${STEPS} steps at rate ${EXTRACTED}, extracted from its F16 base (\`tabtune adapter extract\`), all matrices. An error is what the factors leave of the length of
the difference; the best possible are numpy's singular values in float64, of each of the ${names.length} tensors (allowed: 1 % above, and 1e-6 for factors in f32). Without factors is ${percent(share)} of the squared difference of all
tensors, ${percent(part)} in \`${largest}\`. Losses of the held-out text, in nats: base ${nats(await loss(glass()))}, tuned ${nats(await loss(tuned))}.`,
    columns: [
      'rank',
      'error of all',
      'errors of tensors',
      'farthest above the best',
      'loss of base and factors',
      'seconds',
    ],
    rows,
  };
}

/** Returns the curve of SmolLM2-135M with an adapter on its published Q4_1 file. */
export async function smollm({ tabtune, work, fail }) {
  await installPython();
  await installSmollm();
  const started = Date.now();
  const lines = await tabtune.lines(
    'train',
    '--model',
    smollmFile,
    '--data',
    text(),
    '--device',
    DEVICE,
    ...SMOL,
    '--out',
    join(work, 'smollm'),
  );
  const losses = lossesOf(lines);
  const mean = (from) => losses.slice(from, from + ROW).reduce((a, b) => a + b, 0) / ROW;
  const starts = losses.map((_, at) => at).filter((at) => at % ROW === 0);
  if (!(mean(starts.at(-1)) < mean(0))) fail(`the loss does not fall: ${losses.join(' ')}`);
  return {
    title: "SmolLM2's curve",
    words: `SmolLM2-135M-Instruct in its Q4_1 file as it is stored, ${losses.length} steps at T = 64, B = 1, LoRA r 8, alpha 16 on all matrices, rate 2e-4, emma.txt, on the device
\`${DEVICE}\`, in ${((Date.now() - started) / 1000).toFixed(0)} s. Means of ${ROW} steps, in nats.`,
    columns: ['steps', 'loss'],
    rows: starts.map((at) => [`${at + 1} to ${at + ROW}`, nats(mean(at))]),
  };
}
