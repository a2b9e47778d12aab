// The committed table of the faults tested and their results.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PARTS } from './parts.mjs';

const FILE = join(import.meta.dirname, 'README.md');
const HEAD = `# Torture: what was broken on purpose, and what survived

\`npm run torture [part]\` breaks the built package in these ways, in a real Chromium with a profile on disk, and writes
this table; a part that is run again replaces its own rows. *Held* counts the times that no acknowledged checkpoint was
lost or torn, the newest checkpoint was the right one, every error was the promised one, and the losses afterwards
equalled those of the unbroken run bit for bit. *Worst* is the longest time until the fault was reported, or until the
run was back, as the fault's name says. \`npm test\` does most of it with smaller counts
(\`tests/browser/survival*.test.mjs\`). A failure prints the seed of its random delays. The part \`panics\` needs the quick
core (\`TABTUNE_CORE=quick\`): the released one has no panic to ask for.

| part | fault | times | held | worst | figures | date | browser | adapter |
|---|---|---|---|---|---|---|---|---|
`;

/** Replaces a part's rows in the table. */
export function written(part, tally, { browser, adapter }) {
  const old = existsSync(FILE)
    ? readFileSync(FILE, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('| ') && !line.startsWith('| part '))
    : [];
  const date = new Date().toISOString().slice(0, 10);
  const fresh = [...tally.rows.values()].map(
    ({ fault, times, held, worst, note }) =>
      `| ${[part, fault, times, held, worst ? `${Math.round(worst)} ms` : '–', note ?? '', date, `Chromium ${browser}`, adapter].join(' | ')} |`,
  );
  const partOf = (line) => line.split('|')[1].trim();
  const rows = Object.keys(PARTS).flatMap((name) => (name === part ? fresh : old.filter((line) => partOf(line) === name)));
  writeFileSync(FILE, `${HEAD}${rows.join('\n')}\n`);
}
