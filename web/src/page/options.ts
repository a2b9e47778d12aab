/** Options of a run: keys and kinds are checked here, values by the core, which also has the defaults. */
import { among, naturalNumber, notNegative, objectOf, ofKinds, positiveInteger, snake, together, translate, truth, twoOrMore, words } from './checks.js';
import type { Check, Checks } from './checks.js';
import { badOption } from '../protocol/errors.js';
import { json } from '../protocol/json.js';
import { ADAPTER, BLOCK_COORDINATE, COLUMNS, GROUP, OPTIMIZERS, RUN, SAMPLE, SCHEDULES } from '../protocol/generated/kinds.js';
import type { Kinds } from '../protocol/generated/kinds.js';
import type { OptimizerOptions, ScheduleOptions } from '../protocol/generated/rules.js';
import type { AdapterSettings, BlockCoordinateSettings, ColumnSettings, GroupSettings, RunSettings, SampleOptions } from '../protocol/generated/settings.js';
import type { Driver, SourceSpec } from '../protocol/protocol.js';
import { toSources } from './inputs.js';
import type { FilesInput } from './inputs.js';

type Some<T> = T extends unknown ? Partial<T> : never;
/** A whole optimizer, or hyperparameters laid over the run's. */
export type GroupOptimizer = Some<OptimizerOptions>;

/** Parameters by name; the first group whose pattern matches takes one. */
export interface GroupOptions extends GroupSettings {
  /** Of the run's type or without one: keys over the run's. The run's */
  optimizer?: GroupOptimizer;
}

/** New factors, or those of PEFT files that are trained on. */
export interface AdapterOptions extends AdapterSettings {
  /** The files of an adapter (adapter_config.json, adapter_model.safetensors), whose settings hold: others may only repeat them, but for `dropout`. */
  from?: FilesInput;
}

/** What a step computes; a default ends its line. */
export interface TrainOptions extends RunSettings {
  /** Factors that are trained in place of the weights; null trains all weights. null */
  adapter?: AdapterOptions | null;
  /** AdamW on a few blocks at a time, with clipping and accumulation in little memory; null trains all of them in every step. null */
  blockCoordinate?: BlockCoordinateSettings | null;
  /** Columns of the rows, where these have other names: a key, or a pattern with keys in braces; null where they have the usual ones. null */
  columns?: ColumnSettings | null;
  /** Update rule. `{ type: 'adamw' }` */
  optimizer?: OptimizerOptions;
  /** Parameter groups; none: one group of everything. 'no_decay': norms, biases and embeddings do not decay. */
  groups?: GroupOptions[] | 'no_decay';
  /** Learning rate over the steps. `{ type: 'constant' }` */
  lrScheduler?: ScheduleOptions;
  /** Steps of linear warmup; given here or in `lrScheduler`. 0 */
  warmupSteps?: number;
}

/** How the loop is driven; this changes no step. */
export interface DriveOptions {
  /** Number of steps per message. 8 */
  logEvery?: number;
  /** Steps between evaluations; 0 is never. 0 */
  evalEvery?: number;
  /** Batches of one evaluation; 0 is all. 0 */
  evalBatches?: number;
  /** Save by itself: before the first step, by time and steps, when the page is hidden, at the end. true */
  autosave?: boolean;
  /** Seconds between checkpoints, and at least ten times what the last one took; 0 is never. 120 */
  saveEverySecs?: number;
  /** Steps between checkpoints; 0 is never. 0 */
  saveEvery?: number;
  /** Checkpoints kept of the run, at least 2, in addition to those that are always kept. 4 */
  saveTotalLimit?: number;
  /** Steps between samples; 0 is never. 0 */
  sampleEvery?: number;
  /** Prompt of those samples. '' */
  samplePrompt?: string;
  /** Their other options. */
  sample?: SampleOptions;
  /** A step whose loss or gradient is not finite changes nothing; then the run stops or continues. 'stop' */
  onNonFinite?: 'stop' | 'skip';
}

/** An object whose `type` decides its keys. `untyped` are its keys if it has no type; otherwise it needs one. */
const byType =
  (types: Record<string, Kinds>, untyped?: Checks): Check =>
  (value, path) => {
    const { type, ...rest } = { type: undefined, ...objectOf(value, path) };
    if (type === undefined && untyped !== undefined) return translate(rest, untyped, path);
    const kind = among(...Object.keys(types))(type, `${path}.type`);
    return { type: kind, ...translate(rest, ofKinds(types[String(kind)] ?? {}), path) };
  };

