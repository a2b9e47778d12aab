/** Handlers of the requests about files, which need neither a model nor a GPU. */
import { aborted } from '../protocol/errors.js';
import type { Ask, Reply } from '../protocol/protocol.js';
import type { Refusal } from '../protocol/reports.js';
import { interruptible } from './core-mutex.js';
import { looked, openData, reported } from './data.js';
import { delivered } from './exports.js';
import type { Handlers } from './handler.js';
import { phase, progressOf, ready } from './progress.js';
import { completed, headed } from './remote.js';
import { openSource, openSources, reading, readingLong, withWarnings } from './sources.js';
import { listDownloads, removeDownloads } from './storage/kept-downloads.js';
import { trainedOn } from './tokenizers.js';
import {
  deriveDelta,
  extractAdapter,
  inspectData,
  inspectFile,
  inspectModel,
  parsed,
  planFiles,
  readTensor,
  useDelta,
  verifyFiles,
} from './wasm.js';
import type { FileStream } from './wasm.js';
import type { Context, WorkerState } from './worker-state.js';

/** Delivers the files of a call of the core that derives or uses a delta. */
async function deltaFiles(
  work: () => Promise<{ report: unknown; stream: FileStream }>,
  where: Pick<Ask<'delta.use'>, 'container' | 'target'>,
  call: Context,
): Promise<Reply<'delta.use'>> {
  call.onProgress(phase('read'));
  const { report, stream } = await interruptible(call.signal, work);
  return { report: parsed.delta(report), ...(await delivered(stream, where, call)) };
}

type FileHandlers = Pick<
  Handlers,
  | 'files.inspect'
  | 'files.tensor'
  | 'files.verify'
  | 'files.extract'
  | 'files.data'
  | 'download.list'
  | 'download.remove'
  | 'delta.derive'
  | 'delta.use'
  | 'tokenizer.train'
>;

export function fileHandlers(state: WorkerState): FileHandlers {
  return {
    'files.inspect': async (
      { sources, request, adapter, format, read, plan: planning },
      { signal, onProgress },
    ) => {
      await state.core();
      const extent = read ? 'whole' : 'ranges';
      const opened = await openSources(sources, signal, onProgress, extent);
      const merged = await openSources(adapter, signal, onProgress, extent);
      const files: Reply<'files.inspect'>['files'] = [];
      for (const source of opened) {
        if (signal.aborted) throw aborted('the inspection');
        onProgress(phase('read', source.name));
        const others = opened.filter((other) => other !== source);
        const look = (): unknown =>
          reading(opened, () => inspectFile(source, format, read, others));
        files.push(parsed.fileReport(await headed(opened, signal, onProgress, look)));
      }
      const all = [...opened, ...merged];
      const look = (): unknown => reading(all, () => inspectModel(opened, request, merged));
      const found = parsed.inspection(await headed(all, signal, onProgress, look));
      const { plan, refusals } = planning
        ? parsed.planned(
            await headed(opened, signal, onProgress, () =>
              readingLong(opened, async () => planFiles(opened, planning)),
            ),
          )
        : { plan: undefined, refusals: [] };
      const isNew = ({ code, subject }: Refusal): boolean =>
        !found.refusals.some((other) => other.code === code && other.subject === subject);
      return {
        ...withWarnings(found, all),
        refusals: [...found.refusals, ...refusals.filter(isNew)],
        plan,
        files,
      };
    },
    'files.tensor': async ({ sources, request, name }, { signal, onProgress, transfer }) => {
      await state.core();
      const opened = await openSources(sources, signal, onProgress, 'ranges');
      if (signal.aborted) throw aborted('the reading');
      await completed(opened, signal, onProgress);
      onProgress(phase('read'));
      const tensor = parsed.storedTensor(
        await readingLong(opened, async () => readTensor(opened, name, request)),
      );
      transfer.push(tensor.bytes.buffer);
      return tensor;
    },
    'files.verify': async ({ sources, receipt }, { signal, onProgress }) => {
      await state.core();
      const files = await openSources(sources, signal, onProgress);
      onProgress(phase('verify'));
      return parsed.verification(verifyFiles(files, receipt));
    },
    'files.extract': async ({ tuned, base, options, ...where }, { signal, onProgress }) => {
      await state.core();
      const [after, before] = [
        await openSources(tuned, signal, onProgress),
        await openSources(base, signal, onProgress),
      ];
      const onRead = (loaded: number, total: number): void =>
        onProgress(progressOf('read', undefined, loaded, total));
      const { stream, ...made } = await interruptible(signal, () =>
        extractAdapter(after, before, options, onRead),
      );
      return {
        ...parsed.extraction(made),
        ...(await delivered(stream, where, { signal, onProgress })),
      };
    },
    'delta.derive': async ({ base, tuned, name, ...where }, { signal, onProgress }) => {
      await state.core();
      const [before, after] = [
        await openSources(base, signal, onProgress),
        await openSources(tuned, signal, onProgress),
      ];
      return deltaFiles(() => deriveDelta(before, after, name), where, { signal, onProgress });
    },
    'delta.use': async ({ model, delta, remove, ...where }, { signal, onProgress }) => {
      await state.core();
      const files = await openSources(model, signal, onProgress);
      const words = await openSource(delta, signal, onProgress);
      return deltaFiles(() => useDelta(files, words, remove), where, { signal, onProgress });
    },
    'tokenizer.train': async ({ data, options, settings }, { signal, onProgress, transfer }) => {
      await state.core();
      const files = await openData(data, signal, onProgress);
      const training = { options, settings, partial: false };
      const trained = await looked(files, () => trainedOn(files, training, { signal, onProgress }));
      transfer.push(trained.json.buffer);
      onProgress(ready);
      return trained;
    },
    'download.list': listDownloads,
    'download.remove': ({ names }) => removeDownloads(names),
    'files.data': async ({ data, config, partial }, { signal, onProgress }) => {
      await state.core();
      return looked(await openData(data, signal, onProgress), async (files) =>
        parsed
          .fileSummaries(await interruptible(signal, () => inspectData(files, config, partial)))
          .map((summary, at) => ({
            ...summary,
            warnings: [...summary.warnings, ...reported(files.files.slice(at, at + 1))],
          })),
      );
    },
  };
}
