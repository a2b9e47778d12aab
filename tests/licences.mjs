// Checks the licences of all compiled packages, as stated by each package: node tests/licences.mjs [Cargo.toml ...]
import { execFileSync } from 'node:child_process';
import { environment, root } from '../web/toolchain.mjs';

/** Accepted licences: those that only require their text, and MPL-2.0, which applies only to a package's own files. */
const TAKEN = ['0BSD', 'Apache-2.0', 'Apache-2.0 WITH LLVM-exception', 'BSD-2-Clause', 'BSD-3-Clause', 'BSL-1.0', 'CC0-1.0', 'ISC', 'MIT', 'MPL-2.0', 'Unicode-3.0', 'Unlicense', 'Zlib'];
/** The targets of the machine and of the browser. */
const TARGETS = [/^host: (.*)$/m.exec(execFileSync('rustc', ['-vV'], { encoding: 'utf8', env: environment }))[1], 'wasm32-unknown-unknown'];
const MANIFESTS = ['Cargo.toml', 'native-runner/cuda/Cargo.toml'];

/** Returns whether every part of an SPDX expression leaves a choice that is accepted. Old packages write a slash for OR. */
function isTaken(expression) {
  const parts = expression.replaceAll('/', ' OR ').split(/\bAND\b/);
  return parts.every((part) => part.replaceAll(/[()]/g, '').split(/\bOR\b/).some((name) => TAKEN.includes(name.trim())));
}

/** Returns the packages of a workspace that are compiled, with their licences. */
function packagesOf(manifest) {
  const args = ['tree', '--manifest-path', manifest, '--workspace', '--locked', '--prefix', 'none', '--edges', 'normal,build', '--format', '{p}|{l}|'];
  const text = execFileSync('cargo', [...args, ...TARGETS.flatMap((target) => ['--target', target])], { encoding: 'utf8', cwd: root, env: environment, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Map(text.split('\n').filter((line) => line.includes('|')).map((line) => line.split('|').slice(0, 2)));
}

for (const manifest of process.argv.length > 2 ? process.argv.slice(2) : MANIFESTS) {
  const packages = packagesOf(manifest);
  const wrong = [...packages].filter(([, licence]) => !isTaken(licence));
  for (const [name, licence] of wrong) console.error(`${manifest}: ${name}: expected a licence of ${TAKEN.join(', ')}, found ${licence || 'none'}`);
  console.log(`${manifest}: licences of ${packages.size} packages, ${wrong.length} not taken`);
  if (wrong.length > 0) process.exitCode = 1;
}