// Only the core knows which of the keys fit the run's optimizer.
const anyOptimizer = ofKinds(Object.assign({}, ...Object.values(OPTIMIZERS)) as Kinds);
const group: Checks = { ...ofKinds(GROUP), optimizer: byType(OPTIMIZERS, anyOptimizer) };
const groups: Check = (value, path) => {
  if (value === 'no_decay') return value;
  if (!Array.isArray(value)) throw badOption(path, "a list of groups, or 'no_decay'", value);
  const list: unknown[] = [];
  together(value.map((given: unknown, index) => () => {
    const at = `${path}[${index}]`;
    list.push(translate(objectOf(given, at), group, at));
  }));
  return list;
};

// The files go another way.
const factors: Checks = { ...ofKinds(ADAPTER), from: () => undefined };
const adapter: Check = (value, path) => (value === null ? null : translate(objectOf(value, path), factors, path));

const coordinates = ofKinds(BLOCK_COORDINATE);
const blockCoordinate: Check = (value, path) => (value === null ? null : translate(objectOf(value, path), coordinates, path));

const named = ofKinds(COLUMNS);
const columns: Check = (value, path) => (value === null ? null : translate(objectOf(value, path), named, path));

const sampling = ofKinds(SAMPLE);
const TRAIN: Checks = { ...ofKinds(RUN), adapter, blockCoordinate, columns, warmupSteps: naturalNumber, lrScheduler: byType(SCHEDULES), optimizer: byType(OPTIMIZERS), groups };
const DRIVE: Checks = {
  logEvery: positiveInteger,
  evalEvery: naturalNumber,
  evalBatches: naturalNumber,
  autosave: truth,
  saveEverySecs: notNegative,
  saveEvery: naturalNumber,
  saveTotalLimit: twoOrMore,
  sampleEvery: naturalNumber,
  samplePrompt: words,
  sample: (value, path) => translate(objectOf(value, path), sampling, path),
  onNonFinite: among('stop', 'skip'),
};

/** @internal `GenerateConfig` as JSON. */
export function sampleJson(options: SampleOptions): string {
  return json(translate(options, sampling, ''));
}

/** The given options under Rust's names; the warmup inside the schedule. */
function settings(train: object): Record<string, unknown> {
  const { lr_scheduler: chosen, warmup_steps: warmupSteps, ...rest } = translate(train, TRAIN, '');
  if (chosen === undefined && warmupSteps === undefined) return rest;
  const schedule: Record<string, unknown> = { ...objectOf(chosen ?? {}, 'lrScheduler') };
  if (warmupSteps !== undefined) {
    if (schedule['warmup_steps'] !== undefined) throw badOption('warmupSteps', 'it once, here or in lrScheduler', warmupSteps);
    schedule['warmup_steps'] = warmupSteps;
  }
  return { ...rest, schedule };
}

/** @internal What a resume changes: keys of `TrainConfig` as JSON, and Rust's names of those that may differ from the checkpoint. */
export function resumeSettings(changes: TrainOptions, override: readonly string[]): { config: string; override: string[] } {
  if (!Array.isArray(override)) throw badOption('override', 'a list of option names', override);
  const config = settings(objectOf(changes, 'settings'));
  if (changes.adapter?.from !== undefined) throw badOption('settings.adapter.from', 'it for a new run only', 'files');
  const core = (name: unknown, index: number): string =>
    snake(String(words(name, `override[${index}]`))).replace(/^lr_scheduler\b/, 'schedule').replace(/^warmup_steps$/, 'schedule.warmup_steps');
  return { config: json(config), override: override.map(core) };
}

/** @internal The files of the adapter that a run goes on from. */
export const adapterSources = async ({ adapter: given }: TrainOptions, signal?: AbortSignal): Promise<SourceSpec[]> =>
  given?.from === undefined ? [] : toSources(given.from, 'adapter.from', signal);

/** @internal `TrainConfig` as JSON, and the driver's settings. Unknown keys are BAD_OPTION. */
export function trainSettings(given: TrainOptions & DriveOptions): { config: string; driver: Driver } {
  // Checked as a whole first, so that the faults of both halves are reported together.
  translate(given, { ...TRAIN, ...DRIVE }, '');
  const train: object = Object.fromEntries(Object.entries(given).filter(([key]) => !Object.hasOwn(DRIVE, key)));
  const { logEvery = 8, evalEvery = 0, evalBatches = 0, autosave = true, saveEverySecs = 120, saveEvery = 0, saveTotalLimit = 4, sampleEvery = 0, samplePrompt = '', sample = {}, onNonFinite = 'stop' } = given;
  if (!autosave && saveEvery > 0) throw badOption('saveEvery', '0 with autosave: false', saveEvery);
  const driver = { logEvery, evalEvery, evalBatches, autosave, saveEverySecs, saveEvery, saveTotalLimit, sampleEvery, samplePrompt, sample: sampleJson(sample), onNonFinite };
  return { config: json(settings(train)), driver };
}
