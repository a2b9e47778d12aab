/** tabtune/schema: the settings of a run as JSON schemas, for forms, editors and checks. They are made by web/settings-schema.mjs. */

import type { Json } from './protocol/json.js';

export type { Json, JsonObject } from './protocol/json.js';

/** The keywords of JSON schema that the schemas of settings have. */
export interface JsonSchema {
  /** Address of the dialect, at the root. */
  readonly $schema?: string;
  /** Name of a schema with other schemas in it. */
  readonly title?: string;
  /** Meaning of a setting, with the limits that no keyword expresses. */
  readonly description?: string;
  /** Kind or kinds of a value. */
  readonly type?: string | readonly string[];
  /** Value that a run uses where the setting is absent. */
  readonly default?: Json;
  /** The only value that fits. */
  readonly const?: Json;
  /** All values that fit. */
  readonly enum?: readonly Json[];
  /** Smallest value. */
  readonly minimum?: number;
  /** Largest value. */
  readonly maximum?: number;
  /** Limit that a value exceeds. */
  readonly exclusiveMinimum?: number;
  /** Limit that a value stays below. */
  readonly exclusiveMaximum?: number;
  /** Schema of the items of a list. */
  readonly items?: JsonSchema;
  /** Schemas of the keys of an object. */
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  /** Keys that an object must have. */
  readonly required?: readonly string[];
  /** False where no other keys are allowed; a schema of the values in a table. */
  readonly additionalProperties?: boolean | JsonSchema;
  /** Alternatives, of which a value fits one or more. */
  readonly anyOf?: readonly JsonSchema[];
}

declare const __TABTUNE_SETTINGS_SCHEMA__: JsonSchema;
declare const __TABTUNE_OPTIONS_SCHEMA__: JsonSchema;

/** Schema of a settings file, in snake_case: of `settings` in options, and of `tabtune train --train-config`. */
export const settingsSchema: JsonSchema = __TABTUNE_SETTINGS_SCHEMA__;
/** Schema of the same settings as options of `Trainer.create`, in camelCase. */
export const optionsSchema: JsonSchema = __TABTUNE_OPTIONS_SCHEMA__;
