/** Base model files of the adapters trained by this page, so that a recovery or a later resume need not ask for them. */
import type { SourceSpec } from '../protocol/protocol.js';
import type { BaseInfo } from '../protocol/reports.js';

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
