/** The worker's handler of each request. One worker serves one model, then one trainer. */
import { VERSION, WASM_HASH } from '../protocol/build.js';
import { aborted, protocolError } from '../protocol/errors.js';
import { createTrainer, loadGeneration, resumeTrainer, withAdapter } from './openings.js';
import { PROTOCOL } from '../protocol/protocol.js';
import type { Values } from '../protocol/plain.js';
import { streamed } from './asking.js';
import { delivered } from './exports.js';
import { interruptible } from './core-mutex.js';
import { openSource, openSources, warningsOf, withWarnings } from './sources.js';
import { looked, openData, reported } from './data.js';
import { refuseTwice } from './hub.js';
import { headed } from './remote.js';
import { fileHandlers } from './file-calls.js';
import type { Handlers } from './handler.js';
import { estimate, ModelHandle, parsed } from './wasm.js';
import { EXPORT_FORMATS, EXPORT_WORDS } from '../protocol/generated/exports.js';
import { phase, ready } from './progress.js';
import { trainedOn } from './tokenizers.js';
import type { WorkerState } from './worker-state.js';

/** Returns whether an adapter of a run is merged into its base for an export in the format of these options. */
function isMerged({ format: word = 'safetensors' }: Values): boolean {
  const format = EXPORT_WORDS.find((each) => each === word);
  return (
    format !== undefined &&
    !EXPORT_FORMATS[format].adapter &&
    EXPORT_FORMATS[format].options.includes('base')
  );
}

const nothing = (): undefined => undefined;

