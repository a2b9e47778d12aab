// The committed results of these commands, results/NAME.json: one entry for each part, which a part that runs again replaces.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Replaces the entry of `part` in `results/${name}.json`. `order` lists the names of all parts. */
export function written(name, order, part, { words = '', rows, ...about }) {
  const file = new URL(`./results/${name}.json`, import.meta.url);
  const entries = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  entries[part] = {
    date: new Date().toISOString().slice(0, 10),
    ...about,
    words: words.replace(/\s+/g, ' ').trim() || undefined,
    rows,
  };
  const lines = (list) => list.map((row) => `\n  ${JSON.stringify(row)}`).join(',');
  const entry = ({ rows, ...rest }) =>
    `{\n ${JSON.stringify(rest).slice(1, -1)},\n "rows":[${lines(rows)}\n ]}`;
  const known = order
    .filter((key) => key in entries)
    .map((key) => `${JSON.stringify(key)}:${entry(entries[key])}`);
  writeFileSync(file, `{\n${known.join(',\n')}\n}\n`);
}
