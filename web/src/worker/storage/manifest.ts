/** Stored records of generations and of runs. */
import { messageOf } from '../../protocol/errors.js';
import { baseFile } from '../../protocol/base-files.js';
import type { StoredCheckpoint } from '../../protocol/reports.js';
import {
  count,
  flag,
  listOf,
  number,
  oneOf,
  optional,
  record,
  text,
} from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import { corrupt, quoted, tooNew } from './faults.js';

/** Format version in every manifest and every exported file; a newer one is CHECKPOINT_VERSION. */
export const MANIFEST_FORMAT = 1;

/** Name of the document that makes a folder of files a checkpoint. */
export const CHECKPOINT_JSON = 'checkpoint.json';

const chunkParser = record({ index: count, bytes: count, sha256: text });
export type ChunkRecord = Parsed<typeof chunkParser>;
const fileParser = record({ name: text, bytes: count, chunks: listOf(chunkParser) });
export type FileRecord = Parsed<typeof fileParser>;

/** The list of chunks that make a generation, with the hash of each. A generation exists if and only if its manifest does. */
export const manifestParser = record({
  format: count,
  run: text,
  generation: count,
  label: text,
  step: count,
  totalSteps: count,
  loss: optional(number),
  validationLoss: optional(number),
  /** Time of the save, which is only shown: a clock can be moved. */
  savedAt: number,
  /** Number of the save among those of all runs. */
  serial: optional(count),
  bytes: count,
  /** True if retention never removes the generation, because the user wants to keep it or because a decay starts here. */
  kept: optional(flag),
  mark: optional(oneOf('decay')),
  environment: record({ version: text, adapter: text }),
  files: listOf(fileParser),
});
export type Manifest = Parsed<typeof manifestParser>;

const runFields = {
  run: text,
  label: text,
  createdAt: number,
  dataName: text,
  /** Files in the stored data, one after the other; absent for the data of a run that was imported from a folder. */
  dataFiles: optional(listOf(record({ name: text, bytes: count, validation: flag }))),
  driver: text,
  data: optional(record({ bytes: count, chunks: listOf(chunkParser) })),
  /** Files of the base of the adapter that the run trains. */
  base: optional(listOf(record({ name: text, bytes: count }))),
};
/** The record of a run in the form in which it leaves the database. */
export const runParser = record(runFields);

/**
 * The record of a run, in addition to its generations: its name, the training data if they are stored, and the files of an adapter's base, whose
 * locations and bytes do not leave the database.
 */
const storedRun = record({
  ...runFields,
  base: optional(listOf(baseFile)),
  baseData: runFields.data,
});
export type RunRecord = Parsed<typeof storedRun>;

/** Parses a stored manifest, and checks its consistency and its key. */
export function readManifest(stored: unknown, run: string, generation: number): Manifest {
  const where = `manifest of run ${quoted(run)}, generation ${generation}`;
  const format: unknown =
    typeof stored === 'object' && stored !== null ? Reflect.get(stored, 'format') : undefined;
  if (typeof format === 'number' && format > MANIFEST_FORMAT) throw tooNew(format, MANIFEST_FORMAT);
  let manifest: Manifest;
  try {
    manifest = manifestParser(stored, 'manifest');
  } catch (thrown) {
    throw corrupt(`${where}: ${messageOf(thrown)}`, 'checkpoint.manifest');
  }
  if (manifest.run !== run || manifest.generation !== generation) {
    throw corrupt(
      `${where}: it is that of run ${quoted(manifest.run)}, generation ${manifest.generation}`,
      'checkpoint.manifest',
    );
  }
  const odd = manifest.files.find((file) => sumOf(file.chunks) !== file.bytes);
  if (odd)
    throw corrupt(
      `${where}: ${quoted(odd.name)} has ${odd.bytes} bytes, its chunks ${sumOf(odd.chunks)}`,
      'checkpoint.file.length',
    );
  return manifest;
}

/** Parses and checks a stored run record. */
export function readRun(stored: unknown, run: string): RunRecord {
  try {
    const found = storedRun(stored, 'run');
    if (found.run === run) return found;
  } catch {
    // Reported below, like a record of another run.
  }
  throw corrupt({ subject: quoted(run) }, 'checkpoint.run');
}

export const sumOf = (chunks: readonly { bytes: number }[]): number =>
  chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);

/** Returns the list entry of a checkpoint. */
export function infoOf(
  manifest: Manifest,
  known: RunRecord | undefined,
  home: 'indexeddb' | 'opfs' = 'indexeddb',
  fault?: string,
): StoredCheckpoint {
  const {
    run,
    generation,
    step,
    totalSteps,
    loss,
    validationLoss,
    bytes,
    savedAt,
    label,
    kept = false,
  } = manifest;
  return {
    run,
    generation,
    step,
    totalSteps,
    loss,
    validationLoss,
    bytes,
    savedAt,
    label,
    kept,
    home,
    fault,
    ...inputsOf(known),
  };
}

/** Returns what a list entry says of the run's inputs. */
const inputsOf = (
  known: RunRecord | undefined,
): Pick<StoredCheckpoint, 'dataName' | 'hasData' | 'base'> => ({
  dataName: known?.dataName ?? '',
  hasData: known?.data !== undefined,
  base: known?.base,
});

/** Returns the list entry of a generation that cannot be read. */
export function unreadable(
  run: string,
  generation: number,
  known: RunRecord | undefined,
  fault: string,
): StoredCheckpoint {
  const nothing = {
    step: 0,
    totalSteps: 0,
    bytes: 0,
    savedAt: known?.createdAt ?? 0,
    label: known?.label ?? run,
  };
  return { run, generation, ...nothing, kept: false, home: 'indexeddb', fault, ...inputsOf(known) };
}
