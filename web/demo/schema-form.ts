/** Fields for the settings of a schema: what is typed, as a value, and what a field shows. */
import type { Json, TrainOptions } from 'tabtune';
import type { JsonSchema } from 'tabtune/schema';

export interface SettingField {
  /** Path of the setting: `maxGradNorm`, `optimizer.adamw.beta1`. */
  path: string;
  label: string;
  /** Its meaning. */
  about: string;
  control: 'number' | 'choice' | 'text';
  /** Values of a choice. */
  words: string[];
  /** The default, and the limits of a number. */
  placeholder: string;
  schema: JsonSchema;
}
export interface SettingGroup {
  title: string;
  about: string;
  fields: SettingField[];
}

/** Settings that have a field elsewhere on the page. */
const ELSEWHERE = new Set([
  'steps',
  'epochs',
  'learningRate',
  'batchSize',
  'seqLen',
  'seed',
  'precision',
  'adapter.r',
  'adapter.alpha',
]);
const TITLES: Readonly<Record<string, string>> = {
  optimizer: 'Update rule',
  lrScheduler: 'Schedule',
  adapter: 'Adapter',
  blockCoordinate: 'One block at a time',
  columns: 'Columns',
};
/** Alternatives of a schema, itself if it has none. */
const alternatives = (schema: JsonSchema): readonly JsonSchema[] => schema.anyOf ?? [schema];
const isType = ({ type }: JsonSchema, name: string): boolean => [type].flat().includes(name);

/** Returns the words of a name in camel case. */
export function labelOf(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** Returns a value as it is typed. */
export const textOf = (value: Json | undefined): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** Returns the limits of a number in words. */
function limitsOf(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } =
    alternatives(schema).find((each) => isType(each, 'number') || isType(each, 'integer')) ?? {};
  const low =
    minimum !== undefined
      ? `from ${minimum}`
      : exclusiveMinimum !== undefined
        ? `above ${exclusiveMinimum}`
        : '';
  const high =
    maximum !== undefined
      ? `to ${maximum}`
      : exclusiveMaximum !== undefined
        ? `below ${exclusiveMaximum}`
        : '';
  return [low, high].filter(Boolean).join(' ');
}

/**
 * Returns what a text means as a value of a schema; undefined if it is empty. A text that fits nothing stays a text, which the package refuses in its
 * own words.
 */
export function valueOf(text: string, schema: JsonSchema): Json | undefined {
  const word = text.trim();
  if (word === '') return undefined;
  const all = alternatives(schema);
  const named = all
    .flatMap((each) => [...(each.enum ?? []), ...(each.const === undefined ? [] : [each.const])])
    .find((each) => textOf(each) === word);
  if (named !== undefined) return named;
  if (all.some((each) => isType(each, 'boolean')) && /^(true|false)$/.test(word))
    return word === 'true';
  if (all.some((each) => isType(each, 'null')) && word === 'null') return null;
  if (all.some((each) => isType(each, 'number') || isType(each, 'integer'))) {
    const number = Number(word);
    if (Number.isFinite(number)) return number;
  }
  const list = all.find((each) => isType(each, 'array'));
  const isText = all.some((each) => isType(each, 'string'));
  const table = all.some((each) => isType(each, 'object'));
  if ((list && word.startsWith('[')) || (table && word.startsWith('{')))
    try {
      return JSON.parse(word) as Json;
    } catch {
      return word;
    }
  const items = list?.items;
  if (items && !items.properties && (word.includes(',') || !isText)) {
    const each = word.split(',').map((part) => valueOf(part, items));
    if (each.every((part): part is Json => part !== undefined)) return each;
  }
  return word;
}

/** Returns the field of a setting; `now` is the value that it has if nothing is typed. */
function fieldOf(path: string, name: string, schema: JsonSchema, now: unknown): SettingField {
  const words = isType(schema, 'boolean')
    ? ['true', 'false']
    : (schema.enum ?? []).map((each) => textOf(each));
  const isNumber = isType(schema, 'number') || isType(schema, 'integer');
  const value = textOf((now === undefined ? schema.default : now) as Json | undefined);
  const limits = limitsOf(schema);
  return {
    path,
    label: labelOf(name),
    about: (schema.description ?? '').replaceAll('`', ''),
    control: words.length > 0 ? 'choice' : isNumber ? 'number' : 'text',
    words,
    placeholder: [value, limits && (value === '' ? limits : `(${limits})`)]
      .filter(Boolean)
      .join(' '),
    schema,
  };
}

/** Returns the fields of all settings that have none elsewhere: of rules and schedules those of the chosen ones, whose values `base` has. */
export function groupsOf(schema: JsonSchema, base: TrainOptions): SettingGroup[] {
  const main: SettingGroup = { title: 'The run', about: '', fields: [] };
  const groups = [main];
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    const now: unknown = Reflect.get(base, name);
    const chosen = typeof now === 'object' && now !== null ? now : {};
    const type: unknown = Reflect.get(chosen, 'type');
    const inner = alternatives(each).find(
      ({ properties }) =>
        properties && (properties['type'] === undefined || properties['type'].const === type),
    )?.properties;
    if (!inner) {
      if (!ELSEWHERE.has(name)) main.fields.push(fieldOf(name, name, each, now));
      continue;
    }
    // An adapter and blocks belong to runs that have them.
    if (now === undefined && name !== 'columns') continue;
    const prefix = typeof type === 'string' ? `${name}.${type}` : name;
    groups.push({
      title: TITLES[name] ?? labelOf(name),
      about: typeof type === 'string' ? type : '',
      fields: Object.entries(inner)
        .filter(([key]) => key !== 'type' && !ELSEWHERE.has(`${name}.${key}`))
        .map(([key, part]) =>
          fieldOf(`${prefix}.${key}`, key, part, Reflect.get(chosen, key) as unknown),
        ),
    });
  }
  return groups;
}
