import { openModel, support, Trainer } from 'tabtune';
import type { WorkerOptions } from 'tabtune';

/** Fine-tunes the model in `files` on `data` and returns it as a zip. */
export async function finetune(
  files: File[],
  data: File,
  options: WorkerOptions = {},
): Promise<Blob> {
  const { ok, help } = await support();
  if (!ok) throw new Error(help);

  const model = await openModel(files, options);
  const settings = {
    steps: 100,
    batchSize: 1,
    seqLen: 256,
    learningRate: 2e-5,
    lrScheduler: { type: 'cosine', warmupSteps: 10 },
    optimizer: { type: 'adamw', weightDecay: 0.01 },
    precision: 'bf16',
  } as const;
  const { needBytes } = await Trainer.estimate(model, settings);
  console.log(`about ${Math.round(needBytes / 1e6)} MB of GPU memory`);

  await using trainer = await Trainer.create({ model, data, ...settings, saveEvery: 50 });
  for await (const event of trainer.run()) {
    if (event.type === 'step') console.log(event.step, event.loss, event.learningRate);
  }
  for await (const token of trainer.sample('Once upon a time', { maxTokens: 50 }))
    console.log(token.text);
  return await trainer.export({ format: 'safetensors' });
}
