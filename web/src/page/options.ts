/** Options of a run. Keys and kinds are checked here; the core checks the values and supplies the defaults. */
import {
  allOf,
  boolean,
  naturalNumber,
  notNegative,
  objectOf,
  ofKinds,
  oneOf,
  positiveInteger,
  snake,
  string,
  together,
  translate,
  twoOrMore,
} from './checks.js';
import type { Check, Checks } from './checks.js';
import { ownFields } from './given.js';
import { badOption } from '../protocol/errors.js';
import { plain } from '../protocol/plain.js';
import type { Values } from '../protocol/plain.js';
import {
  ADAPTER,
  BLOCK_COORDINATE,
  COLUMNS,
  GROUP,
  OPTIMIZERS,
  RUN,
  SAMPLE,
  SCHEDULES,
} from '../protocol/generated/kinds.js';
import type { Kinds } from '../protocol/generated/kinds.js';
import type { OptimizerOptions, ScheduleOptions } from '../protocol/generated/rules.js';
import type {
  AdapterSettings,
  BlockCoordinateSettings,
  ColumnSettings,
  GroupSettings,
  RunSettings,
  SampleOptions,
} from '../protocol/generated/settings.js';
import { driverParser } from '../protocol/protocol.js';
import type { Driver, SourceSpec } from '../protocol/protocol.js';
import { toSources } from './inputs.js';
import type { FilesInput } from './inputs.js';

/** The `type` of every optimizer. */
export const OPTIMIZER_TYPES: readonly OptimizerOptions['type'][] = Object.keys(
  OPTIMIZERS,
) as OptimizerOptions['type'][];

/** Some of the settings of each member of a union. */
type Some<T> = T extends object ? { [K in keyof T]?: T[K] | undefined } : never;
/** A complete optimizer, or hyperparameters that override those of the run's optimizer. */
export type GroupOptimizer = Some<OptimizerOptions>;

/** A group of parameters, selected by name. A parameter belongs to the first group whose pattern matches. */
export interface GroupOptions extends GroupSettings {
  /** Optimizer of the group. With the run's type, or without a type, its keys override those of the run. Default: the run's optimizer. */
  optimizer?: GroupOptimizer | undefined;
}

/** Settings of an adapter: new factors, or PEFT files that are trained further. */
export interface AdapterOptions extends AdapterSettings {
  /**
   * Files of an adapter (adapter_config.json, adapter_model.safetensors). Their settings apply: the other settings here may only repeat them, except
   * for `dropout`.
   */
  from?: FilesInput | undefined;
}

/** Settings of the computation of a step. The text of each setting ends with its default. */
export interface TrainOptions extends RunSettings {
  /**
   * Settings with the names of a settings file: the object that `tabtune train --train-config` reads. Other options are laid over it. Default: none.
   */
  settings?: object | undefined;
  /** Low-rank factors to train in place of the weights; null trains all weights. Default: null. */
  adapter?: AdapterOptions | null | undefined;
  /**
   * Trains with AdamW on a few blocks at a time, which allows clipping and accumulation in little memory; null trains all blocks in every step.
   * Default: null.
   */
  blockCoordinate?: BlockCoordinateSettings | null | undefined;
  /** Columns of the rows if they do not have the usual names: a key, or a pattern with keys in braces; null for the usual names. Default: null. */
  columns?: ColumnSettings | null | undefined;
  /** Update rule. Default: `{ type: 'adamw' }`. */
  optimizer?: OptimizerOptions | undefined;
  /** Parameter groups; 'no_decay' exempts norms, biases, rates and embeddings from weight decay. Default: one group of all parameters. */
  groups?: GroupOptions[] | 'no_decay' | undefined;
  /** Schedule of the learning rate. Default: `{ type: 'constant' }`. */
  lrScheduler?: ScheduleOptions | undefined;
  /** Number of linear warmup steps; may be given here or in `lrScheduler`. Default: 0. */
  warmupSteps?: number | undefined;
}

