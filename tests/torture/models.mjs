// GGUF files of every family, one of them in parts: open, train, resume bit for bit. A chat run keeps all end tokens.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY, differences } from './arena.mjs';

const FOLDER = 'tests/golden/models';

/** Returns the GGUF files below the golden models; the parts of one model together, last part first. */
function grouped() {
  const found = readdirSync(join(root, FOLDER), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.gguf'))
    .sort()
    .reverse();
  const groups = new Map();
  for (const name of found) {
    const stem = name.replace(/(-\d{5}-of-\d{5})?\.gguf$/, '');
    groups.set(stem, [...(groups.get(stem) ?? []), name]);
  }
  return [...groups];
}

/**
 * Opens, trains three steps, saves, trains two more; then another worker resumes and makes those two again.
 * @param {typeof import('./in-browser/subject.mjs')} s
 * @param {{ names: string[], options: import('tabtune').TrainOptions, tokens?: number, chat?: string }} setting
 */
async function goOn(s, { names, options, tokens = 0, chat }) {
  const files = () =>
    Promise.all(
      names.map(
        async (name) =>
          new File([await (await fetch(`/models/${name}`)).blob()], `${name.split('/').pop()}`),
      ),
    );
  const model = await s.tabtune.openModel(await files(), { worker: s.workers() });
  const { architecture, vocabSize, tokenizer } = model.info;
  const data = chat
    ? new File([chat], 'chat.jsonl')
    : {
        tokens: Uint32Array.from({ length: tokens }, (_, i) => ((i * i + 3 * i) >> 1) % vocabSize),
      };
  s.adopt(await s.tabtune.Trainer.create({ model, data, ...options }));
  const run = s.current().runId;
  await s.step(3);
  await s.current().save();
  const losses = await s.step(2);
  const exported = await s.current().exportFiles();
  const generation = exported.find(({ name }) => name === 'generation_config.json');
  const ends = generation && JSON.parse(await generation.blob.text()).eos_token_id;
  await s.current().dispose();
  await s.resume({ run });
  const again = await s.step(2);
  const info = await s.current().info();
  await s.current().dispose();
  return {
    architecture,
    eos: tokenizer?.eos,
    losses,
    again,
    ends,
    eosAfter: info.model.tokenizer?.eos,
  };
}

const CHAT =
  '{"messages":[{"role":"user","content":"astar"},{"role":"assistant","content":"itisasatintree"}]}\n'.repeat(
    40,
  );
/** Ids of the end of a text, of the end of a turn, and of a letter. */
const [END_OF_TEXT, IM_END, R] = [0, 2, 7];
/** Successors of a letter in the text that the model learns: an end of each kind, or a letter that follows itself. */
const AFTER = { a: [8, IM_END], t: [10, END_OF_TEXT], u: [4, R, R, R, R, R, R, R, R] };

/** Returns the number of tokens sampled after each letter by a model that has learnt its successors. */
async function saidOf(s, { names, options, after }) {
  const files = await Promise.all(
    names.map(async (name) => new File([await (await fetch(`/models/${name}`)).blob()], name)),
  );
  const model = await s.tabtune.openModel(files, { worker: s.workers() });
  const round = Object.values(after).flat();
  s.adopt(
    await s.tabtune.Trainer.create({
      model,
      data: {
        tokens: Uint32Array.from({ length: 40 * round.length }, (_, i) => round[i % round.length]),
      },
      ...options,
    }),
  );
  await s.step(60);
  const said = {};
  for (const letter of Object.keys(after)) {
    said[letter] = 0;
    for await (const token of s.current().sample(letter, { maxTokens: 12, temperature: 0 })) {
      void token;
      said[letter]++;
    }
  }
  await s.current().dispose();
  return said;
}

export async function chats(arena, tally) {
  const fault = 'chat run from a GGUF with two end tokens';
  const names = ['qwen2.gguf'];
  const options = { ...TINY.options, validationFraction: 0 };
  await arena.with(async (subject) => {
    const found = await subject.do(goOn, {
      names,
      options: { ...options, seqLen: 32 },
      chat: CHAT,
    });
    const ends = [END_OF_TEXT, IM_END];
    const sorted = (ids) => [ids].flat().sort((a, b) => a - b);
    tally.add(fault, [
      ...differences('losses after the resume', found.again, found.losses),
      ...differences(
        'end tokens opened, exported, resumed',
        [found.eos, found.ends, found.eosAfter].map(sorted),
        [ends, ends, ends],
      ),
    ]);
    const said = await subject.do(saidOf, {
      names,
      after: AFTER,
      options: { ...options, batchSize: 8, learningRate: 3e-2 },
    });
    const stops = said.a <= 1 && said.t <= 1 && said.u === 12;
    tally.add(
      'a sample stops at both end tokens',
      stops ? [] : [`tokens said: ${JSON.stringify(said)}`],
    );
  });
}

export async function models(_, tally, { short = false }) {
  const arena = await Arena.start({ folders: { '/models/': FOLDER } });
  const families = new Set();
  // The short form leaves out families whose tensors are Llama's, except for the one in parts.
  const chosen = grouped().filter(
    ([name, names]) => !short || names.length > 1 || /gpt2/.test(name),
  );
  try {
    for (const [name, names] of chosen) {
      await arena.with(async (subject) => {
        const fault = `GGUF ${names.length > 1 ? `in ${names.length} parts ` : ''}opens, trains, resumes`;
        const found = await subject
          .do(goOn, { names, options: TINY.options, tokens: 400 })
          .catch((error) => ({ failed: error.message.split('\n')[0] }));
        const wrong =
          'failed' in found
            ? [found.failed]
            : [
                ...differences('losses after the resume', found.again, found.losses),
                ...differences('end tokens after the resume', found.eosAfter, found.eos),
              ];
        if ('architecture' in found) families.add(found.architecture);
        tally.add(
          fault,
          wrong.map((each) => `${name}: ${each}`),
        );
      });
    }
    await chats(arena, tally);
  } finally {
    await arena.end();
  }
  tally.add(
    'GGUF of every family',
    differences('number of families', families.size, chosen.length),
  );
}
