/** Opens a trainer in the worker: a new run, a saved one, or another generation of the live one. */
import { aborted, escaped, fault, finding } from '../protocol/errors.js';
import type { Ask, SourceSpec } from '../protocol/protocol.js';
import type { SessionInfo } from '../protocol/reports.js';
import { completed } from './remote.js';
import { blobSource, openSources } from './sources.js';
import { summed } from './sums.js';
import { interruptible } from './core-mutex.js';
import { dataIn, openData } from './data.js';
import type { RunData } from './data.js';
import type { JsSource } from './wasm.js';
import { clearAbort, ModelHandle, parsed, Session } from './wasm.js';
import type { Word } from '../protocol/errors.js';
import { phase, ready } from './progress.js';
import { restoredDriver } from './storage/driver.js';
import { refuseSkip } from './run-findings.js';
import type { Context, WorkerState } from './worker-state.js';

/** Estimated GPU memory per GiB of memory that the browser reports: about half. Without a report, 4 GiB are assumed. */
const BYTES_PER_GIB = 2 ** 29;

const sourcesOf = (files: Map<string, Blob>): JsSource[] =>
  [...files].map(([name, blob]) => blobSource(name, blob));

/** Runs `work` with the open model; given the files of an adapter, with the model's base and that separate adapter instead. */
export async function withAdapter<T>(
  state: WorkerState,
  adapter: SourceSpec[],
  { signal, onProgress }: Context,
  work: (model: ModelHandle) => Promise<T> | T,
): Promise<T> {
  const { model, files } = state;
  // A model that its files alone do not describe has no `files`: the core then reports that it cannot have an adapter.
  if (adapter.length === 0 || files.length === 0) return work(model);
  const other = ModelHandle.open(
    [...files],
    undefined,
    await openSources(adapter, signal, onProgress),
    true,
    false,
    state.chatTemplate,
  );
  try {
    return await work(other);
  } finally {
    other.free();
  }
}

/** Returns the result of starting with these data, and closes their storage if it fails. */
async function orClosed<T>(data: RunData, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await data.storage?.close();
    throw thrown;
  }
}

export async function createTrainer(
  state: WorkerState,
  ask: Ask<'trainer.create'>,
  { signal, onProgress }: Context,
): Promise<SessionInfo> {
  const adapting =
    ask.adapter.length > 0 ||
    ask.state.length > 0 ||
    Boolean(ask.config['adapter']) ||
    parsed.model(state.model.info()).adapter !== null;
  await state.complete(signal, onProgress);
  const base = adapting ? await summed(state.files, signal, onProgress) : [];
  const data = await openData(ask.data, signal, onProgress);
  const session = await orClosed(data, async () => {
    const given = await openSources(ask.state, signal, onProgress);
    onProgress(phase('compile'));
    await state.device();
    if (signal.aborted) throw aborted('the start');
    refuseSkip(ask.driver, ask.config);
    onProgress(phase('upload'));
    // A run needs the memory that the weights for questions occupy.
    state.asking.drop();
    return withAdapter(state, ask.adapter, { signal, onProgress }, (model) =>
      interruptible(signal, () =>
        Session.create(model, data, ask.config, ask.allowNonFinite, given, ask.override),
      ),
    );
  });
  const { run, label, keepData, driver } = ask;
  const info = await state.install({
    session,
    data,
    base,
    header: false,
    run,
    label,
    keepData,
    driver,
    newData: false,
  });
  // Only at this point, because after a refusal the model can be used again.
  state.freeModel();
  state.sweep();
  onProgress(ready);
  return info;
}

