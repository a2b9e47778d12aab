// Losses of each optimizer in both precisions on one small model and text: measured into convergence.json, drawn as convergence.svg, printed
// as a table.
//   node tests/bench/convergence.mjs measure MODEL TEXT [RUNNER]    RUNNER is the native binary, default `tabtune`
//   node tests/bench/convergence.mjs draw
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const STEPS = 300;
/** Steps whose mean is one point of the plot: single batches differ more than optimizers. */
const WINDOW = 10;
const RUNS = [
  { name: 'AdamW', colour: '#1b6ca8', rate: 5e-4, optimizer: { type: 'adamw' } },
  { name: 'Adafactor', colour: '#c0562a', rate: 5e-4, optimizer: { type: 'adafactor' } },
  { name: 'APOLLO, rank 16', colour: '#2e8b57', rate: 5e-3, optimizer: { type: 'apollo', rank: 16, scale: 1, projected: 'all' } },
  { name: 'SGD, momentum 0.9', colour: '#7a4fa3', rate: 0.3, optimizer: { type: 'sgd', momentum: 0.9 } },
];
const PRECISIONS = ['f32', 'bf16'];
const data = new URL('convergence.json', import.meta.url);

/** One run on the CPU device: the loss of each step, and the loss of the kept twentieth of the text after the last. */
function train(model, text, runner, { optimizer, rate }, precision) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-convergence-'));
  try {
    const file = join(folder, 'train.json');
    const schedule = { type: 'cosine', total_steps: STEPS, warmup_steps: 15 };
    const config = { optimizer, schedule, learning_rate: rate, precision, max_grad_norm: 1, batch_size: 4, seq_len: 64, steps: STEPS, validation_fraction: 0.05, seed: 5 };
    writeFileSync(file, JSON.stringify(config));
    const args = ['train', '--model', model, '--data', text, '--train-config', file, '--device', 'cpu', '--eval-every', String(STEPS), '--json'];
    const lines = execFileSync(runner, args, { encoding: 'utf8', maxBuffer: 2 ** 26 }).trim().split('\n').map((line) => JSON.parse(line));
    const losses = lines.filter((line) => 'grad_norm' in line).map(({ loss }) => Number(loss.toFixed(4)));
    return { losses, validation: Number(lines.find((line) => 'eval_loss' in line).eval_loss.toFixed(4)) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function measure(model, text, runner = 'tabtune') {
  const results = {};
  for (const run of RUNS) {
    for (const precision of PRECISIONS) {
      results[`${run.name} ${precision}`] = { rate: run.rate, ...train(model, text, runner, run, precision) };
      writeFileSync(data, `${JSON.stringify(results)}\n`);
    }
  }
}

function means(losses) {
  const points = [];
  for (let from = 0; from < losses.length; from += WINDOW) {
    const part = losses.slice(from, from + WINDOW);
    points.push([from + part.length, part.reduce((sum, loss) => sum + loss, 0) / part.length]);
  }
  return points;
}

function draw() {
  const results = JSON.parse(readFileSync(data, 'utf8'));
  const [width, height, left, top, right, bottom] = [760, 420, 50, 20, 170, 40];
  const curves = Object.values(results).map(({ losses }) => means(losses));
  const all = curves.flat().map(([, loss]) => loss);
  const [low, high] = [Math.floor(Math.min(...all) * 5) / 5, Math.ceil(Math.max(...all) * 5) / 5];
  const x = (step) => left + ((width - left - right) * step) / STEPS;
  const y = (loss) => top + ((height - top - bottom) * (high - loss)) / (high - low);
  const parts = [`<rect width="${width}" height="${height}" fill="#fff"/>`];
  for (let loss = low; loss <= high + 1e-9; loss += 0.2) {
    parts.push(`<path d="M${left} ${y(loss).toFixed(1)}H${width - right}" stroke="#ddd"/><text x="${left - 8}" y="${(y(loss) + 4).toFixed(1)}" text-anchor="end">${loss.toFixed(1)}</text>`);
  }
  for (let step = 0; step <= STEPS; step += 50) parts.push(`<text x="${x(step)}" y="${height - bottom + 18}" text-anchor="middle">${step}</text>`);
  parts.push(`<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">step</text><text x="12" y="14">loss, nats, mean of ${WINDOW} steps</text>`);
  RUNS.forEach(({ name, colour }, index) => {
    PRECISIONS.forEach((precision, dashed) => {
      const result = results[`${name} ${precision}`];
      if (result === undefined) return;
      const dash = dashed ? ' stroke-dasharray="5 4"' : '';
      const points = means(result.losses).map(([step, loss]) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(' ');
      const line = top + 10 + 40 * index + 18 * dashed;
      parts.push(`<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"${dash}/>`);
      parts.push(`<path d="M${width - right + 10} ${line}h24" stroke="${colour}" stroke-width="1.5"${dash}/><text x="${width - right + 40}" y="${line + 4}">${name} ${precision}</text>`);
    });
  });
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`;
  writeFileSync(new URL('convergence.svg', import.meta.url), `${head}\n${parts.join('\n')}\n</svg>\n`);
  console.log('| optimizer | rate | f32 | bf16 | difference |\n|---|---|---|---|---|');
  for (const { name, rate } of RUNS) {
    const [f32, bf16] = PRECISIONS.map((precision) => results[`${name} ${precision}`]?.validation);
    if (bf16 !== undefined) console.log(`| ${name} | ${rate} | ${f32.toFixed(4)} | ${bf16.toFixed(4)} | ${(bf16 - f32).toFixed(4)} |`);
  }
}

const [word, ...rest] = process.argv.slice(2);
if (word === 'measure' && rest.length >= 2) measure(...rest);
else if (word === 'draw' && rest.length === 0) draw();
else throw new Error('measure MODEL TEXT [RUNNER], or draw');
