// npm run lab -- torture [part …]: the full form of these parts, or of all (full.test.mjs).
//   --short     the counts of npm test, and nothing is written
// npm run lab -- torture firefox [part …]: another browser; its results are results/firefox.json.
// npm run lab -- torture lora [part …]: adapters; its results are results/lora.json.
import { root, run } from '../../web/toolchain.mjs';
import { PARTS } from './parts.mjs';

// Most parts of adapters need no browser: they have a separate program.
if (process.argv[2] === 'lora')
  process.exit(await (await import('./lora/run.mjs')).lora(process.argv.slice(3)));
if (process.argv[2] === 'firefox')
  process.exit(await (await import('./firefox.mjs')).firefox(process.argv.slice(3)));
const asked = process.argv.slice(2).filter((word) => word !== '--short');
const unknown = asked.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(
    `torture: unknown part ${unknown.join(', ')}; there are ${Object.keys(PARTS).join(', ')}`,
  );
  process.exit(1);
}
process.chdir(root);
const [projects, kind] = process.argv.includes('--short')
  ? [['browser', 'with-program'], 'survival']
  : [['torture'], 'torture'];
const grep = `${kind}: (${asked.length > 0 ? asked.join('|') : '.*'})$`;
const chosen = projects.map((name) => `--project=${name}`);
process.exitCode = await run(
  'playwright',
  ['test', '--config', 'tests', ...chosen, '--workers', '1', '--grep', grep],
  { allowFailure: true },
);
