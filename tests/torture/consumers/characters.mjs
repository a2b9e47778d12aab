// A run on the characters of its own text, as the demo makes it: F16 in llama.cpp, its ids and its text.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installNode, installPython } from './install.mjs';
import { POSITIONS, compareOwn, comparePositions, compareTexts } from './judge.mjs';
import { forward, readsGguf, runs } from './programs.mjs';
import { ownAs, ranAs } from './report.mjs';

const CONFIG = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  hidden_act: 'silu',
  max_position_embeddings: 128,
  rms_norm_eps: 1e-5,
  rope_theta: 10000.0,
  tie_word_embeddings: true,
};
const TEXT = join(root, 'web', 'demo', 'assets', 'pride-and-prejudice.txt');
const STEPS = 100;
const PROMPT = 'It is a truth universally';

export async function characters({ tabtune, work, fail }) {
  await installNode();
  await installPython();
  const [config, checkpoint, path] = [
    join(work, 'config.json'),
    join(work, 'checkpoint'),
    join(work, 'characters-f16.gguf'),
  ];
  writeFileSync(config, JSON.stringify(CONFIG));
  const shape = [
    '--batch-size',
    '4',
    '--seq-len',
    '64',
    '--steps',
    String(STEPS),
    '--learning-rate',
    '0.003',
  ];
  const trained = await tabtune.lines(
    'train',
    '--config',
    config,
    '--data',
    TEXT,
    ...shape,
    '--device',
    'cpu',
    '--out',
    checkpoint,
  );
  await tabtune.lines(
    'export',
    '--checkpoint',
    checkpoint,
    '--to',
    path,
    '--format',
    'gguf',
    '--type',
    'f16',
  );

  const lines = readFileSync(TEXT, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line.trim())
    .slice(40, 140);
  const expected = [];
  for (const line of lines) expected.push(await tabtune.ids(checkpoint, line));
  const ids = await tabtune.ids(checkpoint, PROMPT);
  const [ours] = await forward(work, [{ path, ids, count: POSITIONS }]);
  const [read] = await readsGguf(work, [{ path }]);
  const tokens = read.metadata['tokenizer.ggml.tokens'];
  const wanted = ours.positions.map(({ top }) => top.map(([id]) => id));
  const spoken = ours.ids.map((id) => tokens[id].replace('\\\\', '\\')).join('');
  const [ran, again] = await runs(work, [
    { path, ids: ours.ids, wanted, texts: lines },
    { path, texts: [spoken] },
  ]);
  const continued = await tabtune.continued(path, PROMPT, POSITIONS);
  const own = compareOwn(ours.positions, continued, ids.length);
  const positions = comparePositions('f16', ours.positions, ran.positions);
  const wrongTexts = compareTexts(lines, expected, ran.texts);
  const back = lines.filter((line, at) => ran.texts[at].text === line).length;
  if (back !== lines.length)
    fail(`characters: llama.cpp gives ${back} of ${lines.length} texts back`);
  if (String(again.texts[0].ids) !== String(ours.ids))
    fail(`characters: llama.cpp's ids of ${JSON.stringify(spoken)}`);
  const said = PROMPT + continued.map(({ text }) => text).join('');
  if (!spoken.startsWith(said))
    fail(`characters: tabtune says ${JSON.stringify(said)}, expected ${JSON.stringify(spoken)}`);
  for (const wrong of [...positions.wrong, ...own.wrong, ...wrongTexts])
    fail(`characters: ${wrong}`);
  const loss = trained.filter(({ step, loss }) => step && loss).at(-1).loss;
  const same = `${lines.length - wrongTexts.length} of ${lines.length}`;
  return {
    title: 'a model of characters',
    words: `A Llama over the characters of the demo's text after ${STEPS} steps (loss ${loss.toFixed(2)}), as F16. llama.cpp is given the ids, and the texts of the book's lines, which it has to
give back.`,
    columns: [
      'type',
      'tokens',
      'llama.cpp off by',
      'of what is allowed',
      'best tokens',
      'ids of texts',
      'texts given back',
      'tabtune off by',
      'text',
    ],
    rows: [
      [
        'f16',
        `${tokens.length}`,
        ...ranAs(positions, ours.positions),
        same,
        `${back} of ${lines.length}`,
        ownAs(own),
        `\`${JSON.stringify(spoken)}\``,
      ],
    ],
  };
}
