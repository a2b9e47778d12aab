/** The declarations of the package, as a strict program in an older TypeScript sees them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

import { packageTypes } from '../package-types.mjs';
import { manifest } from '../stage-package.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The `lib` that web/reference/page.md states. */
const [, LIBRARIES = ''] =
  /`"lib": \[([^\]]+)\]`/.exec(readFileSync(join(root, 'web', 'reference', 'page.md'), 'utf8')) ??
  [];
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

/** Returns the programs in the README of the package. */
function programsOfReadme(): string[] {
  const text = readFileSync(join(root, 'web', 'npm', 'README.md'), 'utf8');
  return [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, program = '']) => program);
}

it.each(['old-typescript', 'typescript'])(
  'the_declarations_compile_with_%s',
  (compiler) => {
    const folder = mkdtempSync(join(tmpdir(), 'tabtune-types-'));
    const tsc = (of: string, ...args: string[]): void => {
      try {
        execFileSync(process.execPath, [join(root, 'node_modules', of, 'bin', 'tsc'), ...args], {
          cwd: folder,
          encoding: 'utf8',
        });
      } catch (thrown) {
        expect.fail(String(Reflect.get(Object(thrown), 'stdout')));
      }
    };
    try {
      const place = join(folder, 'node_modules', 'tabtune');
      mkdirSync(join(place, 'dist'), { recursive: true });
      packageTypes(join(place, 'dist'));
      const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object;
      writeFileSync(join(place, 'package.json'), JSON.stringify(manifest(own)));
      const files = [PROGRAM, ...programsOfReadme()].map((program, index) => {
        const name = `program-${index}.ts`;
        writeFileSync(join(folder, name), `${program}export {};\n`);
        return name;
      });
      expect(files.length).toBeGreaterThan(4);
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
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: options, files }),
      );
      tsc(compiler, '--project', '.');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  120_000,
);

/** Returns the options of all public calls that may be absent, by the name of their type, with a flag if they may be `undefined` too. */
function optionalKeys(): Map<string, boolean> {
  const program = ts.createProgram([join(root, 'web', 'src', 'index.ts')], {
    ...ts.getParsedCommandLineOfConfigFile(
      join(root, 'tsconfig.json'),
      {},
      { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined },
    )?.options,
    exactOptionalPropertyTypes: true,
  });
  const checker = program.getTypeChecker();
  const found = new Map<string, boolean>();
  const seen = new Set<ts.Type>();
  const isOurs = (symbol: ts.Symbol): boolean =>
    symbol.declarations?.some((each) => each.getSourceFile().fileName.includes('/web/src/')) ??
    false;
  // A key that is only optional has a type of its own for being absent, to which an undefined value is not assigned.
  const accepts = (value: ts.Type): boolean =>
    (value.isUnion() ? value.types : [value]).includes(checker.getUndefinedType());
  const visit = (type: ts.Type): void => {
    if (seen.has(type)) return;
    seen.add(type);
    if (type.isUnion()) return type.types.forEach(visit);
    for (const of of [type.getNumberIndexType(), type.getStringIndexType()]) if (of) visit(of);
    if (type.isClass()) return;
    for (const key of checker.getPropertiesOfType(type)) {
      if (!isOurs(key)) continue;
      const value = checker.getTypeOfSymbol(key);
      if (key.flags & ts.SymbolFlags.Optional)
        found.set(`${checker.typeToString(type)}.${key.name}`, accepts(value));
      visit(value);
    }
  };
  const ofCalls = (signatures: readonly ts.Signature[]): void =>
    signatures.forEach(({ parameters }) =>
      parameters.forEach((parameter) => visit(checker.getTypeOfSymbol(parameter))),
    );
  const index = program.getSourceFile(join(root, 'web', 'src', 'index.ts'));
  const all = index && checker.getSymbolAtLocation(index);
  for (const name of all ? checker.getExportsOfModule(all) : []) {
    const symbol = name.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(name) : name;
    if (!(symbol.flags & ts.SymbolFlags.Value)) continue;
    const value = checker.getTypeOfSymbol(symbol);
    ofCalls(value.getCallSignatures());
    const members =
      symbol.flags & ts.SymbolFlags.Class ? [checker.getDeclaredTypeOfSymbol(symbol), value] : [];
    for (const key of members.flatMap((of) => of.getProperties()))
      if (
        isOurs(key) &&
        !key.name.includes('#') &&
        !key.getJsDocTags().some(({ name: tag }) => tag === 'internal')
      )
        ofCalls(checker.getNonNullableType(checker.getTypeOfSymbol(key)).getCallSignatures());
  }
  return found;
}

it('every_option_that_may_be_absent_may_be_undefined', () => {
  const all = optionalKeys();
  expect(all.size).toBeGreaterThan(200);
  expect([...all].filter(([, accepts]) => !accepts).map(([key]) => key)).toEqual([]);
}, 60_000);
