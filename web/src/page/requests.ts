/** Import requests: the tensors to take from a model's files, and their names. The core checks the values. */
import { boolean, objectOf, oneOf, translate } from './checks.js';
import type { Check, Checks } from './checks.js';
import { plain } from '../protocol/plain.js';
import type { Values } from '../protocol/plain.js';
import { badOption } from '../protocol/errors.js';

/** Selection of tensors by their names in the files. If nothing is included, all are; an exclusion overrides any inclusion. */
export interface ImportSelection {
  /** Names of tensors to take. */
  includeStateKeys?: readonly string[] | undefined;
  /** Names of tensors to leave out. */
  excludeStateKeys?: readonly string[] | undefined;
  /** Patterns in which `*` matches any text, `?` one character and `{a,b}` either alternative; the whole name must match. */
  includePatterns?: readonly string[] | undefined;
  /** Patterns of names to leave out. */
  excludePatterns?: readonly string[] | undefined;
  /** Warns about an excluded name that does not exist instead of refusing the request. Default: false. */
  allowUnknownExcludes?: boolean | undefined;
}
/** New names of tensors. All are applied at once, so two names may be exchanged. */
export interface KeyRemap {
  /** Maps names in the files to names in the model. */
  sourceToTarget?: Readonly<Record<string, string>> | undefined;
  /** Renames the optimizer state of a parameter along with the parameter. Default: false. */
  renameState?: boolean | undefined;
}
/** Selects the tensors to import from a model's files, and their names. */
export interface ImportRequest {
  /** Tensors to take. Default: all. */
  selection?: ImportSelection | undefined;
  /** New names. Default: the names in the files. */
  keyRemap?: KeyRemap | undefined;
  /** Treatment of an incomplete parameter group: refuse it, or take its weights without optimizer state. Default: 'require_complete'. */
  groupPolicy?: 'require_complete' | 'weights_only' | undefined;
  /** Treatment of NaN and infinity in the weights; 'refuse' reads all that is taken. Default: 'warn'. */
  nonFinite?: 'warn' | 'refuse' | undefined;
}

const isText = (value: unknown): boolean => typeof value === 'string';
const texts: Check = (value, path) => {
  if (Array.isArray(value) && value.every(isText)) return value as unknown;
  throw badOption(path, 'a list of strings', value);
};
const names: Check = (value, path) => {
  if (Object.values(objectOf(value, path)).every(isText)) return value;
  throw badOption(path, 'strings by strings', value);
};
export const inside =
  (checks: Checks): Check =>
  (value, path) =>
    translate(objectOf(value, path), checks, path);

const REQUEST: Checks = {
  selection: inside({
    includeStateKeys: texts,
    excludeStateKeys: texts,
    includePatterns: texts,
    excludePatterns: texts,
    allowUnknownExcludes: boolean,
  }),
  keyRemap: inside({ sourceToTarget: names, renameState: boolean }),
  groupPolicy: oneOf('require_complete', 'weights_only'),
  nonFinite: oneOf('warn', 'refuse'),
};

/** @internal Returns the core's `PortableModelImportRequest`. */
export const importRequest = (request: ImportRequest | undefined): Values | undefined =>
  request === undefined
    ? undefined
    : plain(translate(objectOf(request, 'request'), REQUEST, 'request'), 'request');
