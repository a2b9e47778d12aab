/** Exact deltas: the bitwise difference of two models, and models with one added or subtracted. Without a GPU, each call in its own worker. */
import type { WorkerCall } from './call.js';
import { allOf, string } from './checks.js';
import type { ExportTarget } from './export-options.js';
import { reaching } from './exporting.js';
import { optionsOf } from './given.js';
import { toSource, toSources } from './inputs.js';
import type { FilesInput, Input } from './inputs.js';
import { askOwnWorker, workerCall } from './own-worker.js';
import { signalOf } from './request-inputs.js';
import type { Ask } from '../protocol/protocol.js';
import type { DeltaFiles } from '../protocol/reports.js';

/** Options of `applyDelta` and `removeDelta`. */
export interface DeltaOptions extends WorkerCall {
  /** Target to which the files are written while they are produced; without it they are in the result. */
  to?: ExportTarget | undefined;
}
/** Options of `deriveDelta`. */
export interface DeriveOptions extends DeltaOptions {
  /** Name of the delta. Default: 'delta'. */
  name?: string | undefined;
}

type Place = Pick<Ask<'delta.use'>, 'container' | 'target'>;
type Work = Parameters<typeof reaching<DeltaFiles>>[1];

/** Runs work that writes to a target, or returns the files without one. */
const placed = (to: ExportTarget | undefined, work: Work): Promise<DeltaFiles> =>
  to === undefined ? work({ container: 'files' }, {}) : reaching(to, work, 'to');

/**
 * Derives the delta from `base` to `target`: two models with the same tensors, in any form (safetensors with or without a manifest, JSON state dict,
 * Hugging Face folder, checkpoint, GGUF).
 */
export async function deriveDelta(
  base: FilesInput,
  target: FilesInput,
  options: DeriveOptions = {},
): Promise<DeltaFiles> {
  const { to, name = 'delta', signal: ofCall, ...rest } = optionsOf(options, 'the delta');
  const signal = signalOf(ofCall, base, target);
  const [, call] = allOf(
    () => string(name, 'name'),
    () => workerCall({ ...rest, signal }, ['to', 'name']),
  );
  return placed(to, async (place: Place, moved) => {
    const models = {
      base: await toSources(base, 'base', signal),
      tuned: await toSources(target, 'target', signal),
    };
    return askOwnWorker('delta.derive', { ...models, name, ...place }, call, moved);
  });
}

async function used(
  model: FilesInput,
  delta: Input,
  remove: boolean,
  options: DeltaOptions,
): Promise<DeltaFiles> {
  const { to, signal: ofCall, ...rest } = optionsOf(options, 'the delta');
  const signal = signalOf(ofCall, model, delta);
  const call = workerCall({ ...rest, signal }, ['to']);
  return placed(to, async (place: Place, moved) => {
    const files = {
      model: await toSources(model, 'model', signal),
      delta: await toSource(delta, 'delta', 'delta.safetensors', signal),
    };
    return askOwnWorker('delta.use', { ...files, remove, ...place }, call, moved);
  });
}

/** Adds a delta to its base, in the base's form: its weight files, which are those of the target bit for bit. */
export async function applyDelta(
  base: FilesInput,
  delta: Input,
  options: DeltaOptions = {},
): Promise<DeltaFiles> {
  return used(base, delta, false, options);
}

/** Subtracts a delta from its target, in the target's form: its weight files, which are those of the base bit for bit. */
export async function removeDelta(
  target: FilesInput,
  delta: Input,
  options: DeltaOptions = {},
): Promise<DeltaFiles> {
  return used(target, delta, true, options);
}
