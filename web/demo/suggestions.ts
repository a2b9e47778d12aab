/** The numbers that suit what is trained: the package's own choices for an opened model, quick ones for the small new model. */
import type { DataInspection } from 'tabtune';

import { byId } from './dom.js';
import { counted, grouped } from './format.js';
import { isTyped, suggestNumbers } from './numbers.js';
import type { NumberId, Suggestions } from './numbers.js';
import { LOOKED_AT } from './panels/data.js';
import { restrictRules, testedRate } from './optimizers.js';
import type { Trained } from './optimizers.js';
import { begun } from './words.js';

/** Numbers for watching the small new model, also where it is trained in software, which is a hundred times slower. */
const QUICK = { steps: 400, batch: 8, length: 64, sample: 40 };
const QUICK_SOFTWARE = { steps: 200, batch: 4, length: 48, sample: 20 };
/** Number of steps of an opened model in software. */
const SOFTWARE_STEPS = 20;
/** Share of the text of a new model that is kept for evaluations, and the number of batches of one of them. */
const QUICK_SHARE = 0.05;
const QUICK_BATCHES = 4;
/** Maximum number of batches of an evaluation between passes over the data. */
const BATCHES = 32;

/** The part of an inspection of data that is about a run on them. */
export type Found = Pick<DataInspection, 'settings'> & {
  report: Pick<DataInspection['report'], 'seqLen' | 'stepsPerEpoch' | 'lengths'>;
};
/** The last inspection, and the model, data and kind of training that it is about. */
let last: { key: string; found: Found | undefined } = { key: '', found: undefined };
/** The last suggestion. */
let before: { key: string; all: Suggestions } = { key: '', all: {} };
/** Numbers for which an inspection states what was typed, and no choice. */
const STATED: readonly NumberId[] = ['s-steps', 's-batch', 's-length', 's-precision'];
let software = false;

export const isSoftware = (): boolean => software;

/** Applies the numbers for a software adapter. */
export function useSoftware(): void {
  software = true;
  suggest('fresh', last.key.replace(/^fresh /, ''), undefined);
}

/** Returns the share of the data that is kept for evaluations, and how often and by how many batches a run is evaluated. */
export function evaluation(
  trained: Trained,
  steps: number,
): { share: number; every: number; batches: number } {
  const { settings } = last.found ?? {};
  if (trained === 'fresh' || !settings)
    return {
      share: QUICK_SHARE,
      every: Math.max(10, Math.round(steps / 10)),
      batches: QUICK_BATCHES,
    };
  const every = settings.chosen.find(({ name }) => name === 'evalEvery')?.value;
  return {
    share: settings.values.validationFraction ?? 0,
    every: typeof every === 'number' ? Math.min(every, steps) : 0,
    batches: software ? QUICK_BATCHES : BATCHES,
  };
}

/** Returns the numbers for the small new model. */
function quick(found: Found | undefined): Suggestions {
  const { steps, batch, length, sample } = software ? QUICK_SOFTWARE : QUICK;
  const rows = found?.report.lengths ? found.report.seqLen : undefined;
  return {
    's-steps': { value: steps },
    's-rate': { value: testedRate('fresh') },
    's-batch': { value: batch },
    's-length': {
      value: rows ?? length,
      reason: rows === undefined ? undefined : 'Follows the lengths of the rows.',
    },
    's-sample': { value: sample },
    's-precision': { value: 'f32' },
    's-schedule': { value: 'cosine' },
  };
}

/** Returns the numbers that the package chose for an opened model. */
function chosen(
  trained: Trained,
  { settings: { values, chosen: all }, report }: Found,
): Suggestions {
  const why = (name: string): string | undefined => {
    const reason = all.find((each) => each.name === name)?.reason;
    return reason === undefined ? undefined : `${begun(reason)}.`;
  };
  const { stepsPerEpoch, seqLen, lengths } = report;
  const steps = Math.min(values.steps ?? 0, software ? SOFTWARE_STEPS : Infinity);
  const few = `Few, because this browser computes in software: one pass over your data is ${counted(stepsPerEpoch, 'step')}.`;
  const passes = typeof values.epochs === 'number' ? values.epochs : steps / stepsPerEpoch;
  const shares = `${Number(passes.toPrecision(2))} passes over your data.`;
  return {
    's-steps': {
      value: steps,
      reason: software ? few : [shares, why('epochs')].filter(Boolean).join(' '),
    },
    's-rate': {
      value: why('learningRate') === undefined ? testedRate(trained) : (values.learningRate ?? 0),
      reason:
        why('learningRate') ??
        'This rule’s own rate, a part of the one that was tested on new weights.',
    },
    's-batch': {
      value: values.batchSize ?? 1,
      reason: why('batchSize') ?? 'Sequences of one step; more of them need more memory.',
    },
    's-length': {
      value: seqLen,
      reason: lengths
        ? `Tokens of a sequence; half of your examples have up to ${grouped(lengths.p50)}, 95 % up to ${grouped(lengths.p95)}.`
        : 'Tokens of a sequence, into which the text is cut.',
    },
    's-sample': { value: software ? steps : Math.max(1, Math.round(steps / 4)) },
    's-precision': {
      value: values.precision ?? 'f32',
      reason: why('precision') ?? 'An adapter is small: exact values cost little.',
    },
    's-schedule': { value: 'cosine', reason: why('lrScheduler') },
  };
}

/** The sentence about all the numbers. */
function about(trained: Trained): string {
  if (trained === 'fresh')
    return 'Quick numbers, made for watching the small new model; a model that is opened gets others.';
  return software
    ? 'Suggested for this model and your data, with few steps, since there is no GPU here and each takes long.'
    : 'Suggested for this model and your data. A number that you change stays until you choose another model or other data.';
}

/**
 * Suggests numbers for a kind of training. `subject` names the model and the data; `found` is their inspection, or undefined for the last one of the
 * same subject.
 */
export function suggest(trained: Trained, subject: string, found: Found | undefined): void {
  const key = `${trained} ${subject}`;
  if (found || key !== last.key) last = { key, found };
  restrictRules(trained);
  byId('numbers-said', HTMLElement).textContent = about(trained);
  const fresh = trained === 'fresh';
  const all = fresh ? quick(last.found) : last.found ? chosen(trained, last.found) : {};
  for (const id of fresh ? (['s-length'] as const) : STATED)
    if (last.found && isTyped(id)) all[id] = before.key === key ? before.all[id] : undefined;
  before = { key, all };
  suggestNumbers(all);
}

/**
 * Returns what is suggested for a large file, of which only the beginning was inspected: choices that do not depend on the data are those for another
 * text, and a pass over the data is as long as its beginning says.
 */
export async function ofLarge(
  { size }: File,
  found: DataInspection,
  elsewhere: () => Promise<DataInspection>,
): Promise<Found> {
  const { settings } = await elsewhere();
  const stepsPerEpoch = Math.ceil((found.report.stepsPerEpoch * size) / LOOKED_AT);
  const { epochs, steps } = settings.values;
  const values = {
    ...settings.values,
    steps: typeof epochs === 'number' ? Math.ceil(epochs * stepsPerEpoch) : steps,
  };
  return { report: { ...found.report, stepsPerEpoch }, settings: { ...settings, values } };
}
