// Trains on files that never leave this device, and forgets them: the model is exported to a file of
// the user, and neither data nor checkpoints stay in the browser. `server.mjs` has the page's policy.
import { openModel, Trainer } from 'tabtune';

/** Both inputs are files that the user chose; nothing here takes an address. */
export async function trainPrivately(
  model: File[],
  documents: File[],
  target: FileSystemFileHandle | WritableStream<Uint8Array>,
): Promise<void> {
  using opened = await openModel(model);
  await using trainer = await Trainer.create({
    model: opened,
    data: documents,
    // Nothing is written into the browser's storage, so a closed tab loses the run.
    autosave: false,
    keepData: false,
  });
  for await (const event of trainer.run())
    if (event.type === 'step') console.log(event.step, event.loss);
  await trainer.exportTo(target, { format: 'gguf' });
}

/** The servers that this page has asked for anything so far: its own, or the promise is broken. */
export function askedServers(): string[] {
  const asked = performance.getEntriesByType('resource').map(({ name }) => new URL(name));
  const servers = asked.filter(({ protocol }) => protocol.startsWith('http'));
  return [...new Set(servers.map(({ origin }) => origin))];
}