/** Settings of the training loop, which do not affect the result of any step. */
export interface DriveOptions {
  /** Number of steps reported in one message. Default: 8. */
  logEvery?: number | undefined;
  /** Number of steps between evaluations; 0 disables them. Default: one pass over the data where rows are kept for evaluation by choice, else 0. */
  evalEvery?: number | undefined;
  /** Number of batches in one evaluation; 0 uses all. Default: 0. */
  evalBatches?: number | undefined;
  /** Saves automatically: before the first step, by time and number of steps, at a pause, when the page is hidden, and at the end. Default: true. */
  autosave?: boolean | undefined;
  /**
   * Seconds between checkpoints, extended to at least ten times the duration of the last save; 0 disables saving by time. Default: one for every
   * 4 MiB of a checkpoint, from 10 to 120.
   */
  saveEverySecs?: number | undefined;
  /** Number of steps between checkpoints; 0 disables saving by steps. Default: 0. */
  saveEvery?: number | undefined;
  /** Number of checkpoints of the run to keep, at least 2, in addition to those marked to be kept always. Default: 4. */
  saveTotalLimit?: number | undefined;
  /** Number of steps between samples; 0 disables them. Default: 0. */
  sampleEvery?: number | undefined;
  /** Prompt of these samples. Default: ''. */
  samplePrompt?: string | undefined;
  /** Other options of these samples. */
  sample?: SampleOptions | undefined;
  /** Reaction to a step whose loss or gradient is not finite: such a step changes nothing, then the run stops or continues. Default: 'stop'. */
  onNonFinite?: 'stop' | 'skip' | undefined;
}

/** Checks an object whose `type` determines its keys. Without a type the keys are checked by `untyped`, if given; otherwise the type is required. */
const byType =
  (types: Record<string, Kinds>, untyped?: Checks): Check =>
  (value, path) => {
    const { type, ...rest } = { type: undefined, ...objectOf(value, path) };
    if (type === undefined && untyped !== undefined) return translate(rest, untyped, path);
    const kind = oneOf(...Object.keys(types))(type, `${path}.type`);
    return { type: kind, ...translate(rest, ofKinds(types[String(kind)] ?? {}), path) };
  };

// Only the core knows which of the keys fit the run's optimizer.
const anyOptimizer = ofKinds(Object.assign({}, ...Object.values(OPTIMIZERS)) as Kinds);
const group: Checks = { ...ofKinds(GROUP), optimizer: byType(OPTIMIZERS, anyOptimizer) };
const groups: Check = (value, path) => {
  if (value === 'no_decay') return value;
  if (!Array.isArray(value)) throw badOption(path, "a list of groups, or 'no_decay'", value);
  const list: unknown[] = [];
  together(
    value.map((given: unknown, index) => () => {
      const at = `${path}[${index}]`;
      list.push(translate(objectOf(given, at), group, at));
    }),
  );
  return list;
};

// The files are sent separately.
const factors: Checks = { ...ofKinds(ADAPTER), from: () => undefined };
const adapter: Check = (value, path) =>
  value === null ? null : translate(objectOf(value, path), factors, path);

const coordinates = ofKinds(BLOCK_COORDINATE);
const blockCoordinate: Check = (value, path) =>
  value === null ? null : translate(objectOf(value, path), coordinates, path);

const named = ofKinds(COLUMNS);
const columns: Check = (value, path) =>
  value === null ? null : translate(objectOf(value, path), named, path);

const sampling = ofKinds(SAMPLE);
const TRAIN: Checks = {
  ...ofKinds(RUN),
  adapter,
  blockCoordinate,
  columns,
  warmupSteps: naturalNumber,
  lrScheduler: byType(SCHEDULES),
  optimizer: byType(OPTIMIZERS),
  groups,
};
const DRIVE: Checks = {
  logEvery: positiveInteger,
  evalEvery: naturalNumber,
  evalBatches: naturalNumber,
  autosave: boolean,
  saveEverySecs: notNegative,
  saveEvery: naturalNumber,
  saveTotalLimit: twoOrMore,
  sampleEvery: naturalNumber,
  samplePrompt: string,
  sample: (value, path) => translate(objectOf(value, path), sampling, path),
  onNonFinite: oneOf('stop', 'skip'),
};

/** @internal Returns the core's `GenerateConfig`. */
export const sampleSettings = (options: SampleOptions, others?: readonly string[]): Values =>
  plain(translate(options, sampling, '', others), 'options');

