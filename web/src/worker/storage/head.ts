/** The JSON that accompanies a generation outside the database: its manifest, its run, its history. */
import { historyEntry } from '../../protocol/events.js';
import { count, listOf, optional, record } from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import { MANIFEST_FORMAT, manifestParser, runParser } from './manifest.js';
import type { RunRecord } from './manifest.js';
import type { GenerationCopy } from './generation-copy.js';

/** Parser of this JSON, whose format 1 had no history. */
export const headParser = record({
  format: count,
  manifest: manifestParser,
  run: optional(runParser),
  history: optional(listOf(historyEntry)),
});
export type Head = Parsed<typeof headParser>;

/** Key for a loss that is not finite, which JSON cannot express as a number. */
const NON_FINITE = 'nonFinite';
const spelled = (_key: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? { [NON_FINITE]: String(value) } : value;
const restored = (_key: string, value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return value;
  const word: unknown = Reflect.get(value, NON_FINITE);
  return word === 'NaN' || word === 'Infinity' || word === '-Infinity' ? Number(word) : value;
};

/** Returns what leaves the database of a run's base: neither locations nor bytes. */
const left = ({ base }: RunRecord): Pick<RunRecord, 'base' | 'baseData'> => ({
  base: base?.map(({ name, bytes }) => ({ name, bytes })),
  baseData: undefined,
});

export function headJson({
  manifest,
  record: run,
  history,
}: Pick<GenerationCopy, 'manifest' | 'record' | 'history'>): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(
    JSON.stringify(
      { format: MANIFEST_FORMAT, manifest, run: run && { ...run, ...left(run) }, history },
      spelled,
    ),
  );
}

/** Parses any JSON value and restores losses that are not finite; the value is not checked yet. */
export const parsedJson = (json: string): unknown => JSON.parse(json, restored);
