/**
 * Base model files of adapters: those that this page has read, so that a recovery or a later resume need not ask for them, and those that a run has
 * stored or remembers.
 */
import { answerTo } from '../protocol/answers.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { BaseFile, StoredBaseFile } from '../protocol/base-files.js';
import type { BaseInfo, CheckpointInfo, StoredCheckpoint } from '../protocol/reports.js';

interface Base {
  /** Identity of the files by their checksums, if these are known. */
  sums: string | undefined;
  files: SourceSpec[];
}

const bases = new Map<string, Base>();

export const baseOf = (run: string): SourceSpec[] | undefined => bases.get(run)?.files;

/** Remembers the files of a run's base; equal bases are kept once. Does nothing if no files are given. */
export function keepBase(
  run: string,
  files: SourceSpec[] | undefined,
  info: BaseInfo | null,
): void {
  if (!files) return;
  const key = info?.files.map(({ bytes, sha256, piecesSha256 = sha256 }) =>
    piecesSha256 === undefined ? undefined : `${bytes} ${piecesSha256}`,
  );
  const sums = key?.every((sum) => sum !== undefined) === true ? key.join() : undefined;
  const equal =
    sums === undefined ? undefined : [...bases.values()].find((base) => base.sums === sums);
  bases.set(run, equal ?? { sums, files });
}

/** Gives a copy of a run the base of the original. */
export function copyBase(from: string, to: string): void {
  const base = bases.get(from);
  if (base) bases.set(to, base);
}

export const dropBase = (run: string): boolean => bases.delete(run);

/**
 * Returns whether a file can be read now. A handle needs an existing permission, because requesting one needs a click. The origin's own files need
 * none, and browsers without other files have no query for it.
 */
async function isReadable(handle: FileSystemFileHandle): Promise<boolean> {
  const query: unknown = Reflect.get(handle, 'queryPermission');
  if (typeof query === 'function') {
    const state = await answerTo<unknown>(
      'permission',
      () => Reflect.apply(query, handle, [{ mode: 'read' }]) as Promise<unknown>,
    );
    if (state !== 'granted') return false;
  }
  return handle.getFile().then(
    () => true,
    () => false,
  );
}

/** Returns the files that a resume must be given again. */
async function missingFiles(base: readonly BaseFile[]): Promise<BaseFile[]> {
  const found = await Promise.all(
    base.map(
      async ({ from, stored }) =>
        stored === true || typeof from === 'string' || (from !== undefined && isReadable(from)),
    ),
  );
  return base.filter((_, at) => found[at] === false);
}

/** Returns the list entry of a checkpoint, with the files that `Trainer.resume` in this page has to be given. */
export async function listed({ base = [], ...info }: StoredCheckpoint): Promise<CheckpointInfo> {
  const missing = baseOf(info.run) ? [] : await missingFiles(base);
  const needed = missing.map(({ name, bytes }) => ({ name, bytes }));
  return { ...info, needsBase: needed.length > 0 && needed };
}

/** Describes a file at its recorded location. */
async function found({ name, from, blob }: StoredBaseFile): Promise<SourceSpec> {
  if (blob) return { kind: 'blob', name, blob };
  if (typeof from === 'object')
    return { kind: 'blob', name, blob: await from.getFile(), handle: from };
  // The sum finds a file that is kept.
  const [url = '', sum] = from?.split('#sum=') ?? [];
  return { kind: 'url', name, url, sum };
}

/**
 * Returns a run's base from its records, with the given files in place of the missing ones; more files than are missing are a whole base. Without
 * files that are missing and were not given, it is empty, which the core refuses.
 */
export async function wholeBase(
  recorded: readonly StoredBaseFile[],
  given: SourceSpec[] | undefined,
): Promise<SourceSpec[]> {
  // Stored bytes that are damaged are not there.
  const base = recorded.map((file) => ({ ...file, stored: file.blob !== undefined }));
  const missing = await missingFiles(base);
  if (given === undefined && missing.length > 0) return [];
  // A name of a hub means all files.
  const isWhole = (specs: SourceSpec[]): boolean =>
    specs.length > missing.length || specs.some(({ kind }) => kind === 'hub');
  if (given !== undefined && isWhole(given)) return given;
  const others = base.filter((file) => !missing.includes(file));
  return [...(await Promise.all(others.map(found))), ...(given ?? [])];
}