export function handlersOf(state: WorkerState): Handlers {
  const { store } = state;
  return {
    'worker.hello': async ({ protocol, version, wasmHash, wasmUrl, wasmBinary, core, script }) => {
      if (protocol !== PROTOCOL || version !== VERSION || wasmHash !== WASM_HASH) {
        throw protocolError(
          `page and worker are of different builds (${version} and ${VERSION}): reload the page`,
        );
      }
      state.coreFrom = core ?? wasmBinary ?? wasmUrl;
      state.scriptFrom = script;
      return { protocol: PROTOCOL, version: VERSION, wasmHash: WASM_HASH };
    },
    'device.look': () => state.trainer.look().then(nothing),
    'device.measure': (_, context) => state.measure(context),
    ...fileHandlers(state),
    'model.open': async (
      { sources, request, adapter, apart, resizeVocabulary, chatTemplate },
      { signal, onProgress },
    ) => {
      await state.core();
      const files = await openSources(sources, signal, onProgress, 'beginning');
      refuseTwice(files);
      const added = await openSources(adapter, signal, onProgress, 'beginning');
      if (signal.aborted) throw aborted('the opening');
      onProgress(phase('read'));
      const all = [...files, ...added];
      const model = await headed(all, signal, onProgress, () =>
        ModelHandle.open(files, request, added, apart, resizeVocabulary, chatTemplate),
      );
      state.loading = all;
      state.chatTemplate = chatTemplate;
      // Files from which the model can be exported unchanged.
      const info = state.hold(
        model,
        request === undefined && (apart || added.length === 0) ? files : [],
        () =>
          apart ? ModelHandle.open(files, request, [], false, false, chatTemplate) : undefined,
      );
      onProgress(ready);
      return withWarnings(info, all);
    },
    'model.detach': async () => state.detach(),
    'model.details': () => state.weights((core) => parsed.details(core.details())),
    'model.tensor': async ({ name }, { signal, onProgress, transfer }) => {
      await state.complete(signal, onProgress);
      const tensor = parsed.tensor(state.model.tensor(name));
      transfer.push(tensor.values.buffer);
      return tensor;
    },
    'model.export': async ({ options, base, ...where }, { signal, onProgress }) => {
      const files = base
        ? await openSources(base, signal, onProgress)
        : isMerged(options)
          ? state.base
          : [];
      await state.complete(signal, onProgress);
      return state.weights(
        async (core) =>
          delivered(await core.exportModel(options, files), where, { signal, onProgress }),
        signal,
      );
    },
    'model.data': async ({ data, config, partial, show }, { signal, onProgress }) =>
      looked(await openData(data, signal, onProgress), async (files) => {
        const found = parsed.dataInspection(
          await interruptible(signal, () => state.model.inspectData(files, config, partial, show)),
        );
        const warnings = [
          ...found.report.warnings,
          ...reported([...files.files, ...files.validation]),
        ];
        return { ...found, report: { ...found.report, warnings } };
      }),
    'model.rows': async ({ data, config }, { signal, onProgress, onWarning }) =>
      looked(await openData(data, signal, onProgress), (files) => {
        warningsOf(files.files).forEach(onWarning);
        return state.weights(
          async (core) => parsed.dataPreview(await core.rows(files, config)),
          signal,
        );
      }),
    'model.create': async (
      { config, tokenizer, train, data, settings, partial },
      { signal, onProgress },
    ) => {
      await state.core();
      const corpus = await openData(data, signal, onProgress);
      await corpus.storage?.close();
      const tokenizerJson = tokenizer && (await openSource(tokenizer, signal, onProgress));
      if (signal.aborted) throw aborted('the opening');
      const training = train && { options: train, settings, partial };
      const bytes = training
        ? (await trainedOn(corpus, training, { signal, onProgress })).json
        : tokenizerJson?.read(0, tokenizerJson.size);
      const model = await interruptible(signal, () =>
        ModelHandle.fromScratch(config, bytes, corpus, settings, partial),
      );
      return withWarnings(state.hold(model), [
        ...corpus.files,
        ...(tokenizerJson ? [tokenizerJson] : []),
      ]);
    },
    'model.detokenize': async ({ ids }) => state.detokenize(ids),
    'model.chat': async ({ conversation, options, base }, context) => {
      const { signal, onToken, onWarning } = context;
      await state.complete(signal, context.onProgress);
      return state.asked(
        async (core) =>
          streamed(await core.chat(conversation, options, base), signal, onToken, onWarning),
        signal,
      );
    },
    'model.score': async ({ request, base }, { signal, onProgress }) => {
      await state.complete(signal, onProgress);
      return state.asked(async (core) => parsed.score(await core.score(request, base)), signal);
    },
    'model.tokenize': async ({ text }, { onWarning }) => {
      const { ids, warnings } = parsed.tokenized(state.model.tokenize(text));
      warnings.forEach(onWarning);
      return ids;
    },
    'model.estimate': async ({ config, adapter }, call) =>
      withAdapter(state, adapter, call, (model) => parsed.estimate(estimate(model, config))),
    'model.preview': async ({ config, points, stride }) =>
      Array.from(state.model.previewSchedule(config, points, stride)),
    'trainer.create': (ask, context) => createTrainer(state, ask, context),
    'trainer.resume': (ask, context) => resumeTrainer(state, ask, context),
    'trainer.load': (ask, context) => loadGeneration(state, ask, context),
    'trainer.inspect': () => state.trainer.inspect(),
    'trainer.preview': async ({ show }) => state.trainer.previewData(show),
    'trainer.history': () => state.trainer.history(),
    'trainer.evaluate': ({ maxBatches }, { signal }) => state.trainer.evaluate(maxBatches, signal),
    'trainer.profile': ({ steps }, { signal }) => state.loop.profile(steps, signal),
    'trainer.sample': ({ prompt, options }, { signal, onToken, onWarning }) =>
      state.trainer.sample(prompt, options, signal, onToken, onWarning),
    'loop.run': (ask, { signal }) => state.loop.run(ask, signal),
    'loop.pause': () => state.loop.halt('paused').then(nothing),
    'loop.stop': () => state.loop.halt('stopped').then(nothing),
    'rate.set': ({ rate }) => state.trainer.setLearningRate(rate),
    'schedule.decay': () => state.trainer.startDecay(),
    'schedule.preview': ({ points, stride }) => state.trainer.preview(points, stride),
    'checkpoint.save': (_, context) => state.trainer.save(context),
    'checkpoint.autosave': ({ always }) => state.loop.saveUnsaved(always).then(nothing),
    'checkpoint.list': ({ run }) => {
      state.sweep();
      return store.list(run);
    },
    'checkpoint.base': ({ run }) => store.runBase(run),
    'checkpoint.history': async ({ run, generation }) => {
      const found = (await store.list(run)).filter(
        (info) =>
          info.fault === undefined && (generation === undefined || info.generation === generation),
      );
      return store.history(run, Math.max(0, ...found.map(({ step }) => step)));
    },
    'checkpoint.keep': ({ run, generation, kept }) =>
      store.keep(run, generation, kept).then(nothing),
    'checkpoint.fork': async ({ run, generation, label }, { signal, onProgress }) =>
      store.fork(run, generation, label ?? (await store.runRecord(run)).label, signal, onProgress),
    'checkpoint.remove': async ({ run, generation }) => {
      const trainer = state.trainerOf(run);
      if (!trainer) return store.remove(run, generation).then(nothing);
      // Not during a save.
      return trainer.mutex.take(async () => {
        await store.remove(run, generation);
        if (!(await store.hasRun(run))) trainer.saver.removed();
        return undefined;
      });
    },
    'checkpoint.export': ({ run, generation }, { signal, onProgress }) =>
      store.exportFile(run, generation, signal, onProgress),
    'checkpoint.folder': ({ run, generation, handle }, { signal, onProgress }) =>
      store.exportFolder(run, generation, handle, signal, onProgress).then(nothing),
    'checkpoint.import': async ({ files }, { signal, onProgress }) => {
      const [first, second] = files;
      await state.core();
      return store.importFile(first && !second ? first.blob : files, signal, onProgress);
    },
  };
}
