// GGUF files of every family, one of them in parts: open, train, resume bit for bit. A chat run keeps all end tokens.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY, differences } from './arena.mjs';

const FOLDER = 'tests/golden/models';

/** The GGUF files below the golden models; the parts of one model together, last part first. */
function grouped() {
  const found = readdirSync(join(root, FOLDER), { recursive: true }).filter((name) => name.endsWith('.gguf')).sort().reverse();
  return Object.entries(Object.groupBy(found, (name) => name.replace(/(-\d{5}-of-\d{5})?\.gguf$/, '')));
}

/** Opens, trains three steps, saves, trains two more; then another worker resumes and makes those two again. */
async function goOn(s, { names, options, tokens, chat }) {
  const files = () => Promise.all(names.map(async (name) => new File([await (await fetch(`/models/${name}`)).blob()], name.split('/').pop())));
  const model = await s.tabtune.openModel(await files(), { worker: s.workers() });
  const { architecture, vocabSize, tokenizer } = model.info;
  const data = chat ? new File([chat], 'chat.jsonl') : { tokens: Uint32Array.from({ length: tokens }, (_, i) => ((i * i + 3 * i) >> 1) % vocabSize) };
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
  const info = await s.current().inspect();
  await s.current().dispose();
  return { architecture, eos: tokenizer?.eos, losses, again, ends, eosAfter: info.model.tokenizer?.eos };
}

export async function models(_, tally) {
  const arena = await Arena.start({ folders: { '/models/': FOLDER } });
  const families = new Set();
  try {
    for (const [name, names] of grouped()) {
      await arena.with(async (subject) => {
        const fault = `GGUF ${names.length > 1 ? `in ${names.length} parts ` : ''}opens, trains, resumes`;
        const options = { ...TINY.options, seqLen: 4 };
        const found = await subject.do(goOn, { names, options, tokens: 400 }).catch((error) => ({ failed: error.message.split('\n')[0] }));
        families.add(found.architecture);
        const wrong = found.failed ? [found.failed] : differences('losses after the resume', found.again, found.losses);
        if (!found.failed) wrong.push(...differences('end tokens after the resume', found.eosAfter, found.eos));
        tally.add(fault, wrong.map((each) => `${name}: ${each}`));
      });
    }
  } finally {
    await arena.end();
  }
  tally.add('GGUF of every family', differences('families', [...families].sort(), ['gpt2', 'llama', 'qwen2', 'qwen3']));
}
