// npm run lab -- torture lora [part …]: checks what adapters learn, and how well other programs use them. Its results are ../results/lora.json.
// TABTUNE names the program to test; by default the debug build is made and used.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { Tabtune } from '../consumers/programs.mjs';
import { written } from '../report.mjs';
import { big } from './big.mjs';
import { llamacpp, smollm as real } from './llamacpp.mjs';
import { peft } from './peft.mjs';
import { extraction, quality, smollm } from './quality.mjs';
import { auto, tables } from './tables.mjs';
import { browser } from './tab.mjs';

const PARTS = {
  llamacpp,
  'llamacpp-smollm': real,
  peft,
  tables,
  auto,
  quality,
  extraction,
  smollm,
  browser,
  big,
};

/** Runs the requested parts, or all of them. Returns the exit status. */
export async function lora(asked) {
  const unknown = asked.filter((name) => !(name in PARTS));
  if (unknown.length > 0) {
    console.error(
      `torture lora: unknown part ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`,
    );
    return 1;
  }
  process.chdir(root);
  // The module that builds it also drives browsers, which are not needed here.
  const tabtune = new Tabtune(
    process.env.TABTUNE ?? (await (await import('../files.mjs')).native()),
  );
  const failures = [];
  for (const name of asked.length > 0 ? asked : Object.keys(PARTS)) {
    const work = mkdtempSync(join(tmpdir(), 'tabtune-lora-'));
    try {
      const started = Date.now();
      const result = await PARTS[name]({
        tabtune,
        work,
        fail: (words) => failures.push(`${name}: ${words}`),
      });
      console.log(
        `\n== ${name}: ${result.title} (${((Date.now() - started) / 1000).toFixed(0)} s)`,
      );
      for (const row of [result.columns, ...result.rows]) console.log(row.join(' | '));
      written('lora', Object.keys(PARTS), name, result);
    } finally {
      rmSync(work, { recursive: true });
    }
  }
  for (const words of failures) console.log(`FAILED ${words}`);
  console.log(`${failures.length} failures`);
  return failures.length === 0 ? 0 : 1;
}
