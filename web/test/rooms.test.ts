/** Checks which files of `web/src` import which, and the contents of its declarations. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const web = fileURLToPath(new URL('..', import.meta.url));
type Sources = ReadonlyMap<string, string>;

/** Returns the TypeScript files below a folder of `web`, or its files with another ending, by their paths in it. */
function sourcesOf(folder: string, ending = '.ts', recursive = true): Sources {
  const paths = readdirSync(join(web, folder), { recursive, encoding: 'utf8' }).filter((path) =>
    path.endsWith(ending),
  );
  return new Map(
    paths.map((path) => [
      path.replaceAll('\\', '/'),
      readFileSync(join(web, folder, path), 'utf8'),
    ]),
  );
}

/** Returns the imports of a file, both of values and of types. */
const importsOf = (source: string): string[] =>
  ts.preProcessFile(source).importedFiles.map(({ fileName }) => fileName);
/** Returns the file that a relative import in `path` refers to. */
const meant = (path: string, imported: string): string =>
  posix.join(posix.dirname(path), imported).replace(/\.js$/, '.ts');

/** The rooms of `web/src`, and the rooms that each may import in addition to itself; `packages` are those of npm, and the wasm module. */
const ROOMS: Record<string, { rooms: string[]; packages: boolean }> = {
  protocol: { rooms: [], packages: false },
  page: { rooms: ['protocol'], packages: false },
  worker: { rooms: ['protocol'], packages: true },
  node: { rooms: ['protocol'], packages: true },
  testing: { rooms: ['worker', 'protocol', 'node'], packages: true },
};
/** The entries of the package, and what each may import. */
const ENTRIES: Record<string, string[]> = {
  'index.ts': ['page', 'protocol'],
  'files.ts': ['index.ts'],
  'files.node.ts': ['files.ts', 'node'],
  'schema.ts': ['protocol'],
  'testing.ts': ['index.ts', 'testing'],
};
const roomOf = (path: string): string => path.split('/')[0] ?? '';

function faultsOfRooms(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const entry = ENTRIES[path];
    const room = entry ? { rooms: entry, packages: false } : ROOMS[roomOf(path)];
    if (!room) {
      faults.push(`${path} is in no room`);
      continue;
    }
    for (const imported of importsOf(source)) {
      const relative = imported.startsWith('.');
      const target = relative ? roomOf(meant(path, imported)) : '';
      if (relative ? target !== roomOf(path) && !room.rooms.includes(target) : !room.packages)
        faults.push(`${path} imports ${imported}`);
    }
  }
  return faults;
}

/** Returns the files that import themselves indirectly. */
function circles(sources: Sources): string[] {
  const next = (path: string): string[] =>
    importsOf(sources.get(path) ?? '')
      .filter((imported) => imported.startsWith('.'))
      .map((imported) => meant(path, imported));
  const reached = (start: string): Set<string> => {
    const seen = new Set<string>();
    const waiting = next(start);
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue;
      seen.add(path);
      waiting.push(...next(path));
    }
    return seen;
  };
  return [...sources.keys()].filter((path) => reached(path).has(path));
}

/** Returns imports of the demo that are neither its own files nor the public surface. */
function demoFaults(sources: Sources): string[] {
  const inner = (path: string, imported: string): boolean =>
    imported.startsWith('.')
      ? meant(path, imported).startsWith('..')
      : /^tabtune-|^tabtune\/(?!worker\?|schema$)/.test(imported);
  return [...sources].flatMap(([path, source]) =>
    importsOf(source)
      .filter((imported) => inner(path, imported))
      .map((imported) => `${path} imports ${imported}`),
  );
}

