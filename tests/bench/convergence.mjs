// Losses of each optimizer on one small model and text, at the best of several rates: searched into convergence.json, drawn as convergence.svg,
// printed as tables. Measurements are stored, so that a search continues where it stopped.
//   node tests/bench/convergence.mjs search MODEL TEXT [RUNNER [NAME]]    RUNNER is the native binary, default `tabtune`; NAME selects one row
//   node tests/bench/convergence.mjs draw
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @typedef {{ name: string, colour?: string, rates: number[], optimizer: object, more?: { steps?: number, [setting: string]: unknown } }} Row */

const STEPS = 300;
/** Number of steps whose mean is one point of the plot: single batches differ more than optimizers. */
const WINDOW = 10;
/**
 * Rows of the first table. `rates` are the grid; the best of them in f32 is also run in bf16.
 * @type {Row[]}
 */
const RULES = [
  {
    name: 'AdamW',
    colour: '#1b6ca8',
    rates: [5e-4, 1e-3, 2e-3, 4e-3],
    optimizer: { type: 'adamw' },
  },
  {
    name: 'AdamW, a block at a time',
    colour: '#5b8fb9',
    rates: [5e-4, 1e-3, 2e-3, 4e-3],
    optimizer: { type: 'adamw' },
    more: { block_coordinate: { blocks: 1, interval: 15 } },
  },
  {
    name: 'APOLLO',
    colour: '#2e8b57',
    rates: [1e-3, 2e-3, 4e-3, 8e-3],
    optimizer: { type: 'apollo' },
  },
  {
    name: 'APOLLO-Mini',
    colour: '#8a9a2b',
    rates: [1e-3, 2e-3, 4e-3, 8e-3],
    optimizer: { type: 'apollo', mini: true },
  },
  {
    name: 'SGD, momentum 0.9',
    colour: '#7a4fa3',
    rates: [0.03, 0.1, 0.3, 1],
    optimizer: { type: 'sgd', momentum: 0.9 },
  },
  {
    name: 'Adafactor',
    colour: '#c0562a',
    rates: [5e-4, 1e-3, 2e-3, 4e-3],
    optimizer: { type: 'adafactor' },
  },
];
/** Settings of a run with eight times the tokens per step: fewer steps, to save time. */
const ACCUMULATED = { gradient_accumulation_steps: 8, steps: 100 };
/**
 * Rows of the second table, in f32: APOLLO with one setting changed, or another run setting.
 * @type {Row[]}
 */
const ABLATIONS = [
  {
    name: 'no growth limit',
    rates: [1e-3, 2e-3, 4e-3, 8e-3],
    optimizer: { type: 'apollo', growth_limit: null },
  },
  { name: 'scale 1', rates: [2e-3, 4e-3, 8e-3, 1.6e-2], optimizer: { type: 'apollo', scale: 1 } },
  {
    name: 'every matrix projected',
    rates: [5e-4, 1e-3, 2e-3, 4e-3],
    optimizer: { type: 'apollo', projected: 'all' },
  },
  {
    name: 'AdamW at a quarter of the rate',
    rates: [2e-3, 4e-3, 8e-3, 1.6e-2],
    optimizer: { type: 'apollo', adamw_learning_rate_scale: 0.25 },
  },
  { name: 'rank 16', rates: [1e-3, 2e-3, 4e-3, 8e-3], optimizer: { type: 'apollo', rank: 16 } },
  {
    name: 'rank 16, scale 1, every matrix projected',
    rates: [1e-3, 2.5e-3, 5e-3, 1e-2],
    optimizer: { type: 'apollo', rank: 16, scale: 1, projected: 'all' },
  },
  {
    name: '8 micro-batches, 100 steps',
    rates: [2e-3, 4e-3, 8e-3],
    optimizer: { type: 'apollo' },
    more: ACCUMULATED,
  },
  {
    name: '8 micro-batches, 100 steps, AdamW',
    rates: [1e-3, 2e-3, 4e-3],
    optimizer: { type: 'adamw' },
    more: ACCUMULATED,
  },
];
const PRECISIONS = ['f32', 'bf16'];
const data = new URL('convergence.json', import.meta.url);

const load = () => (existsSync(data) ? JSON.parse(readFileSync(data, 'utf8')) : {});

