/** The requests of the protocol between page and worker. Both sides import this file; it imports neither. Tags are noun.verb. */
import { storedBaseFile } from './base-files.js';
import {
  dataInspection,
  dataPreview,
  estimate,
  evaluation,
  fileSummaries,
  gpu,
  modelDetails,
  modelInfo,
  profile,
  score,
  verification,
} from './generated/reports.js';
import {
  storedCheckpoint,
  deltaFiles,
  downloadInfo,
  extractedFiles,
  inspectReport,
  namedFile,
  namedTensor,
  sessionInfo,
  storedTensor,
  trainedTokenizer,
  writtenFiles,
} from './reports.js';
import { historyEntry, sampleEnd } from './events.js';
import {
  buffer,
  count,
  directory,
  document,
  flag,
  listOf,
  nothing,
  nullable,
  number,
  oneOf,
  optional,
  otherwise,
  record,
  target,
  text,
  wasmModule,
} from './parse.js';
import type { Parsed, Parser } from './parse.js';
import { dataSpec, sourceSpec } from './sources.js';
export type { DataSpec, SourceSpec } from './sources.js';

/** Version of the protocol, incremented whenever the form of a message changes. */
export const PROTOCOL = 15;

/** Files of a model, an import request, and the files of an adapter. */
const opening = {
  sources: listOf(sourceSpec),
  request: optional(document),
  adapter: listOf(sourceSpec),
};

/** Destination of exported files. */
const place = { container: oneOf('zip', 'files'), target: optional(target) };

/**
 * Settings of the loop in the worker, which do not affect the result of a step. Runs of version 0.1 lack some fields, imported folders lack all of
 * them.
 */
export const driverParser = record({
  logEvery: otherwise(count, 8),
  /** Absent in a new run whose interval is chosen. */
  evalEvery: optional(count),
  evalBatches: otherwise(count, 0),
  autosave: otherwise(flag, true),
  saveEvery: otherwise(count, 0),
  /** Absent if the interval follows the size of the checkpoints. */
  saveEverySecs: optional(number),
  saveTotalLimit: otherwise(count, 4),
  sampleEvery: otherwise(count, 0),
  samplePrompt: otherwise(text, ''),
  sample: otherwise(document, {}),
  onNonFinite: otherwise(oneOf('stop', 'skip'), 'stop'),
});
export type Driver = Parsed<typeof driverParser>;

const which = record({ run: text, generation: optional(count) });
/** Moment of a manual change: after this step, and after this generation was saved. */
const moment = record({ step: count, generation: optional(count) });
export type Moment = Parsed<typeof moment>;

