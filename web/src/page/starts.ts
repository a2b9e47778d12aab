/** Gives a trainer its worker, the lock of its run, and the means to recover. */
import { allOf, boolean, ifGiven, naturalNumber, oneOf, string } from './checks.js';
import { aborted, badOption, TabtuneError, withDetail } from '../protocol/errors.js';
import { plain } from '../protocol/plain.js';
import { baseOf, keepBase, wholeBase } from './bases.js';
import { optionsOf } from './given.js';
import { toData, withWeights } from './data-inputs.js';
import { toSources } from './inputs.js';
import { signalOf } from './request-inputs.js';
import { Link } from './link.js';
import type { Owner } from './link.js';
import { checkModel } from './model.js';
import {
  adapterFiles,
  adapterSources,
  overrideNames,
  resumeSettings,
  trainSettings,
} from './options.js';
import type { DriveOptions, TrainOptions } from './options.js';
import type { SessionInfo } from '../protocol/reports.js';
import { Recovery } from './recovery.js';
import type { CreateOptions, ResumeOptions } from './run-options.js';
import { workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';
import { lockRun } from '../protocol/run-lock.js';
import type { RunLock } from '../protocol/run-lock.js';

export interface Started {
  link: Link;
  lock: RunLock;
  info: SessionInfo;
  recovery: Recovery;
}

/** Names of the options of `Trainer.create` that are no settings. */
const CREATE = Object.keys({
  model: 1,
  data: 1,
  validationData: 1,
  state: 1,
  override: 1,
  label: 1,
  keepData: 1,
  allowNonFinite: 1,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof CreateOptions, keyof TrainOptions | keyof DriveOptions>, 1>);
/** Names of the options of `Trainer.resume` that do not concern its worker. */
const RESUME = Object.keys({
  run: 1,
  generation: 1,
  data: 1,
  validationData: 1,
  base: 1,
  verify: 1,
  settings: 1,
  override: 1,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof ResumeOptions, keyof WorkerOptions>, 1>);

/** Time after an abort before an unresponsive core is ended: short, because a start has no state to lose. */
const GRACE_MILLIS = 100;
/** Owner during a resume, which is repeated if its worker is lost. */
const NOTHING_YET: Owner = {
  confirmed: () => 0,
  lost: () => undefined,
  restore: () => Promise.resolve(),
  recovered: () => undefined,
  failed: () => undefined,
  events: () => undefined,
};

/** Returns whether an error is that of a file that cannot be opened. */
const isOfSource = (thrown: unknown): thrown is TabtuneError =>
  thrown instanceof TabtuneError && thrown.detail.code?.startsWith('source.') === true;

/** Runs `start` under the run's lock, which is released if it throws. */
async function locked(run: string, start: (lock: RunLock) => Promise<Started>): Promise<Started> {
  const lock = await lockRun(run);
  try {
    return await start(lock);
  } catch (thrown) {
    lock.release();
    throw thrown;
  }
}

export async function created(options: CreateOptions): Promise<Started> {
  const given = optionsOf(options, 'the start');
  const {
    model,
    data,
    validationData,
    state,
    override = [],
    label,
    keepData = true,
    allowNonFinite: ofCall,
    signal: callSignal,
    onProgress,
    ...settings
  } = given;
  const [, , , , checked, overrides] = allOf(
    () => checkModel(model),
    () => boolean(keepData, 'keepData'),
    () => ifGiven(label, string, 'label'),
    () => ifGiven(ofCall, boolean, 'allowNonFinite'),
    () => trainSettings(settings, CREATE),
    () => overrideNames(override),
  );
  const allowNonFinite = ofCall ?? model.allowNonFinite;
  if (state === undefined && overrides.length > 0)
    throw badOption('override', 'this only together with state', override);
  const signal = signalOf(callSignal, data, validationData, adapterFiles(settings), state);
  return model.handOver(async (take) => {
    const adapter = await adapterSources(settings, signal);
    const { spec, name, weights } = await toData(data, validationData, signal);
    const config = plain(withWeights(checked.config, weights), 'options');
    const { driver } = checked;
    const run = crypto.randomUUID();
    const ask = {
      run,
      label: label ?? name,
      config,
      driver,
      data: spec,
      adapter,
      state: state === undefined ? [] : await toSources(state, 'state', signal),
      override: overrides,
      keepData,
      allowNonFinite,
    };
    return locked(run, async (lock) => {
      const { link, open } = await take();
      const info = await link.call('trainer.create', ask, {
        signal,
        onProgress,
        graceMillis: GRACE_MILLIS,
      });
      const base = info.adapter ? model.files : undefined;
      keepBase(run, base, info.base);
      return {
        link,
        lock,
        info,
        recovery: new Recovery({ run, data: spec, base: baseOf(run) }, { open, ask }),
      };
    });
  });
}

export async function resumed(options: ResumeOptions): Promise<Started> {
  const {
    run,
    generation,
    data,
    validationData,
    base,
    verify,
    settings,
    override = [],
    signal: callSignal,
    onProgress,
    ...rest
  } = optionsOf(options, 'the resume');
  const signal = signalOf(callSignal, data, validationData, base);
  const [, , worker, changes] = allOf(
    () => string(run, 'run'),
    () => ifGiven(generation, naturalNumber, 'generation'),
    () => workerOptions(rest, RESUME),
    () =>
      settings === undefined && override.length === 0
        ? undefined
        : resumeSettings(settings ?? {}, override),
    () => ifGiven(verify, oneOf('full', 'header'), 'verify'),
  );
  if (changes?.override.includes('data') === true && data === undefined)
    throw badOption('data', "other data, as override names 'data'", data);
  if (data === undefined && validationData !== undefined)
    throw badOption('validationData', 'this only together with data', 'no data');
  const given = data === undefined ? undefined : await toData(data, validationData, signal);
  // The core refuses weights that differ from the run's.
  const config = given?.weights
    ? withWeights(changes?.config ?? {}, given.weights)
    : changes?.config;
  const again = base === undefined ? undefined : await toSources(base, 'base', signal);
  return locked(run, async (lock) => {
    const link = await Link.open(worker, NOTHING_YET, signal);
    try {
      const known = again === undefined ? baseOf(run) : undefined;
      const files =
        known ?? (await wholeBase(await link.call('checkpoint.base', { run }, { signal }), again));
      const ask = {
        run,
        generation,
        data: given?.spec,
        base: files,
        keepBase: base !== undefined,
        verify,
        config: config && plain(config, 'settings'),
        override: changes?.override,
      };
      const call = { signal, onProgress, graceMillis: GRACE_MILLIS };
      const info = await link.call('trainer.resume', ask, call).catch(async (thrown: unknown) => {
        // Then the address is one of the base's, which is asked for like a missing file.
        if (known || again || given || !isOfSource(thrown)) throw thrown;
        const refused: unknown = await link
          .call('trainer.resume', { ...ask, base: [] }, call)
          .catch((error: unknown) => error);
        if (!(refused instanceof TabtuneError)) throw thrown;
        const { message } = thrown;
        throw withDetail(refused, { reason: message }, `${refused.message} ${message}`);
      });
      // A base that was found by its record is found again, also if a file has changed in the meantime.
      if (known || again) keepBase(run, files, info.base);
      return {
        link,
        lock,
        info,
        recovery: new Recovery(
          { ...ask, keepBase: false, changesUpTo: info.generation },
          undefined,
        ),
      };
    } catch (thrown) {
      link.close(aborted('the trainer'));
      throw thrown;
    }
  });
}