/** Makes one run on the GPU or the software adapter; returns the losses, and the loss on the validation twentieth of the text after the last step. */
function train(model, text, runner, settings) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-convergence-'));
  try {
    const file = join(folder, 'train.json');
    writeFileSync(file, JSON.stringify(settings));
    const args = [
      'train',
      '--model',
      model,
      '--data',
      text,
      '--train-config',
      file,
      '--device',
      'wgpu',
      '--eval-every',
      String(settings.steps),
      '--json',
    ];
    const lines = execFileSync(runner, args, {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const losses = lines.filter((line) => 'grad_norm' in line).map(({ loss }) => loss);
    return {
      validation: Number(lines.find((line) => 'eval_loss' in line).eval_loss.toFixed(4)),
      curve: means(losses),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the settings of a run of this row. @param {Row} row @param {number} learning_rate @param {string} precision */
function settingsOf({ optimizer, more = {} }, learning_rate, precision) {
  const steps = more.steps ?? STEPS;
  const schedule = { type: 'cosine', total_steps: steps, warmup_steps: Math.round(steps / 20) };
  return {
    optimizer,
    schedule,
    learning_rate,
    precision,
    max_grad_norm: 1,
    batch_size: 4,
    seq_len: 64,
    steps,
    validation_fraction: 0.05,
    seed: 5,
    ...more,
  };
}

const keyOf = (rate, precision) => `${precision} ${rate}`;

/** Returns the rate of `row` with the lowest validation loss in f32; undefined until all of its grid is measured. */
function bestRate(row, results) {
  const of = (rate) => results[row.name]?.[keyOf(rate, 'f32')]?.validation;
  if (row.rates.some((rate) => of(rate) === undefined)) return undefined;
  return row.rates.reduce((best, rate) => (of(rate) < of(best) ? rate : best));
}

function search(model, text, runner = 'tabtune', only = undefined) {
  const measure = (row, rate, precision) => {
    const settings = settingsOf(row, rate, precision);
    const told = JSON.stringify({ optimizer: row.optimizer, ...row.more });
    if (load()[row.name]?.[keyOf(rate, precision)]?.settings === told) return;
    const run = train(model, text, runner, settings);
    const results = load();
    results[row.name] = {
      ...results[row.name],
      [keyOf(rate, precision)]: { settings: told, ...run },
    };
    writeFileSync(data, `${JSON.stringify(results)}\n`);
    console.log(`${row.name}, ${precision}, ${rate}: ${run.validation}`);
  };
  for (const row of [...RULES, ...ABLATIONS].filter(
    ({ name }) => only === undefined || name === only,
  )) {
    for (const rate of row.rates) measure(row, rate, 'f32');
    if (RULES.includes(row)) measure(row, bestRate(row, load()), 'bf16');
  }
}

function means(losses) {
  const points = [];
  for (let from = 0; from < losses.length; from += WINDOW) {
    const part = losses.slice(from, from + WINDOW);
    points.push(Number((part.reduce((sum, loss) => sum + loss, 0) / part.length).toFixed(4)));
  }
  return points;
}

/** Draws the curves of the best rates, in both precisions. */
function drawCurves(results) {
  const curves = RULES.flatMap((row) => {
    const { name, colour } = row;
    const rate = bestRate(row, results);
    return PRECISIONS.map((precision, dashed) => ({
      name: `${name} ${precision}`,
      colour,
      dashed: dashed === 1,
      curve: results[name]?.[keyOf(rate, precision)]?.curve,
    }));
  }).filter(({ curve }) => curve !== undefined);
  if (curves.length === 0) return;
  const [width, height, left, top, right, bottom] = [760, 460, 50, 20, 170, 40];
  const all = curves.flatMap(({ curve }) => curve);
  const [low, high] = [Math.floor(Math.min(...all) * 5) / 5, Math.ceil(Math.max(...all) * 5) / 5];
  const x = (step) => left + ((width - left - right) * step) / STEPS;
  const y = (loss) => top + ((height - top - bottom) * (high - loss)) / (high - low);
  const parts = [`<rect width="${width}" height="${height}" fill="#fff"/>`];
  for (let loss = low; loss <= high + 1e-9; loss += 0.2) {
    parts.push(
      `<path d="M${left} ${y(loss).toFixed(1)}H${width - right}" stroke="#ddd"/><text x="${left - 8}" y="${(y(loss) + 4).toFixed(1)}" text-anchor="end">${loss.toFixed(1)}</text>`,
    );
  }
  for (let step = 0; step <= STEPS; step += 50)
    parts.push(
      `<text x="${x(step)}" y="${height - bottom + 18}" text-anchor="middle">${step}</text>`,
    );
  parts.push(
    `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">step</text><text x="12" y="14">loss, nats, mean of ${WINDOW} steps</text>`,
  );
  curves.forEach(({ name, colour, dashed, curve }, index) => {
    const dash = dashed ? ' stroke-dasharray="5 4"' : '';
    const points = curve
      .map(
        (loss, at) => `${x(Math.min((at + 1) * WINDOW, STEPS)).toFixed(1)},${y(loss).toFixed(1)}`,
      )
      .join(' ');
    const line = top + 10 + 20 * index;
    parts.push(
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"${dash}/>`,
    );
    parts.push(
      `<path d="M${width - right + 10} ${line}h24" stroke="${colour}" stroke-width="1.5"${dash}/><text x="${width - right + 40}" y="${line + 4}">${name}</text>`,
    );
  });
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`;
  writeFileSync(
    new URL('convergence.svg', import.meta.url),
    `${head}\n${parts.join('\n')}\n</svg>\n`,
  );
}

/** Prints both tables; a row that is not measured is left out. */
function print(results) {
  const of = (row, rate, precision) => results[row.name]?.[keyOf(rate, precision)]?.validation;
  const grid = (row) =>
    row.rates.map((rate) => `${rate}: ${of(row, rate, 'f32')?.toFixed(4) ?? ''}`).join(', ');
  console.log(
    '| optimizer | rates, f32 | best rate | f32 | bf16 | difference |\n|---|---|---|---|---|---|',
  );
  for (const row of RULES) {
    const rate = bestRate(row, results);
    if (rate === undefined) continue;
    const [f32, bf16] = PRECISIONS.map((precision) => of(row, rate, precision));
    console.log(
      `| ${row.name} | ${grid(row)} | ${rate} | ${f32.toFixed(4)} | ${bf16?.toFixed(4) ?? ''} | ${bf16 === undefined ? '' : (bf16 - f32).toFixed(4)} |`,
    );
  }
  console.log('\n| APOLLO with | rates | best rate | f32 |\n|---|---|---|---|');
  for (const row of ABLATIONS) {
    const rate = bestRate(row, results);
    if (rate !== undefined)
      console.log(`| ${row.name} | ${grid(row)} | ${rate} | ${of(row, rate, 'f32').toFixed(4)} |`);
  }
}

const [word, ...rest] = process.argv.slice(2);
if (word === 'search' && rest.length >= 2) search(...rest);
else if (word === 'draw' && rest.length === 0) {
  drawCurves(load());
  print(load());
} else throw new Error('search MODEL TEXT [RUNNER [NAME]], or draw');