/** Moves the warmup into the schedule, where the core has it. */
function scheduled({ lr_scheduler: chosen, warmup_steps: warmupSteps, ...rest }: Values): Values {
  if (chosen === undefined && warmupSteps === undefined) return rest;
  const schedule: Record<string, unknown> = ownFields({ ...objectOf(chosen ?? {}, 'lrScheduler') });
  if (warmupSteps !== undefined) {
    if (schedule['warmup_steps'] !== undefined)
      throw badOption('warmupSteps', 'this only once, here or in lrScheduler', warmupSteps);
    schedule['warmup_steps'] = warmupSteps;
  }
  return { ...rest, schedule };
}

/** @internal Returns the files of the adapter in these settings. */
export const adapterFiles = (settings: TrainOptions): FilesInput | undefined =>
  ownFields<AdapterOptions>(ownFields(settings).adapter ?? {}).from;

/** @internal Checks the changes for a resume; `override` has Rust's names of the keys that may differ from the checkpoint. */
export function resumeSettings(
  changes: TrainOptions,
  override: readonly string[],
): { config: Values; override: string[] } {
  const [config, names] = allOf(
    () => scheduled(translate(objectOf(changes, 'settings'), TRAIN, '')),
    () => overrideNames(override),
    () => {
      if (adapterFiles(changes) !== undefined)
        throw badOption('settings.adapter.from', 'this only for a new run', 'files');
    },
  );
  return { config, override: names };
}

/** @internal Returns the core's names of the options that may differ from a checkpoint or a state. */
export function overrideNames(override: readonly string[]): string[] {
  if (!Array.isArray(override)) throw badOption('override', 'a list of option names', override);
  const core = (name: unknown, index: number): string =>
    snake(String(string(name, `override[${index}]`)))
      .replace(/^lr_scheduler\b/, 'schedule')
      .replace(/^warmup_steps$/, 'schedule.warmup_steps');
  return override.map(core);
}

/** @internal Returns the files of the adapter that a run starts from. */
export async function adapterSources(
  settings: TrainOptions,
  signal?: AbortSignal,
): Promise<SourceSpec[]> {
  const files = adapterFiles(settings);
  return files === undefined ? [] : toSources(files, 'adapter.from', signal);
}

/** Rust's names of the settings of the loop, which the core does not get. */
const OF_THE_LOOP = new Set(Object.keys(DRIVE).map(snake));

/**
 * @internal Checks settings and splits them into those of the core and those of the loop. Unknown keys are BAD_OPTION; `others` are the names of the
 * call's other options.
 */
export function trainSettings(
  options: TrainOptions & DriveOptions,
  others: readonly string[] = [],
): { config: Values; driver: Driver } {
  const { settings = {}, ...given } = ownFields(objectOf(options, 'options') as typeof options);
  const checked = translate(given, { ...TRAIN, ...DRIVE }, '', ['settings', ...others]);
  const sample = plain(objectOf(checked['sample'] ?? {}, 'sample'), 'sample');
  const driver = driverParser({ ...given, sample }, 'options');
  const { autosave, saveEvery } = driver;
  if (!autosave && saveEvery > 0) throw badOption('saveEvery', '0 with autosave: false', saveEvery);
  const config = scheduled(
    Object.fromEntries(Object.entries(checked).filter(([key]) => !OF_THE_LOOP.has(key))),
  );
  return { config: overlaid(plain(objectOf(settings, 'settings'), 'settings'), config), driver };
}

/** Lays settings over others at any depth, as the terminal lays its options over a file. Another `type` replaces an object. */
function overlaid(under: Values, over: Values): Values {
  const [old, type] = [under['type'], over['type']];
  if (old !== undefined && type !== undefined && old !== type) return over;
  const laid = Object.entries(over).map(([key, value]): [string, unknown] => {
    const below = Object.hasOwn(under, key) ? under[key] : undefined;
    return [key, isValues(below) && isValues(value) ? overlaid(below, value) : value];
  });
  return Object.fromEntries([...Object.entries(under), ...laid]);
}

const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Settings that determine how data are read. */
export type ReadingOptions = Pick<TrainOptions, 'form' | 'columns' | 'onBadRow'>;

/** @internal Returns the core's `TrainConfig`. */
export const runSettings = (options: TrainOptions, others?: readonly string[]): Values =>
  plain(trainSettings(options, others).config, 'options');
