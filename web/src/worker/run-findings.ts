/** Warnings about a run before it starts, and the refusal of settings that would damage it. */
import { privateFiles, unanswered } from '../protocol/answers.js';
import { badOption, finding, toTabtuneError } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import type { Driver } from '../protocol/protocol.js';
import type { Finding, SessionInfo } from '../protocol/reports.js';
import type { CheckpointStore } from './storage/checkpoints.js';
import { freeBytes } from './storage/quota.js';

/** Returns warnings about how safely a run is stored. */
export async function storageFindings(
  store: CheckpointStore,
  { autosave }: Driver,
  run: string,
): Promise<Finding[]> {
  const saving = async (): Promise<Finding[]> => {
    if (!autosave) return [finding('run.unprotected')];
    return store.hasRun(run).then(
      () => [],
      (thrown: unknown) => [refusal(toTabtuneError(thrown))],
    );
  };
  const [found, files] = await Promise.all([saving(), privateFiles(), freeBytes()]);
  const storage: Partial<StorageManager> | undefined = globalThis.navigator?.storage;
  const silent = (subject: string, consequence: string): Finding =>
    finding('storage.silent', { subject, found: consequence });
  if (unanswered.has('room')) found.push(silent('how much room it has', 'a save may find none'));
  if (unanswered.has('files'))
    found.push(silent("for this site's files", 'there is no second copy of checkpoints'));
  // A private window that allows files cannot be distinguished from a normal one.
  else if (storage?.getDirectory && !files) found.push(finding('run.private'));
  return found;
}

/** Returns the warning about a database that cannot be used. */
const refusal = ({ code, detail, message, cause }: TabtuneError): Finding =>
  code === 'STORAGE_FAILED'
    ? finding('run.storage', { found: cause instanceof Error ? cause.message : message })
    : { code: detail.code ?? code, message };

/** Refuses to skip steps with gradient release, where a step with a norm that is not finite has already changed parameters. */
export function refuseSkip(driver: Driver, config: unknown): void {
  const release: unknown = Reflect.get(Object(config), 'gradient_release');
  if (driver.onNonFinite === 'skip' && release === true)
    throw badOption(
      'onNonFinite',
      "'stop' with gradientRelease, which updates parameters before the norm is known",
      'skip',
    );
}

const EVAL_EVERY = 'eval_every';

/** Gives the driver the interval of evaluations that was chosen, unless it has one, and returns the settings that were chosen. */
export function chosenSettings(
  driver: Driver,
  chosen: SessionInfo['chosen'],
): SessionInfo['chosen'] {
  if (driver.evalEvery !== undefined) return chosen.filter(({ setting }) => setting !== EVAL_EVERY);
  const interval = chosen.find(({ setting }) => setting === EVAL_EVERY)?.value;
  driver.evalEvery = typeof interval === 'number' ? interval : 0;
  return chosen;
}