describe('rooms', () => {
  const sources = sourcesOf('src');
  it('import_themselves_and_the_protocol', () => {
    expect(sources.size).toBeGreaterThan(50);
    expect(faultsOfRooms(sources)).toEqual([]);
  });
  it('have_no_circles', () => {
    expect(circles(sources)).toEqual([]);
  });
  it.each(['demo', 'test'])('have_no_circles_in_%s', (folder) => {
    expect(circles(sourcesOf(folder))).toEqual([]);
  });
  it.each([
    ['.', false],
    ['../tests', false],
    ['../tests/browser', false],
    ['../tests/torture', true],
    ['../tests/bench', true],
  ])('have_no_circles_in_the_scripts_of_%s', (folder, recursive) => {
    const scripts = sourcesOf(folder, '.mjs', recursive);
    expect(scripts.size).toBeGreaterThan(3);
    expect(circles(scripts)).toEqual([]);
  });
  it('are_left_by_the_demo_alone_and_through_the_public_surface', () => {
    expect(demoFaults(sourcesOf('demo'))).toEqual([]);
  });
  it.each([
    ['page/a.ts', "import { b } from '../worker/b.js';"],
    ['page/a.ts', "import { openDB } from 'idb';"],
    ['worker/storage/a.ts', "import type { B } from '../../page/b.js';"],
    ['protocol/a.ts', "export * from '../page/b.js';"],
    ['protocol/a.ts', "export * from '../index.js';"],
    ['index.ts', "export { b } from './worker/b.js';"],
    ['files.ts', "export { b } from './page/b.js';"],
    ['page/a.ts', "import { b } from '../testing/b.js';"],
    ['worker/a.ts', "import { b } from '../testing/b.js';"],
    ['page/a.ts', "import { b } from '../node/b.js';"],
    ['files.ts', "export { b } from './node/b.js';"],
    ['testing.ts', "export { b } from './worker/b.js';"],
    ['stray.ts', ''],
  ])('find_a_planted_import_in_%s', (path, source) => {
    expect(faultsOfRooms(new Map([[path, source]]))).toHaveLength(1);
  });
  it('find_a_planted_circle', () => {
    expect(
      circles(
        new Map([
          ['page/a.ts', "import './b.js';"],
          ['page/b.ts', "import type { A } from './a.js';"],
          ['page/c.ts', "import './a.js';"],
        ]),
      ),
    ).toEqual(['page/a.ts', 'page/b.ts']);
  });
  it('find_a_planted_import_of_the_demo', () => {
    const planted =
      "import '../../src/page/link.js'; import 'tabtune-wasm'; import 'tabtune'; import '../dom.js'; import 'tabtune/worker?worker&url'; import 'tabtune/schema';";
    expect(demoFaults(new Map([['panels/a.ts', planted]]))).toHaveLength(2);
  });
});

/** Returns the package's declarations, by their paths below `dist`. */
function declarations(): Sources {
  const config = join(web, 'tsconfig.package.json');
  const { fileNames, options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, (path) => ts.sys.readFile(path)).config,
    ts.sys,
    web,
  );
  const written = new Map<string, string>();
  ts.createProgram(fileNames, options).emit(undefined, (path, text) =>
    written.set(path.slice(dirname(web).length).replace(/^\/?dist\//, ''), text),
  );
  return written;
}

describe('declarations', () => {
  it('show_no_constructor_connection_or_port', { timeout: 120_000 }, () => {
    const all = declarations();
    const seen = new Map<string, string>();
    const waiting = Object.keys(ENTRIES).map((path) => path.replace(/\.ts$/, '.d.ts'));
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue;
      const text = all.get(path) ?? '';
      seen.set(path, text);
      for (const imported of importsOf(text))
        waiting.push(meant(path, imported).replace(/\.ts$/, '.d.ts'));
    }
    expect(seen.size).toBeGreaterThan(10);
    const inner = [
      'page/link',
      'page/rpc',
      'page/starts',
      'page/recovery',
      'protocol/messages',
      'protocol/protocol',
      'worker/',
    ];
    expect(
      [...seen.keys()].filter((path) => inner.some((start) => path.startsWith(start))),
    ).toEqual([]);
    const leaks = [...seen].filter(
      ([path, text]) =>
        path.startsWith('page/') && /^ {4}constructor\(|\b(Port|Connection|Link)\b/m.test(text),
    );
    expect(leaks.map(([path]) => path)).toEqual([]);
  });
});
