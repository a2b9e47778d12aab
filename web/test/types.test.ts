/** The declarations of the package, as a strict program in an older TypeScript sees them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The `lib` that web/README.md states. */
const [, LIBRARIES = ''] = /`"lib": \[([^\]]+)\]`/.exec(readFileSync(join(root, 'web', 'README.md'), 'utf8')) ?? [];
const PROGRAM = `
import { newModel, openSavedRuns, Trainer } from 'tabtune';
import type { TrainerEvent } from 'tabtune';

export async function trained(text: string, signal: AbortSignal | undefined, onProgress: (() => void) | undefined): Promise<TrainerEvent[]> {
  using runs = await openSavedRuns({ signal });
  await runs.list();
  const model = await newModel({ hiddenSize: 8, numHiddenLayers: 1, numAttentionHeads: 2 }, new Response(text), { signal, onProgress });
  const { values } = await model.tensor(model.info.tensors[0]?.name ?? '');
  const first: number | undefined = values[0];
  await using trainer = await Trainer.create({ model, data: { text }, steps: first === undefined ? 1 : 2, signal, onProgress });
  const events: TrainerEvent[] = [];
  for await (const event of trainer.run({ signal })) events.push(event);
  return events;
}
`;

it.each(['old-typescript', 'typescript'])(
  'the_declarations_compile_with_%s',
  (compiler) => {
    const folder = mkdtempSync(join(tmpdir(), 'tabtune-types-'));
    const tsc = (of: string, ...args: string[]): void => {
      try {
        execFileSync(process.execPath, [join(root, 'node_modules', of, 'bin', 'tsc'), ...args], { cwd: folder, encoding: 'utf8' });
      } catch (thrown) {
        expect.fail(String(Reflect.get(Object(thrown), 'stdout')));
      }
    };
    try {
      const place = join(folder, 'node_modules', 'tabtune');
      mkdirSync(place, { recursive: true });
      tsc('typescript', '--project', join(root, 'web', 'tsconfig.package.json'), '--outDir', place);
      writeFileSync(
        join(place, 'package.json'),
        JSON.stringify({ name: 'tabtune', type: 'module', exports: { '.': { types: './index.d.ts', default: './index.js' } } }),
      );
      writeFileSync(join(folder, 'main.ts'), PROGRAM);
      const options = {
        target: 'ES2022',
        lib: JSON.parse(`[${LIBRARIES}]`) as unknown,
        module: 'NodeNext',
        moduleResolution: 'NodeNext',
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        skipLibCheck: false,
        types: [],
      };
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['main.ts'] }));
      tsc(compiler, '--project', '.');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  120_000,
);