export async function resumeTrainer(
  state: WorkerState,
  ask: Ask<'trainer.resume'>,
  { signal, onProgress }: Context,
): Promise<SessionInfo> {
  const { store } = state;
  const { run } = ask;
  state.sweep();
  onProgress(phase('verify'));
  const { manifest, files, warnings } = await store.load(run, ask.generation, signal, onProgress);
  const record = await store.runRecord(run);
  const kept = ask.data ? undefined : await store.runData(run);
  const keptFilesOfData = record.dataFiles ?? [
    { name: record.dataName, bytes: kept?.size ?? 0, validation: false },
  ];
  const data = ask.data
    ? await openData(ask.data, signal, onProgress)
    : kept && (await dataIn(kept, keptFilesOfData));
  if (!data) throw fault('data.missing', {}, { path: 'data' });
  const header = ask.verify === 'header';
  const opened = await openSources(ask.base ?? [], signal, onProgress, 'beginning');
  await completed(opened, signal, onProgress);
  const base = header ? opened : await summed(opened, signal, onProgress);
  const device = await state.device();
  if (signal.aborted) throw aborted('the resume');
  onProgress(phase('upload'));
  // A generation that was saved after the changes contains them.
  const changed = ask.changesUpTo === undefined || manifest.generation <= ask.changesUpTo;
  const [config, override] = changed ? [ask.config, ask.override ?? []] : [undefined, []];
  const session = await orClosed(data, () =>
    interruptible(signal, () =>
      Session.resume(sourcesOf(files), data, config, override, base, header),
    ),
  );
  const newData = ask.override?.includes('data') === true;
  const driver = ask.driver ?? restoredDriver(record.driver);
  const { label, generation } = manifest;
  const info = await state.install({
    session,
    data,
    base,
    header,
    run,
    label,
    keepData: (record.data ?? record.baseData) !== undefined,
    driver,
    newData,
    generation,
  });
  state.trainer.saver.loss = manifest.loss;
  state.trainer.saver.clock.bytes = manifest.bytes;
  // A failure is harmless: what is kept only saves asking for the files later.
  if (ask.keepBase) await state.trainer.saver.keepBase().catch(() => undefined);
  onProgress(ready);
  const passed = warnings.map(({ code, detail, message }) => ({
    code: detail.code ?? code,
    message,
  }));
  return {
    ...info,
    warnings: [
      ...passed,
      ...info.warnings,
      ...elsewhere(manifest.environment.adapter, device, info),
    ],
  };
}

/** Compares the environments: the core compares versions, but in a browser only the worker knows the GPU. */
function elsewhere(
  saved: string,
  device: string,
  { warnings }: SessionInfo,
): SessionInfo['warnings'] {
  const code = 'checkpoint.environment' satisfies Word;
  // Not every browser reports it.
  if (saved === '' || saved === device || warnings.some((warning) => warning.code === code))
    return [];
  return [finding(code, { subject: escaped(device), expected: escaped(saved) })];
}

/** Loads another generation. The live state is dropped only after the new one is verified; its memory is freed first if both do not fit. */
export async function loadGeneration(
  state: WorkerState,
  ask: Ask<'trainer.load'>,
  { signal, onProgress }: Context,
): Promise<SessionInfo> {
  const { store, trainer } = state;
  const { run, data, base, header } = trainer.parts;
  const opened = async (
    generation: number | undefined,
    free: () => void,
    until?: AbortSignal,
  ): Promise<{ session: Session; generation: number }> => {
    const { manifest, files, warnings } = await store.load(run, generation, until, onProgress);
    free();
    onProgress(phase('upload'));
    const session = await Session.resume(sourcesOf(files), data, undefined, [], base, header);
    for (const warning of warnings) trainer.warn(manifest.step, warning);
    trainer.saver.loss = manifest.loss;
    return { session, generation: manifest.generation };
  };
  const info = await trainer.replace(
    async (free, { gpuBytes, completedSteps }) => {
      const saved =
        trainer.saver.clock.savedStep === completedSteps ? trainer.saver.generation : undefined;
      if (saved === undefined || fitsTwice(gpuBytes))
        return opened(ask.generation, () => undefined, signal);
      let freed = false;
      try {
        return await opened(
          ask.generation,
          () => {
            freed = true;
            free();
          },
          signal,
        );
      } catch (thrown) {
        if (!freed) throw thrown;
        // Restores the previous state; this cannot be aborted.
        clearAbort();
        return { ...(await opened(saved, () => undefined)), failed: thrown };
      }
    },
    { signal, onProgress },
  );
  onProgress(ready);
  return info;
}

function fitsTwice(gpuBytes: number | undefined): boolean {
  if (gpuBytes === undefined) return true;
  const memory: unknown = Reflect.get(globalThis.navigator ?? {}, 'deviceMemory');
  return 2 * gpuBytes <= (typeof memory === 'number' ? memory : 4) * BYTES_PER_GIB;
}
