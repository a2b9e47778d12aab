// The declarations of the npm package: those that its entries reach, so that nothing internal is packed.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { line, root } from './toolchain.mjs';

const { preProcessFile, readConfigFile, sys } = ts;
const CONFIG = 'web/tsconfig.package.json';
/** Classes have methods named by `Symbol.dispose`, which a program with the library of ES2022 alone does not know. */
const LIBRARY = '/// <reference lib="esnext.disposable" />\n';

/** Writes the declarations of the package's entries into a folder. @param {string} folder */
export function packageTypes(folder) {
  const [program, args] =
    line`node node_modules/typescript/bin/tsc --project ${CONFIG} --outDir ${folder}`;
  if (spawnSync(program, args, { cwd: root, stdio: 'inherit' }).status !== 0)
    throw new Error('the types of the package do not compile');
  const { config } = readConfigFile(join(root, CONFIG), sys.readFile);
  /** @type {string[]} */
  const entries = config.files.map((/** @type {string} */ path) =>
    path.replace(/^src\/(.*)\.ts$/, '$1.d.ts'),
  );
  const reached = new Set(entries);
  for (const path of reached) {
    const { importedFiles } = preProcessFile(readFileSync(join(folder, path), 'utf8'));
    for (const { fileName } of importedFiles)
      reached.add(posix.join(posix.dirname(path), fileName).replace(/\.js$/, '.d.ts'));
  }
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = name.replaceAll('\\', '/');
    // The glue of wasm-bindgen has declarations of its own.
    if (path.endsWith('.d.ts') && !path.startsWith('core/') && !reached.has(path))
      rmSync(join(folder, path));
  }
  const index = join(folder, 'index.d.ts');
  writeFileSync(index, LIBRARY + readFileSync(index, 'utf8'));
  // The worker exports nothing: it is imported to run.
  writeFileSync(join(folder, 'worker.d.ts'), 'export {};\n');
}
