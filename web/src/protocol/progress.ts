/** Progress of long calls. */
import { number, oneOf, optional, record, text } from './parse.js';
import type { Parser } from './parse.js';

/** Progress of one phase of a long call. Totals are known from the start. */
export interface PhaseProgress {
  /** Work that is being done. */
  phase:
    | 'download'
    | 'read'
    | 'verify'
    | 'upload'
    | 'compile'
    | 'save'
    | 'export'
    | 'import'
    | 'measure'
    | 'ready';
  /** Name of the file that is read or written. */
  file?: string | undefined;
  /** Number of bytes, or of other things, that are done. */
  loaded: number;
  /** Number of all of them. */
  total: number;
  /** Share of this phase that is done, or of this file in a download, from 0 to 1. */
  fraction: number;
}
/** Progress of a long call. */
export interface Progress extends PhaseProgress {
  /**
   * Share of the whole call that is done, from 0 to 1; it never becomes smaller. Each phase has a fixed weight: when it begins, it gets the part of what
   * is left that its weight is among its own and those of the phases that may still come. 1 is the end.
   */
  overall: number;
}
export const progress: Parser<PhaseProgress> = record({
  phase: oneOf(
    'download',
    'read',
    'verify',
    'upload',
    'compile',
    'save',
    'export',
    'import',
    'measure',
    'ready',
  ),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
});
export type OnProgress = (progress: PhaseProgress) => void;
