import { openModel, Trainer } from 'tabtune';
import { startTesting } from 'tabtune/testing';

export async function recovers(): Promise<void> {
  await using testing = startTesting();
  const model = await openModel(new File(['GGUF'], 'a.gguf'), { worker: testing.worker });
  testing.fail('step', { at: 3, code: 'DEVICE_LOST' });
  const data = { text: 'words '.repeat(200) };
  await using trainer = await Trainer.create({ model, data, steps: 5 });
  const states: string[] = [];
  for await (const event of trainer.run()) if (event.type === 'state') states.push(event.state);
  if (!states.includes('recovering')) throw new Error(states.join());
}
