/** The files beside which this page trained adapters: a recovery and a later resume find them without asking. */
import type { SourceSpec } from '../protocol/protocol.js';

const bases = new Map<string, SourceSpec[]>();

export const baseOf = (run: string): SourceSpec[] | undefined => bases.get(run);

/** Keeps the files of a run's base; nothing without them. */
export function keepBase(run: string, files: SourceSpec[] | undefined): void {
  if (files) bases.set(run, files);
}

export const dropBase = (run: string): boolean => bases.delete(run);
