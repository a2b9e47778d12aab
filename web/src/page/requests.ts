/** What of a model's files is taken, and under which names: the import request, whose values the core checks. */
import { among, objectOf, translate, truth } from './checks.js';
import type { Check, Checks } from './checks.js';
import { json } from '../protocol/json.js';
import { badOption } from '../protocol/errors.js';

/** Tensors by their names in the files; everything if nothing is included. What is excluded is left out, whatever includes it. */
export interface ImportSelection {
  includeStateKeys?: readonly string[];
  excludeStateKeys?: readonly string[];
  /** `*` any text, `?` one character, `{a,b}` either; the whole name must match. */
  includePatterns?: readonly string[];
  excludePatterns?: readonly string[];
  /** Warn of an excluded name that is absent, instead of refusing. false */
  allowUnknownExcludes?: boolean;
}
/** Other names for tensors, all given at once: two may be exchanged. */
export interface KeyRemap {
  /** Name in the files → name of the model. */
  sourceToTarget?: Readonly<Record<string, string>>;
  /** Rename a parameter's optimizer state along with it. false */
  renameState?: boolean;
}
export interface ImportRequest {
  selection?: ImportSelection;
  keyRemap?: KeyRemap;
  /** 'eager' */
  materializationPolicy?: 'eager' | 'deferred';
  /** Part of a parameter group is refused, or its weights are taken without optimizer state. 'require_complete' */
  groupPolicy?: 'require_complete' | 'weights_only';
  /** NaN and infinity in the weights. 'warn' */
  nonFinite?: 'warn' | 'refuse';
  /** Compare stated digests with the values, or only headers. 'full' */
  verify?: 'full' | 'header';
  /** Names as they stand in the files, or Hugging Face's. 'source' */
  names?: 'source' | 'hf';
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
  selection: inside({ includeStateKeys: texts, excludeStateKeys: texts, includePatterns: texts, excludePatterns: texts, allowUnknownExcludes: truth }),
  keyRemap: inside({ sourceToTarget: names, renameState: truth }),
  materializationPolicy: among('eager', 'deferred'),
  groupPolicy: among('require_complete', 'weights_only'),
  nonFinite: among('warn', 'refuse'),
  verify: among('full', 'header'),
  names: among('source', 'hf'),
};

/** @internal The core's `PortableModelImportRequest` as JSON. */
export const requestJson = (request: ImportRequest | undefined): string | undefined => (request === undefined ? undefined : json(inside(REQUEST)(request, 'request')));
