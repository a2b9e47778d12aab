/** tabtune/schema: the settings of a run as JSON schemas, for forms, editors and checks. They are made by web/settings-schema.mjs. */

/** A JSON value. */
export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** The keywords of JSON schema that the schemas of settings have. */
export interface JsonSchema {
  /** Address of the dialect, at the root. */
  readonly $schema?: string;
  readonly title?: string;
  /** Meaning of a setting, with the limits that no keyword expresses. */
  readonly description?: string;
  readonly type?: string | readonly string[];
  /** Value that a run uses where the setting is absent. */
  readonly default?: Json;
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
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
