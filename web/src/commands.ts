/** The worker's handler of each request. One worker serves one model, then one trainer. */
import { VERSION, WASM_HASH } from './build.js';
import { aborted, protocolError } from './errors.js';
import { createTrainer, loadGeneration, resumeTrainer } from './openings.js';
import { PROTOCOL } from './protocol.js';
import type { Ask, Reply, SampledToken, Tag } from './protocol.js';
import { openSource, openSources } from './sources.js';
import { wholeSource } from './whole-source.js';
import { estimate, inspectFile, ModelHandle, panicForTest, parsed, previewSchedule } from './wasm.js';
import { phase, ready } from './workplace.js';
import type { Context, Workplace } from './workplace.js';

export interface CallContext extends Context {
  onToken: (token: SampledToken) => void;
}
export type Handlers = { [T in Tag]: (ask: Ask<T>, context: CallContext) => Promise<Reply<T>> };

const nothing = (): undefined => undefined;

export function handlersOf(place: Workplace): Handlers {
  const { store } = place;
  return {
    'worker.hello': async ({ protocol, version, wasmHash, wasmUrl, wasmBinary }) => {
      if (protocol !== PROTOCOL || version !== VERSION || wasmHash !== WASM_HASH) {
        throw protocolError(`page and worker are of different builds (${version} and ${VERSION}): reload the page`);
      }
      place.wasmFrom = { url: wasmUrl, binary: wasmBinary };
      return { protocol: PROTOCOL, version: VERSION, wasmHash: WASM_HASH };
    },
    'core.panic': async () => {
      await place.core();
      panicForTest();
    },
    'device.look': () => place.trainer.look().then(nothing),
    'files.inspect': async ({ sources, format, read }, { signal, onProgress }) => {
      await place.core();
      const reports: Reply<'files.inspect'> = [];
      const opened = await openSources(sources, signal, onProgress);
      for (const source of opened) {
        if (signal.aborted) throw aborted('the inspection');
        onProgress(phase('read', source.name));
        reports.push({ name: source.name, report: inspectFile(source, format, read, opened.filter((other) => other !== source)) });
      }
      return reports;
    },
    'model.open': async ({ sources }, { signal, onProgress }) => {
      await place.core();
      const files = await openSources(sources, signal, onProgress);
      if (signal.aborted) throw aborted('the opening');
      onProgress(phase('read'));
      const info = place.hold(ModelHandle.open(files));
      onProgress(ready);
      return info;
    },
    'model.create': async ({ config, tokenizer, data }, { signal, onProgress }) => {
      await place.core();
      const corpus = wholeSource(await openSource(data, signal, onProgress));
      const tokenizerJson = tokenizer && (await openSource(tokenizer, signal, onProgress));
      if (signal.aborted) throw aborted('the opening');
      const words = tokenizerJson ? { tokenizerJson: tokenizerJson.read(0, tokenizerJson.size) } : 'characters';
      return place.hold(ModelHandle.fromScratch(config, words, corpus.read(0, corpus.size)));
    },
    'model.tokenize': async ({ text }) => Array.from(place.model.tokenize(text)),
    'model.estimate': async ({ config }) => parsed.estimate(estimate(place.model, config)),
    'model.preview': async ({ config, steps }) => Array.from(previewSchedule(config, steps)),
    'trainer.create': (ask, context) => createTrainer(place, ask, context),
    'trainer.resume': (ask, context) => resumeTrainer(place, ask, context),
    'trainer.load': (ask, context) => loadGeneration(place, ask, context),
    'trainer.inspect': () => place.trainer.inspect(),
    'trainer.history': () => place.trainer.history(),
    'trainer.evaluate': ({ maxBatches }, { signal }) => place.trainer.evaluate(maxBatches, signal),
    'trainer.profile': ({ steps }, { signal }) => place.trainer.loop.profile(steps, signal),
    'trainer.sample': ({ prompt, options }, { signal, onToken }) => place.trainer.sample(prompt, options, signal, onToken).then(nothing),
    'loop.run': (ask, { signal }) => place.trainer.loop.run(ask, signal),
    'loop.pause': () => place.trainer.loop.halt('paused').then(nothing),
    'loop.stop': () => place.trainer.loop.halt('stopped').then(nothing),
    'rate.set': ({ rate }) => place.trainer.setLearningRate(rate),
    'schedule.decay': () => place.trainer.startDecay(),
    'schedule.preview': ({ steps }) => place.trainer.preview(steps),
    'checkpoint.save': (_, context) => place.trainer.save(context),
    'checkpoint.autosave': () => place.trainer.loop.saveHidden().then(nothing),
    'checkpoint.list': ({ run }) => {
      place.sweep();
      return store.list(run);
    },
    'checkpoint.history': async ({ run, generation }) => {
      const found = (await store.list(run)).filter((info) => info.fault === undefined && (generation === undefined || info.generation === generation));
      return store.history(run, Math.max(0, ...found.map(({ step }) => step)));
    },
    'checkpoint.keep': ({ run, generation, kept }) => store.keep(run, generation, kept).then(nothing),
    'checkpoint.fork': async ({ run, generation, label }, { signal, onProgress }) =>
      store.fork(run, generation, label ?? (await store.runRecord(run)).label, signal, onProgress),
    'checkpoint.remove': async ({ run, generation }) => {
      const trainer = place.trainerOf(run);
      if (!trainer) return store.remove(run, generation).then(nothing);
      // Not during a save.
      return trainer.lane.take(async () => {
        await store.remove(run, generation);
        if (!(await store.hasRun(run))) trainer.saver.removed();
        return undefined;
      });
    },
    'checkpoint.export': ({ run, generation }, { signal, onProgress }) => store.exportFile(run, generation, signal, onProgress),
    'checkpoint.folder': ({ run, generation, handle }, { signal, onProgress }) => store.exportFolder(run, generation, handle, signal, onProgress).then(nothing),
    'checkpoint.import': ({ files }, { signal, onProgress }) => {
      const [first, second] = files;
      return store.importFile(first && !second ? first.blob : files, signal, onProgress);
    },
    'model.export': ({ format, container }, { signal, onProgress }) => place.trainer.exportModel(format, container, { signal, onProgress }),
  };
}
