/** Loads the newest complete generation of a run, with a warning for each one that is skipped. */
import { TabtuneError } from '../../protocol/errors.js';
import type { OnProgress } from '../../protocol/reports.js';
import type { Connection } from './connection.js';
import { everyGeneration } from './database.js';
import { absent, corrupt, quoted, storageError } from './faults.js';
import { readManifest } from './manifest.js';
import type { Manifest } from './manifest.js';
import { resident } from './opfs.js';
import { chunksOf, filesOf } from './generation-copy.js';

export interface Loaded {
  manifest: Manifest;
  files: Map<string, Blob>;
  home: 'indexeddb' | 'opfs';
  /** Reasons why a newer generation, or the database, was skipped. */
  warnings: TabtuneError[];
}

interface Asked {
  run: string;
  generation: number | undefined;
  signal: AbortSignal | undefined;
  onProgress: OnProgress | undefined;
  onDamaged: (generation: number) => void;
}

/** Returns whether an older generation, and finally the alternative storage, is tried after this error. */
const passable = (error: TabtuneError): boolean =>
  error.code === 'CHECKPOINT_CORRUPT' || error.code === 'STORAGE_FAILED';

const asPassable = (thrown: unknown): TabtuneError => {
  const error = storageError(thrown);
  if (!passable(error)) throw error;
  return error;
};

export async function loadNewest(connection: Connection, asked: Asked): Promise<Loaded> {
  const { run, generation, signal, onProgress } = asked;
  const warnings: TabtuneError[] = [];
  const faults: TabtuneError[] = [];
  let candidates: number[] = [];
  try {
    const known = await connection.use((database) => {
      const transaction = database.transaction(['manifests', 'heads']);
      return Promise.all([
        transaction.objectStore('manifests').getAllKeys(everyGeneration(run)),
        transaction.objectStore('heads').get(run),
      ]);
    });
    candidates = known[0].map(([, found]) => found).reverse();
    // A removal deletes the head.
    if (known[1] !== undefined && known[1] !== candidates[0])
      warnings.push(corrupt({ subject: quoted(run) }, 'checkpoint.head'));
  } catch (thrown) {
    faults.push(asPassable(thrown));
  }
  for (const candidate of generation === undefined
    ? candidates
    : candidates.filter((found) => found === generation)) {
    try {
      const stored: unknown = await connection.use((database) =>
        database.get('manifests', [run, candidate]),
      );
      const manifest = readManifest(stored, run, candidate);
      const files = await filesOf(
        { manifest, ...chunksOf(connection, run, candidate) },
        'verify',
        signal,
        onProgress,
      );
      return { manifest, files, home: 'indexeddb', warnings: [...warnings, ...faults] };
    } catch (thrown) {
      faults.push(asPassable(thrown));
      asked.onDamaged(candidate);
    }
  }
  const found = await fromSecondHome(asked).catch((thrown: unknown) => {
    faults.push(asPassable(thrown));
    return undefined;
  });
  if (found === undefined) throw faults[0] ?? absent(run);
  if (candidates.length === 0 && faults.length === 0) {
    warnings.push(
      corrupt(
        `run ${quoted(run)} is no longer in the database: generation ${found.manifest.generation} comes from its second copy`,
        'checkpoint.none',
      ),
    );
  }
  return { ...found, warnings: [...warnings, ...faults] };
}

async function fromSecondHome({
  run,
  generation,
  signal,
  onProgress,
}: Asked): Promise<Omit<Loaded, 'warnings'> | undefined> {
  const found = await resident(run, generation);
  if (found === undefined) return undefined;
  return {
    manifest: found.head.manifest,
    files: await filesOf(found.copy, 'verify', signal, onProgress),
    home: 'opfs',
  };
}
