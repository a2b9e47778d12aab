/** Texts about the run, the files and the storage, in plain words. Unknown codes are shown as they are. */
import { escaped, TabtuneError } from 'tabtune';
import type { Progress } from 'tabtune';

export const PHASES: Record<Progress['phase'], string> = {
  download: 'Downloading',
  read: 'Reading',
  verify: 'Checking',
  upload: 'Moving the weights to the GPU',
  compile: 'Preparing the GPU',
  save: 'Saving',
  export: 'Writing',
  import: 'Bringing in',
  measure: 'Measuring',
  ready: 'Ready',
};

const TITLES: Readonly<Record<string, string>> = {
  'device.lost': 'The GPU was lost',
  'run.memory': 'The GPU has no room for this run: it is paused',
  'train.non-finite': 'A step was not a number, and was passed over',
  'run.sample': 'A sample failed, and the run continues',
  'run.evaluation': 'An evaluation failed, and the run continues',
  'run.recovered': 'The GPU or the worker was lost, and the run went on by itself',
  'run.unprotected': 'This run does not save itself',
  'run.unlocked': 'This browser cannot keep a second tab from this run: open it in one tab only',
  'run.private': 'This is a private window: what is saved ends with it',
  'storage.quota': 'The browser has no room for another checkpoint',
  'storage.closed': 'Another tab has a newer version of this page: nothing can be saved here until you reload',
  'storage.blocked': 'Another tab with an older version of this page holds the storage: close it',
  'storage.vanished': 'The browser’s storage was cleared while the run was going on',
  'storage.failed': 'The browser’s storage failed',
  'checkpoint.head': 'The newest checkpoint could not be told from the list; the newest whole one is used',
  'checkpoint.environment': 'This checkpoint was written by another GPU or version: the numbers may differ slightly',
  'checkpoint.data.changed': 'The run continues with another text than it was saved with',
  'checkpoint.validation.changed': 'The run is evaluated on another text than before',
  'checkpoint.version': 'It was written by a newer version of tabtune: reload the page for the newest version',
  'checkpoint.run': 'The record of this run is damaged',
  'checkpoint.none': 'There is no whole checkpoint',
  'model.tensor.extra': 'A tensor of the file is not used',
  'model.non-finite': 'The weights hold values that are not numbers',
};
/** Titles for codes that begin like this. */
const FAMILIES: readonly (readonly [string, string])[] = [
  ['checkpoint.', 'A stored checkpoint is damaged'],
  ['storage.', 'The browser’s storage failed'],
  ['optim.', 'The settings differ from the checkpoint’s'],
];

export function titleOf(code: string): string {
  return TITLES[code] ?? FAMILIES.find(([start]) => code.startsWith(start))?.[1] ?? 'Note';
}

/** Returns a failure in one line, with its exact message at the end. */
export function faultOf(thrown: unknown): string {
  const message = escaped(thrown instanceof Error ? thrown.message : String(thrown)).replace(/\.$/, '');
  if (!(thrown instanceof TabtuneError)) return message;
  return `${message} (${thrown.code}${thrown.detail.code === undefined ? '' : `, ${thrown.detail.code}`})`;
}

/** Errors after which the worker or its GPU is gone, or cannot be trusted. */
const FINAL = new Set(['DEVICE_LOST', 'GPU_UNAVAILABLE', 'WORKER_CRASHED', 'SHADER_FAILED', 'PROTOCOL']);
export const isFinal = (thrown: unknown): boolean => thrown instanceof TabtuneError && FINAL.has(thrown.code);

export function progressOf({ phase, file, fraction }: Progress): string {
  const share = fraction > 0 && fraction < 1 ? `, ${Math.round(fraction * 100)} %` : '';
  return `${PHASES[phase]}${file === undefined ? '' : ` ${escaped(file)}`}${share} …`;
}
