// node tests/bench/registers.mjs MESA: reads the lines of `tabtune-dev bench registers --json` from standard input and writes them to
// registers/registers.json, one kernel a line. MESA is the version of Mesa that compiled the kernels.
import { readFileSync, writeFileSync } from 'node:fs';

/** Returns the figures of one compiled kernel, with the instructions per multiply-add of each of its sums of products. */
function figures({ family: _, loops: __, products, ...row }) {
  const ratios = products.map(({ instructions, fused, multiplies }) =>
    Number((instructions / (fused + multiplies)).toFixed(2)),
  );
  return ratios.length > 0 ? { ...row, per_multiply_add: ratios } : row;
}

const families = {};
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  const compiled = JSON.parse(line);
  const rows = (families[compiled.family] ??= []);
  const row = figures(compiled);
  if (compiled.loops === 'bounded') rows.push(row);
  else {
    const bounded = rows.find(({ kernel }) => kernel === row.kernel);
    const differing = Object.entries(row).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(bounded[key]),
    );
    if (differing.length > 0) bounded.free = Object.fromEntries(differing);
  }
}
const list = ([family, rows]) =>
  `"${family}":[\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]`;
const parts = [`"mesa":${JSON.stringify(process.argv[2])}`, ...Object.entries(families).map(list)];
writeFileSync(
  new URL('./registers/registers.json', import.meta.url),
  `{\n${parts.join(',\n')}\n}\n`,
);
