// The sections of ../CONSUMERS.md, one for each part; a part that runs again replaces its own.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

const FILE = join(root, 'tests', 'torture', 'CONSUMERS.md');
const HEAD = `# Consumers: what other programs make of the files that tabtune writes

\`npm run consumers [part]\` makes small models of every family, lets tabtune write them in every type, and gives the
files to llama.cpp, gguf-py, @huggingface/gguf, Python's safetensors and transformers, all at exact versions
(\`consumers/install.mjs\`) and on one thread of the CPU. What is expected is computed in float64 with numpy
(\`consumers/forward.py\`) over the values that gguf-py reads, without any code of tabtune. A failure ends the program
with 1.
`;

/** Formats a figure with two digits. */
export const figure = (value) => (value === 0 ? '0' : value.toExponential(1));

/** Returns cells about a reader's run: the worst difference, its share of the allowed one, how often its best token is the same. */
export const ranAs = ({ worst, share, bests }, positions) => [
  figure(worst),
  `${(100 * share).toFixed(0)} %`,
  `${bests} of ${positions.length}`,
];

/** Returns a cell about tabtune's own continuation: the worst difference, and the number of positions. */
export const ownAs = ({ worst, count }) => `${figure(worst)} (${count})`;

/** Wraps the words of a text in lines of at most 120 columns; paragraphs stay apart. */
const wrapped = (text) =>
  text
    .split(/\n{2,}/)
    .map((paragraph) =>
      paragraph
        .trim()
        .split(/\s+/)
        .reduce(
          (lines, word) => {
            const longer = `${lines.at(-1)} ${word}`;
            return longer.length > 120 ? [...lines, word] : [...lines.slice(0, -1), longer.trimStart()];
          },
          [''],
        )
        .join('\n'),
    )
    .join('\n\n');

/** Replaces a part's section. `order` lists the names of all parts. */
export const written = (...section) => writtenInto(FILE, HEAD, ...section);

/** Does the same in another file, which begins with `head`. */
export function writtenInto(file, head, order, part, title, words, columns, rows) {
  const old = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split(/^(?=## )/m)
        .slice(1)
    : [];
  const sections = new Map(old.map((text) => [text.slice(3).split(':')[0], text.trimEnd()]));
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const date = new Date().toISOString().slice(0, 10);
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
  sections.set(part, `## ${part}: ${title}\n\n${wrapped(`${words} Made on ${date}.`)}\n\n${table}`);
  const found = order.filter((name) => sections.has(name)).map((name) => sections.get(name));
  writeFileSync(file, `${[head.trimEnd(), ...found].join('\n\n')}\n`);
}
