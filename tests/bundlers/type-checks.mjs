// The types of every entry, in a project with the stated library and without skipLibCheck.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Ways to find a module, with the form of modules that belongs to each. */
const LOOKUPS = { bundler: 'esnext', node16: 'node16' };

/** @param {import('./page.mjs').At} at */
export async function types({ folder, shell }) {
  for (const [moduleResolution, module] of Object.entries(LOOKUPS)) {
    const compilerOptions = {
      ...{ module, moduleResolution, target: 'es2022', lib: ['es2022', 'dom'], types: [] },
      ...{ strict: true, exactOptionalPropertyTypes: true, resolveJsonModule: true },
      ...{ skipLibCheck: false, noEmit: true },
    };
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['entries.ts'] }),
    );
    await shell('tsc', '--project', '.');
  }
  return undefined;
}
