// npm run torture [part …]: the full form, at most an hour per part. Its table is README.md next to this file; a part's rows replace its old ones.
//   --short     the counts of npm test, and no table
// npm run torture lora [part …]: adapters; its table is LORA.md.
import { root } from '../../web/toolchain.mjs';
import { Arena, Tally } from './arena.mjs';
import { PARTS } from './parts.mjs';
import { written } from './report.mjs';

// Most parts of adapters need no browser: they have a separate program and table.
if (process.argv[2] === 'lora') process.exit(await (await import('./lora/run.mjs')).lora(process.argv.slice(3)));
const asked = process.argv.slice(2).filter((word) => word !== '--short');
const form = process.argv.includes('--short') ? 'short' : 'full';
const unknown = asked.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(`torture: unknown part ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`);
  process.exit(1);
}
process.chdir(root);

let failed = 0;
for (const name of asked.length > 0 ? asked : Object.keys(PARTS)) {
  const started = Date.now();
  const tally = new Tally();
  const arena = await Arena.start();
  try {
    await PARTS[name].work(arena, tally, PARTS[name][form]);
  } catch (error) {
    tally.add(`${name}: the part itself`, [error.stack]);
  }
  const machine = await arena.machine().catch(() => ({ browser: arena.browser.version, adapter: 'unknown' }));
  await arena.end();
  const secs = (Date.now() - started) / 1000;
  console.log(`\n== ${name} (${secs.toFixed(0)} s)`);
  for (const { fault, times, held, worst, note } of tally.rows.values()) {
    console.log(
      `${held === times ? 'ok    ' : 'FAILED'} ${fault}: ${held} of ${times}${worst ? `, worst ${Math.round(worst)} ms` : ''}${note ? `; ${note}` : ''}`,
    );
  }
  for (const words of tally.failures) console.log(`  ${words}`);
  failed += tally.failures.length;
  if (form === 'full') written(name, tally, machine);
}
console.log(`${failed} failures`);
process.exitCode = failed === 0 ? 0 : 1;
