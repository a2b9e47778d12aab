/** Settings of the next run beyond those of the form, by their paths; an absent one has its default. */
import type { Json, TrainOptions } from 'tabtune';
import { TabtuneError } from 'tabtune';

const KEY = 'tabtune.advanced';
const settings = new Map<string, Json>();
const faults = new Map<string, string>();

/** Restores the settings of the last visit. */
export function restoreAdvanced(): void {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    for (const [path, value] of Object.entries(kept ?? {})) settings.set(path, value as Json);
  } catch {
    // Storage may be disabled, or contain something else: then all have their defaults.
  }
}

export const advancedCount = (): number => settings.size;
export const advancedValue = (path: string): Json | undefined => settings.get(path);

/** Gives a setting another value, or its default if that is undefined. */
export function setAdvanced(path: string, value: Json | undefined): void {
  if (value === undefined) settings.delete(path);
  else settings.set(path, value);
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(settings)));
  } catch {
    // Nothing depends on it.
  }
}

/**
 * Adds the settings to options. Those of a rule or schedule, whose path has its type (`optimizer.adamw.beta1`), belong to that one alone, and those of
 * an adapter or of blocks to a run that has them.
 */
export function withAdvanced<T extends TrainOptions>(options: T): T {
  const result: Record<string, unknown> = Object.fromEntries(Object.entries(options));
  for (const [path, value] of settings) {
    const [group = '', ...inner] = path.split('.');
    const key = inner.at(-1);
    if (key === undefined) {
      result[group] = value;
      continue;
    }
    const known = group === 'columns' ? (result[group] ?? {}) : result[group];
    if (typeof known !== 'object' || known === null) continue;
    if (inner.length === 2 && Reflect.get(known, 'type') !== inner[0]) continue;
    result[group] = { ...known, [key]: value };
  }
  return result as T;
}

/** Returns the path of a setting as the package names it, without the type of a rule. */
const nameOf = (path: string): string => path.replace(/^(\w+)\.\w+\.(\w+)$/, '$1.$2');
export const faultAt = (path: string): string | undefined => faults.get(nameOf(path));

/** Notes which settings a failure is about, or that there is none. Returns their names. */
export function noteFaults(thrown: unknown): string[] {
  faults.clear();
  if (!(thrown instanceof TabtuneError)) return [];
  const { path, refusals = [] } = thrown.detail;
  if (path !== undefined) faults.set(path, thrown.message);
  for (const { subject, expected, found } of refusals)
    if (subject !== undefined)
      faults.set(subject, `expected ${expected ?? 'another value'}, found ${found ?? 'this one'}`);
  return [...faults.keys()];
}
