// Every entry of the package, as a user's project imports it.
import { newModel, Trainer, type StepEvent, type TabtuneError, type TrainerEvent } from 'tabtune';
import { inspectFiles } from 'tabtune/files';
import { settingsSchema } from 'tabtune/schema';
import { startTesting } from 'tabtune/testing';
import 'tabtune/worker';

export async function train(
  text: string,
  failed: (error: TabtuneError) => void,
): Promise<number[]> {
  await using testing = startTesting();
  const shape = { hiddenSize: 32, numHiddenLayers: 1, numAttentionHeads: 2 };
  const model = await newModel(shape, { text }, { worker: testing.worker });
  await using trainer = await Trainer.create({ model, data: { text }, steps: 5 });
  trainer.addEventListener('step', ({ detail }: { detail: StepEvent }) => console.log(detail.loss));
  const losses: number[] = [];
  const note = (event: TrainerEvent) => event.type === 'step' && losses.push(event.loss);
  for await (const event of trainer.run()) note(event);
  const { kind } = await inspectFiles(new Blob()).catch((thrown: TabtuneError) => {
    failed(thrown);
    return { kind: 'unknown' };
  });
  const { default: manifest } = await import('tabtune/package.json');
  console.log(kind, Object.keys(settingsSchema).length, manifest.version);
  return losses;
}
