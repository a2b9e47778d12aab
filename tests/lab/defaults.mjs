// npm run lab -- defaults KIND MODEL ROWS [OTHER]: compares the settings that a run chooses by itself with others that one might choose. KIND is
// `whole`, `adapter` or `fresh`; MODEL a model, for `fresh` a config.json; ROWS are JSON lines, of which every fifth is held out; OTHER is a text of
// another kind, which the model should not forget. Each line has the losses in nats of three seeds. TABTUNE is the program, DEVICE its device.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { environment, programIn } from '../../web/toolchain.mjs';

const SEEDS = [1, 2, 3];
const HELD_OUT = 5;
const program = process.env.TABTUNE || programIn(environment.CARGO_TARGET_DIR, 'tabtune');
const device = process.env.DEVICE || 'cpu';

const [kind, ...given] = process.argv.slice(2);
const [model, rows, other] = given.map((path) => resolve(path));
if (!['whole', 'adapter', 'fresh'].includes(kind) || !rows) {
  console.error('usage: npm run lab -- defaults whole|adapter|fresh MODEL ROWS [OTHER]');
  process.exit(2);
}
const place = mkdtempSync(join(tmpdir(), 'tabtune-defaults-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));

/** Runs the program and returns the records that it prints. */
function tabtune(...args) {
  const text = execFileSync(program, [...args, '--device', device, '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  });
  return text
    .split('\n')
    .filter(Boolean)
    .map((record) => JSON.parse(record));
}

const all = readFileSync(rows, 'utf8').split('\n').filter(Boolean);
const [learned, held] = [join(place, 'learned.jsonl'), join(place, 'held.jsonl')];
const part = (keep) => all.filter((_, at) => keep(at % HELD_OUT === 0)).join('\n') + '\n';
writeFileSync(
  learned,
  part((isHeld) => !isHeld),
);
writeFileSync(
  held,
  part((isHeld) => isHeld),
);

/** Returns the loss of a model on data. */
function loss(data, ...of) {
  const record = tabtune('evaluate', ...of, '--data', data).find((each) => 'loss' in each);
  return record.loss;
}
const losses = (...of) => [held, other].map((data) => (data ? loss(data, ...of) : NaN));

/** Trains with settings, or with those that the program chooses, and returns them with the losses of the result. */
function trained(settings, seed) {
  const [config, out] = ['settings.json', 'run'].map((name) => join(place, name));
  rmSync(out, { recursive: true, force: true });
  writeFileSync(
    config,
    JSON.stringify({ ...settings, ...(kind === 'adapter' && { adapter: {} }) }),
  );
  const from = [kind === 'fresh' ? '--config' : '--model', model];
  const asked = ['--train-config', config, '--seed', String(seed), '--to', out];
  const records = tabtune('train', ...from, '--data', learned, ...asked);
  const chosen = records.find((each) => each.chosen)?.chosen ?? [];
  const result = kind === 'adapter' ? ['--model', model, '--adapter', out] : ['--model', out];
  return { chosen, losses: losses(...result) };
}

const shown = (numbers) => numbers.map((each) => each.toFixed(3)).join(', ');
function line(name, results) {
  const [rowsOf, otherOf] = [0, 1].map((at) => results.map((each) => each[at]));
  console.log(`| ${name} | ${shown(rowsOf)} | ${other ? shown(otherOf) : ''} |`);
}

/** Returns the results of all seeds. */
const ofSeeds = (settings) => SEEDS.map((seed) => trained(settings, seed));

console.log('| settings | held-out rows | other text |\n|---|---|---|');
if (kind !== 'fresh') line('before', [losses('--model', model)]);
const own = ofSeeds({});
line(
  'chosen',
  own.map((each) => each.losses),
);
const { eval_every: _, ...chosen } = Object.fromEntries(
  own[0].chosen.map(({ setting, value }) => [setting, value]),
);
const { learning_rate: rate, epochs } = chosen;
const byRate = (factor) => [`rate × ${factor.toFixed(2)}`, { learning_rate: rate * factor }];
const others = Object.fromEntries([
  byRate(1 / 3),
  byRate(3),
  ['three times the passes', { epochs: epochs * 3 }],
  ['constant rate', { schedule: { type: 'constant' } }],
  ['a third of the passes', { epochs: epochs / 3 }],
  byRate(1 / 10),
  byRate(10),
  ['f32', { precision: 'f32' }],
]);
for (const [name, change] of Object.entries(others))
  line(
    name,
    ofSeeds({ ...chosen, ...change }).map((each) => each.losses),
  );
console.log(
  `\nchosen: ${own[0].chosen.map(({ setting, value }) => `${setting} ${JSON.stringify(value)}`).join('; ')}`,
);