/** All requests, with the parsers of their arguments and replies. */
export const REQUESTS = {
  'worker.hello': {
    ask: record({
      protocol: count,
      version: text,
      wasmHash: text,
      wasmUrl: optional(text),
      wasmBinary: optional(buffer),
      core: optional(wasmModule),
      /** Address of the worker's script, if the worker was made from a Blob that imports it. */
      script: optional(text),
    }),
    reply: record({ protocol: count, version: text, wasmHash: text }),
  },
  /** Reads from the device, because a frozen tab may have lost it without notice. */
  'device.look': { ask: nothing, reply: nothing },
  /** Measures the peak rates of the GPU, and each kernel as a share of them. */
  'device.measure': { ask: nothing, reply: gpu },
  /** Inspects files, and plans the import that `plan` asks for. */
  'files.inspect': {
    ask: record({ ...opening, format: optional(text), read: flag, plan: optional(document) }),
    reply: inspectReport,
  },
  /** Reads one tensor of the import that `request` asks for. */
  'files.tensor': {
    ask: record({ sources: listOf(sourceSpec), request: document, name: text }),
    reply: storedTensor,
  },
  /** Summarises data without a model. */
  'files.data': {
    ask: record({ data: dataSpec, config: document, partial: flag }),
    reply: fileSummaries,
  },
  /** Lists the downloads that are kept in the origin's private files. */
  'download.list': { ask: nothing, reply: listOf(downloadInfo) },
  /** Removes them, or those with these names; returns the names. */
  'download.remove': { ask: record({ names: optional(listOf(text)) }), reply: listOf(text) },
  'files.verify': {
    ask: record({ sources: listOf(sourceSpec), receipt: optional(document) }),
    reply: verification,
  },
  /** Extracts an adapter from two models. `options` is the core's `ExtractOptions`. */
  'files.extract': {
    ask: record({
      tuned: listOf(sourceSpec),
      base: listOf(sourceSpec),
      options: document,
      ...place,
    }),
    reply: extractedFiles,
  },
  'delta.derive': {
    ask: record({ base: listOf(sourceSpec), tuned: listOf(sourceSpec), name: text, ...place }),
    reply: deltaFiles,
  },
  /** Adds a delta to its base or, with `remove`, subtracts it from its target. */
  'delta.use': {
    ask: record({ model: listOf(sourceSpec), delta: sourceSpec, remove: flag, ...place }),
    reply: deltaFiles,
  },
  /** Trains a tokenizer. `options` is the core's `BpeSettings`; `settings` determine how the data are read. */
  'tokenizer.train': {
    ask: record({ data: dataSpec, options: document, settings: document }),
    reply: trainedTokenizer,
  },
  /** Opens a model. With `apart`, the adapter stays separate; otherwise it is merged, with its larger tables if `resizeVocabulary`. */
  'model.open': {
    ask: record({
      ...opening,
      apart: flag,
      resizeVocabulary: flag,
      /** Text of the chat template to use instead of the model's. */
      chatTemplate: optional(text),
    }),
    reply: modelInfo,
  },
  /** Drops the separate adapter of the open model, so that its base remains; a model without one is left as it is. */
  'model.detach': { ask: nothing, reply: modelInfo },
  /** Details of the trainer's weights, or of the model's if there is no trainer. */
  'model.details': { ask: nothing, reply: modelDetails },
  'model.tensor': { ask: record({ name: text }), reply: namedTensor },
  /**
   * Exports the trainer's weights, or the model's if there is no trainer. `options` is the core's `ExportOptions`. Without `target` the reply
   * contains the files; without `base` the run's base is used.
   */
  'model.export': {
    ask: record({ options: document, base: optional(listOf(sourceSpec)), ...place }),
    reply: writtenFiles,
  },
  /** Creates a model with new weights; `settings` determine how the data are read. With `train`, its tokenizer is trained on them first. */
  'model.create': {
    ask: record({
      config: document,
      tokenizer: nullable(sourceSpec),
      train: optional(document),
      data: dataSpec,
      settings: document,
      partial: flag,
    }),
    reply: modelInfo,
  },
  /** Reports what a run with these settings would learn, with `show` examples. */
  'model.data': {
    ask: record({ data: dataSpec, config: document, partial: flag, show: count }),
    reply: dataInspection,
  },
  /** Returns all examples of the data token by token, read as the trainer reads its own data, if there is a trainer. */
  'model.rows': { ask: record({ data: dataSpec, config: document }), reply: dataPreview },
  'model.detokenize': { ask: record({ ids: listOf(count) }), reply: text },
  /**
   * Generates an answer with the trainer's weights, or with those of the model, which are then loaded onto the device. With `base` the base model
   * answers, without its adapter.
   */
  'model.chat': {
    ask: record({ conversation: document, options: document, base: flag }),
    reply: sampleEnd,
  },
  /** Scores with the same weights. */
  'model.score': { ask: record({ request: document, base: flag }), reply: score },
  'model.tokenize': { ask: record({ text }), reply: listOf(count) },
  /** Estimates memory; `adapter` contains the files of an adapter that is trained further. */
  'model.estimate': {
    ask: record({ config: document, adapter: listOf(sourceSpec) }),
    reply: estimate,
  },
  'model.preview': {
    ask: record({ config: document, points: count, stride: count }),
    reply: listOf(number),
  },
  'trainer.create': {
    ask: record({
      run: text,
      label: text,
      config: document,
      driver: driverParser,
      data: dataSpec,
      adapter: listOf(sourceSpec),
      state: listOf(sourceSpec),
      override: listOf(text),
      keepData: flag,
      allowNonFinite: flag,
    }),
    reply: sessionInfo,
  },
  /** Resumes a run; a generation newer than `changesUpTo` already contains the changes of `config` and `override`. */
  'trainer.resume': {
    ask: record({
      run: text,
      generation: optional(count),
      config: optional(document),
      override: optional(listOf(text)),
      changesUpTo: optional(count),
      driver: optional(driverParser),
      data: optional(dataSpec),
      /** Base model files of the adapter that is trained. */
      base: optional(listOf(sourceSpec)),
      /** True to keep them with the run, as those of a new run are kept. */
      keepBase: optional(flag),
      /** How thoroughly the base is compared. */
      verify: optional(oneOf('full', 'header')),
    }),
    reply: sessionInfo,
  },
  /** Like `trainer.resume`, in place of the live state. */
  'trainer.load': { ask: record({ generation: optional(count) }), reply: sessionInfo },
  'trainer.inspect': { ask: nothing, reply: sessionInfo },
  /** Returns the first `show` examples of the run, token by token. */
  'trainer.preview': { ask: record({ show: count }), reply: dataPreview },
  'trainer.history': { ask: nothing, reply: listOf(historyEntry) },
  'trainer.evaluate': { ask: record({ maxBatches: optional(count) }), reply: evaluation },
  'trainer.profile': { ask: record({ steps: count }), reply: profile },
  'trainer.sample': { ask: record({ prompt: text, options: document }), reply: sampleEnd },
  /** Runs steps; with `again`, lost steps are repeated and no states are reported. */
  'loop.run': {
    ask: record({ maxSteps: optional(count), again: optional(flag) }),
    reply: record({ state: oneOf('paused', 'stopped', 'done'), step: count }),
  },
  'loop.pause': { ask: nothing, reply: nothing },
  'loop.stop': { ask: nothing, reply: nothing },
  'rate.set': { ask: record({ rate: optional(number) }), reply: moment },
  'schedule.decay': { ask: nothing, reply: moment },
  'schedule.preview': { ask: record({ points: count, stride: count }), reply: listOf(number) },
  'checkpoint.save': { ask: nothing, reply: storedCheckpoint },
  /** Saves unsaved steps, because the page is being hidden or the run is paused: `always`, or if the last save was long enough ago. */
  'checkpoint.autosave': { ask: record({ always: flag }), reply: nothing },
  'checkpoint.list': { ask: record({ run: optional(text) }), reply: listOf(storedCheckpoint) },
  /** Returns the base files of the run's adapter, with the bytes of those that are stored and whole. */
  'checkpoint.base': { ask: record({ run: text }), reply: listOf(storedBaseFile) },
  'checkpoint.history': { ask: which, reply: listOf(historyEntry) },
  'checkpoint.keep': { ask: record({ run: text, generation: count, kept: flag }), reply: nothing },
  'checkpoint.fork': {
    ask: record({ run: text, generation: optional(count), label: optional(text) }),
    reply: storedCheckpoint,
  },
  'checkpoint.remove': { ask: which, reply: nothing },
  'checkpoint.export': { ask: which, reply: namedFile },
  'checkpoint.folder': {
    ask: record({ run: text, generation: optional(count), handle: directory }),
    reply: nothing,
  },
  'checkpoint.import': { ask: record({ files: listOf(namedFile) }), reply: storedCheckpoint },
} satisfies Record<string, { ask: Parser<unknown>; reply: Parser<unknown> }>;

export type Tag = keyof typeof REQUESTS;
export type Ask<T extends Tag> = Parsed<(typeof REQUESTS)[T]['ask']>;
export type Reply<T extends Tag> = Parsed<(typeof REQUESTS)[T]['reply']>;

export const isTag = (word: string): word is Tag => Object.hasOwn(REQUESTS, word);
