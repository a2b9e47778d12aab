/** How long steps took with certain settings, and from that how long a run takes. */
import type { TrainOptions } from 'tabtune';

/** Seconds of a step, and of one batch of an evaluation if that was measured. */
export interface Speed {
  step: number;
  batch?: number | undefined;
}
/** A run before it starts: its steps, and the number of evaluations with that of their batches. */
export interface Plan {
  steps: number;
  evaluations: number;
  batches: number;
}

const KEY = 'tabtune.speeds';
/** Number of settings whose speed is kept, and of steps over which it is averaged. */
const KEPT = 6;
const STEPS = 20;
/** Seconds of a run above which a lighter one is offered. */
export const LONG = 15 * 60;

/** Settings that the duration of a step does not depend on. */
const INDEPENDENT = new Set(['steps', 'learningRate', 'lrScheduler', 'seed', 'validationFraction']);

/** Returns what the duration of a step depends on. */
export function speedKey(model: string, options: TrainOptions): string {
  const others = Object.entries(options).filter(([name]) => !INDEPENDENT.has(name));
  return JSON.stringify([model, others]);
}

function kept(): [string, Speed][] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(found) ? (found as [string, Speed][]) : [];
  } catch {
    // Storage may be disabled, or contain something else: then nothing was measured.
    return [];
  }
}

/** Speeds of this visit, which storage may not take. */
const measured = new Map<string, Speed>(kept());
let recent: { key: string; secs: number[] } = { key: '', secs: [] };

export const speedOf = (key: string): Speed | undefined => measured.get(key);

export function keepSpeed(key: string, speed: Speed): void {
  measured.delete(key);
  measured.set(key, speed);
  try {
    localStorage.setItem(KEY, JSON.stringify([...measured].slice(-KEPT)));
  } catch {
    // Nothing depends on it.
  }
}

/** Notes the seconds of a step. The first one of a run also prepares the GPU. */
export function noteStep(key: string, step: number, secs: number): void {
  if (recent.key !== key || step === 1) recent = { key, secs: [] };
  if (step === 1) return;
  recent.secs.push(secs);
  if (recent.secs.length > STEPS) recent.secs.shift();
}

/** Keeps the speed of the steps that were noted. */
export function keepNoted(): void {
  const { key, secs } = recent;
  if (secs.length === 0) return;
  const step = secs.reduce((sum, each) => sum + each, 0) / secs.length;
  keepSpeed(key, { ...measured.get(key), step });
}

/** Returns the seconds of a run, with evaluations if their speed is known. */
export const secondsOf = (
  { step, batch = 0 }: Speed,
  { steps, evaluations, batches }: Plan,
): number => steps * step + evaluations * batches * batch;

/** Returns a duration in words, as rough as an estimate is. */
export function roughly(secs: number): string {
  const [count, unit] =
    secs < 90
      ? [Math.ceil(secs / 10) * 10, 'second']
      : secs < 5400
        ? [Math.round(secs / 60), 'minute']
        : [Number((secs / 3600).toPrecision(2)), 'hour'];
  return `about ${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** Returns the change that makes a run last about a quarter of an hour: fewer steps, or if only few were left, half as long sequences or half the batch. */
export function lightened(
  speed: Speed,
  { steps, seqLen, batchSize }: { steps: number; seqLen: number; batchSize: number },
): { 's-steps': number } | { 's-length': number } | { 's-batch': number } {
  const fewer = Math.floor((0.9 * LONG) / speed.step);
  if (fewer >= Math.min(steps, 20)) return { 's-steps': Math.min(steps - 1, fewer) };
  if (seqLen > 32) return { 's-length': Math.ceil(seqLen / 2) };
  if (batchSize > 1) return { 's-batch': Math.ceil(batchSize / 2) };
  return { 's-steps': Math.max(1, Math.min(steps - 1, fewer)) };
}
