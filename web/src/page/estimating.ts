/** Estimates the GPU memory of a run, by its model's worker. */
import { checkModel } from './model.js';
import type { Model } from './model.js';
import { adapterFiles, adapterSources, runSettings } from './options.js';
import type { TrainOptions } from './options.js';
import { signalOf } from './request-inputs.js';
import type { Estimate } from './run-options.js';

/** Returns the memory that a run with these options needs, next to what the browser reports. */
export async function estimated(model: Model, options: TrainOptions): Promise<Estimate> {
  checkModel(model);
  const signal = signalOf(undefined, adapterFiles(options));
  const ask = { config: runSettings(options), adapter: await adapterSources(options, signal) };
  const { needBytes, parts } = await model.call('model.estimate', ask, { signal });
  const reported: unknown = Reflect.get(navigator, 'deviceMemory');
  const haveBytes = typeof reported === 'number' ? reported * 2 ** 29 : undefined;
  return {
    ok: haveBytes === undefined ? undefined : needBytes <= haveBytes,
    needBytes,
    haveBytes,
    parts,
  };
}
