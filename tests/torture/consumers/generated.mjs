// Files that gguf-py and Python's safetensors write, read by tabtune: ../generated.py.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { environment, root, run } from '../../../web/toolchain.mjs';
import { installPython, python } from './install.mjs';

const FILES = 10_000;

/** Returns the test binary of tests/suite. SUITE names an existing one. */
async function suite() {
  if (process.env.SUITE) return process.env.SUITE;
  const build = [
    'test',
    '--workspace',
    '--test',
    'suite',
    '--no-run',
    '--locked',
    '--message-format',
    'json',
  ];
  await run('cargo', ['test', '--workspace', '--test', 'suite', '--no-run', '--locked']);
  const { stdout } = await promisify(execFile)('cargo', build, {
    cwd: root,
    env: environment,
    maxBuffer: 256 << 20,
  });
  const made = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return made.findLast(({ target, executable }) => executable && target.name === 'suite')
    .executable;
}

export async function generated({ tabtune, fail }) {
  await installPython();
  const command = [
    join(root, 'tests', 'torture', 'generated.py'),
    '--tabtune',
    tabtune.binary,
    '--suite',
    await suite(),
    '--files',
    String(FILES),
  ];
  const { stdout } = await promisify(execFile)(python, command, { maxBuffer: 64 << 20 }).catch(
    (error) => {
      fail(`generated: ${error.stdout || error.message}`);
      return error;
    },
  );
  const table = stdout
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.trim()),
    );
  const [answers, dtypes] = [
    table.filter((cells) => cells.length === 5 && cells[0] !== 'format' && /^\d/.test(cells[1])),
    table.filter((cells) => cells[0] !== 'format' && !/^\d/.test(cells[1])),
  ];
  const said = answers
    .map(([format, files, of, answer]) => `${format}: ${files} ${of}${answer ? `, ${answer}` : ''}`)
    .join('; ');
  return {
    title: 'files that other programs write, read by tabtune',
    words: `${FILES.toLocaleString('en')} files of random tensors of each format, by gguf-py and by Python's safetensors (\`generated.py\`). Names, dtypes, shapes and counts of NaN are
those that were written, or the file is refused with the one code that it has to be (${said}). The tensors whose bytes in the file are equal; those whose values,
decoded by gguf-py or, for numbers, by numpy, are equal bit for bit (every NaN counts as one), and how many values they have. Nobody else decodes what has none.`,
    columns: ['format', 'dtype', 'tensors with equal bytes', 'decoded to equal bits', 'values'],
    rows: dtypes,
  };
}
