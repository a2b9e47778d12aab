/** The settings of a run, with those that were chosen for it. */
import type { Json } from '../protocol/json.js';
import type { DataInspection, SessionInfo } from '../protocol/reports.js';
import type { TrainOptions } from './options.js';

/** A setting that was chosen, since the run was created without a learning rate. */
export interface ChosenSetting {
  /** Name of the option. */
  name: string;
  /** Its value. */
  value: Json;
  /** Reason for the value. */
  reason: string;
}

/** The settings of a run. */
export interface SettingsInUse {
  /** Every setting, under the names of the options. */
  readonly values: TrainOptions;
  /** The settings that were chosen because they were not given, in the order of their choice. */
  readonly chosen: readonly ChosenSetting[];
}

/** Tables whose keys are names of modules. */
const OF_MODULES = new Set(['rank_pattern', 'alpha_pattern']);

const optionName = (setting: string): string =>
  setting === 'schedule'
    ? 'lrScheduler'
    : setting.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Returns a value of the core's settings under the names of options. */
function asOptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asOptions);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]: [string, unknown]) => [
      optionName(key),
      OF_MODULES.has(key) ? inner : asOptions(inner),
    ]),
  );
}

/** @internal Returns the settings of a run as the core states them. */
export const settingsOf = ({
  config,
  chosen,
}: Pick<SessionInfo | DataInspection, 'config' | 'chosen'>): SettingsInUse => ({
  values: asOptions(config) as TrainOptions,
  chosen: chosen.map(({ setting, value, reason }) => ({
    name: optionName(setting),
    value: asOptions(value) as Json,
    reason,
  })),
});
