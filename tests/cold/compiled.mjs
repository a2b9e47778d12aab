// Reads the records that `timed_rustc` wrote of each compiled crate.
import { existsSync, readFileSync } from 'node:fs';

/** Number of crates in a table. */
const ROWS = 30;

/** Returns every call of the compiler: name, target (`native` for tools, macros and tests), kind, optimization level, seconds of wall and of CPU. */
export function readCompiled(file) {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [name, target, kind, level, wall, cpu] = line.split('\t');
      return { name, target, kind, level, wall: Number(wall), cpu: Number(cpu) };
    });
}

/** Returns the crates of Burn, CubeCL and CubeK that were compiled twice for one target. */
function duplicates(crates) {
  const seen = new Map();
  for (const { name, target } of crates.filter(
    ({ name, kind }) => /^(burn|cubecl|cubek)/.test(name) && /^(lib|rlib)$/.test(kind),
  )) {
    const key = `${name} (${target})`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  return [...seen].filter(([, times]) => times > 1).map(([key, times]) => `${key}: ${times} times`);
}

/** Returns, for each target, the crates that took most CPU, slowest first, and the total of all crates. */
export function crateTables(crates) {
  const lines = [];
  for (const target of [...new Set(crates.map((each) => each.target))].sort()) {
    const of = crates.filter((each) => each.target === target).sort((a, b) => b.cpu - a.cpu);
    const total = of.reduce((sum, { cpu }) => sum + cpu, 0);
    lines.push(
      `**Crates for ${target}**: ${of.length} calls of the compiler, ${Math.round(total)} s of CPU.`,
      '',
    );
    lines.push('| crate | kind | opt-level | CPU seconds | wall |', '|---|---|---|---|---|');
    for (const { name, kind, level, cpu, wall } of of.slice(0, ROWS))
      lines.push(`| ${name} | ${kind} | ${level} | ${cpu.toFixed(1)} | ${wall.toFixed(1)} |`);
    lines.push('');
  }
  const twice = duplicates(crates);
  lines.push(
    `Crates of Burn, CubeCL and CubeK compiled more than once for a target: ${twice.length}${twice.length > 0 ? ` (${twice.join(', ')})` : ''}.`,
  );
  return lines;
}
