// npm run lab -- consumers [part …]: checks that other programs read what tabtune writes. Its results are results/consumers.json.
//   --short     compares the checksums of the small files with the proved ones, without any other program
// TABTUNE names the program to test; by default the debug build is made and used.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { characters } from './consumers/characters.mjs';
import { conversations } from './consumers/conversations.mjs';
import { families } from './consumers/families.mjs';
import { folders } from './consumers/folders.mjs';
import { Tabtune } from './consumers/programs.mjs';
import { generated } from './consumers/generated.mjs';
import { receipts } from './consumers/receipts.mjs';
import { checkSums, small } from './consumers/small.mjs';
import { smollm } from './consumers/smollm.mjs';
import { tokenizers } from './consumers/tokenizers.mjs';
import { trained } from './consumers/trained.mjs';
import { vocabularies } from './consumers/vocabularies.mjs';
import { written } from './report.mjs';

const PARTS = {
  small,
  folders,
  families,
  trained,
  characters,
  conversations,
  smollm,
  generated,
  receipts,
  vocabularies,
  tokenizers,
};
const asked = process.argv.slice(2).filter((word) => word !== '--short');
const unknown = asked.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(
    `consumers: unknown part ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`,
  );
  process.exit(1);
}
process.chdir(root);
// The module that builds it also drives browsers, which are not needed here.
const built = async () => (await import('./files.mjs')).native();
const tabtune = new Tabtune(process.env.TABTUNE ?? (await built()));
const failures = [];
const fail = (words) => failures.push(words);

/** Runs `work` in a temporary folder. */
async function inFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-consumers-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv.includes('--short')) {
  failures.push(...(await inFolder((folder) => checkSums(tabtune, folder))));
} else {
  for (const name of asked.length > 0 ? asked : Object.keys(PARTS)) {
    await inFolder(async (work) => {
      const [started, before] = [Date.now(), failures.length];
      const { prove, ...result } = await PARTS[name]({ tabtune, work, fail });
      console.log(
        `\n== ${name}: ${result.title} (${((Date.now() - started) / 1000).toFixed(0)} s)`,
      );
      for (const row of [result.columns, ...result.rows]) console.log(row.join(' | '));
      written('consumers', Object.keys(PARTS), name, result);
      if (failures.length === before) prove?.();
    });
  }
}
for (const words of failures) console.log(`FAILED ${words}`);
console.log(`${failures.length} failures`);
process.exitCode = failures.length === 0 ? 0 : 1;
