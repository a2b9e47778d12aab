// Starts a run, lists the runs that this browser keeps, and continues one of them bit for bit, after a
// reload or a week later. A run saves itself: every 10 seconds to two minutes, depending on its size,
// when its tab is hidden, when it is paused or stopped, and at its end.
import { openSavedRuns, Trainer } from 'tabtune';
import type { CheckpointInfo, DataInput, Model } from 'tabtune';

/**
 * Call this within a click: some browsers only then promise not to clear the storage. Firefox asks the
 * user, so the run does not wait for the answer.
 */
export function start(model: Model, data: DataInput, label: string): Promise<Trainer> {
  void navigator.storage.persist();
  return Trainer.create({ model, data, label });
}

/** Trains until the run is done, or until `signal` is aborted, and then saves what is not saved yet. */
export async function train(trainer: Trainer, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of trainer.run({ signal }))
      if (event.type === 'step') console.log(event.step, event.loss);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
    await trainer.save();
  }
}

/** The newest checkpoint of each run that can be continued. It needs neither a GPU nor the WebAssembly. */
export async function list(): Promise<CheckpointInfo[]> {
  using runs = await openSavedRuns();
  const newest = new Map<string, CheckpointInfo>();
  for (const checkpoint of await runs.list())
    if (checkpoint.fault === undefined && !newest.has(checkpoint.run))
      newest.set(checkpoint.run, checkpoint);
  return [...newest.values()];
}

/** A line for a button: `recipes.jsonl, step 120 of 400, loss 1.832, saved on 12/24/2026`. */
export const describe = ({ label, step, totalSteps, loss, savedAt }: CheckpointInfo): string =>
  [
    label,
    `step ${step} of ${totalSteps}`,
    ...(loss === undefined ? [] : [`loss ${loss.toFixed(3)}`]),
    `saved on ${new Date(savedAt).toLocaleDateString()}`,
  ].join(', ');

/** Continues where the run was saved; its data and settings are kept with it. */
export const resume = (run: string): Promise<Trainer> => Trainer.resume({ run });

/** Deletes a run with everything that is kept of it. */
export async function remove(run: string): Promise<void> {
  using runs = await openSavedRuns();
  await runs.remove(run);
}
