/** The files beside which this page trained adapters: a recovery and a later resume find them without asking. */
import type { SourceSpec } from '../protocol/protocol.js';
import type { BaseInfo } from '../protocol/reports.js';

interface Base {
  /** What its files are, where their sums are known. */
  sums: string | undefined;
  files: SourceSpec[];
}

const bases = new Map<string, Base>();

export const baseOf = (run: string): SourceSpec[] | undefined => bases.get(run)?.files;

/** Keeps the files of a run's base, those of equal bases once; nothing without them. */
export function keepBase(run: string, files: SourceSpec[] | undefined, info: BaseInfo | null): void {
  if (!files) return;
  const key = info?.files.map(({ bytes, sha256, piecesSha256 = sha256 }) => (piecesSha256 === undefined ? undefined : `${bytes} ${piecesSha256}`));
  const sums = key?.every((sum) => sum !== undefined) === true ? key.join() : undefined;
  const equal = sums === undefined ? undefined : [...bases.values()].find((base) => base.sums === sums);
  bases.set(run, equal ?? { sums, files });
}

/** A copy of a run has its base. */
export function copyBase(from: string, to: string): void {
  const base = bases.get(from);
  if (base) bases.set(to, base);
}

export const dropBase = (run: string): boolean => bases.delete(run);
