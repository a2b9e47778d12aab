/** The base model of a run that trains an adapter: where it is taken from when the run continues, and how it is shown. */
import { escaped, TabtuneError } from 'tabtune';
import type { SessionInfo, Trainer } from 'tabtune';

import { askForFiles } from './ask.js';
import { byId } from './dom.js';
import { bytes, parameters } from './format.js';

/** Opens a run with the base model of its adapter, if it has one: if the page does not have the model's files, it asks for them by name. */
export async function withBase(
  open: (base: { base?: File[] }) => Promise<Trainer>,
): Promise<Trainer> {
  for (let given: { base?: File[] } = {}; ;) {
    try {
      return await open(given);
    } catch (thrown) {
      const { code, want } = thrown instanceof TabtuneError ? thrown.detail : {};
      if (code !== 'checkpoint.base.missing' && code !== 'checkpoint.base.mismatch') throw thrown;
      const missing = code === 'checkpoint.base.missing';
      const words = missing
        ? `This run trains an adapter on a model that is not in its checkpoint: ${want ?? 'the files that it started with'}.`
        : 'These are not the bytes of the model that this adapter was trained on.';
      const files = await askForFiles(
        'Which model?',
        `${words} Choose it again; every byte of it is compared before the run continues; its name does not matter.`,
      );
      if (files === undefined) throw thrown;
      given = { base: files };
    }
  }
}

/** Shows the base model of an adapter: its name and checksum appear with the run. */
export function showBase({ adapter, base }: SessionInfo): void {
  byId('run-base', HTMLElement).hidden = adapter === null;
  if (!adapter || !base) return;
  const files = base.files.map(
    ({ name, bytes: size, headerSha256 }) =>
      `${escaped(name)} (${bytes(size)}, header ${headerSha256?.slice(0, 12) ?? 'without a sum'})`,
  );
  byId('run-base', HTMLElement).textContent =
    `Adapter of rank ${adapter.r}: ${parameters(adapter.parameters)} values in ${adapter.targets.length} matrices, on ${files.join(', ')}, ${bytes(base.bytes)} of it on the GPU.`;
}
