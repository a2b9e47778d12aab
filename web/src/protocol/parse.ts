/**
 * Parsing of untrusted values: a `Parser` turns an unknown value into a typed one or throws an error with the path. Everything that is sent between
 * page and worker, or read from storage, is parsed with one.
 */
import { isOf } from './brand.js';
import type { Json } from './json.js';

export type Parser<T> = (value: unknown, path: string) => T;
/** The type that a parser returns. */
export type Parsed<S> = S extends Parser<infer T> ? T : never;

/** Error for a value of the wrong form. */
export class ParseError extends TypeError {
  constructor(path: string, expected: string, found: unknown) {
    super(`${path}: expected ${expected}, found ${found === null ? 'null' : typeof found}`);
    this.name = 'ParseError';
  }
}

const primitive =
  <T>(expected: string, test: (value: unknown) => value is T): Parser<T> =>
  (value, path) => {
    if (test(value)) return value;
    throw new ParseError(path, expected, value);
  };

export const text = primitive('a string', (v): v is string => typeof v === 'string');
/** Any number, including NaN and infinities, since a loss can be one. */
export const number = primitive('a number', (v): v is number => typeof v === 'number');
export const count = primitive(
  'an integer >= 0',
  (v): v is number => typeof v === 'number' && Number.isSafeInteger(v) && v >= 0,
);
export const flag = primitive('a boolean', (v): v is boolean => typeof v === 'boolean');
export const blob = primitive('a Blob', (v): v is Blob => isOf(v, 'Blob'));
export const buffer = primitive('an ArrayBuffer', (v): v is ArrayBuffer => isOf(v, 'ArrayBuffer'));
export const wasmModule = primitive(
  'a WebAssembly.Module',
  (v): v is WebAssembly.Module =>
    Object.prototype.toString.call(v) === '[object WebAssembly.Module]',
);
/** A folder that the user picked. */
export const directory = primitive(
  'a directory handle',
  (v): v is FileSystemDirectoryHandle =>
    typeof v === 'object' && v !== null && Reflect.get(v, 'kind') === 'directory',
);
/** A file that the user picked. */
export const fileHandle = primitive(
  'a file handle',
  (v): v is FileSystemFileHandle =>
    typeof v === 'object' && v !== null && Reflect.get(v, 'kind') === 'file',
);
/** Any value, passed through unparsed. */
export const anything: Parser<unknown> = (value) => value;
/** JSON of the core, which is shown but never interpreted. */
export const json = anything as Parser<Json>;
/** A JSON document of the core, under its own field names. */
export const document = primitive(
  'an object',
  (v): v is Readonly<Record<string, unknown>> =>
    typeof v === 'object' && v !== null && !Array.isArray(v),
);
/** The same, of a form that the core states. */
export const documentOf = <T>(): Parser<T> => document as Parser<unknown> as Parser<T>;
/** Target of an export: a folder, a file, or a port at whose other end the page writes to a stream. */
export const target = primitive(
  'a directory handle, a file handle or a MessagePort',
  (v): v is FileSystemDirectoryHandle | FileSystemFileHandle | MessagePort =>
    isOf(v, 'MessagePort') ||
    (typeof v === 'object' &&
      v !== null &&
      /^(file|directory)$/.test(String(Reflect.get(v, 'kind')))),
);
/** Declared without the type of its buffer, which TypeScript below 5.7 does not know. */
export const floats: Parser<Float32Array> = primitive(
  'a Float32Array',
  (v): v is Float32Array => v instanceof Float32Array,
);
export const bytes: Parser<Uint8Array> = primitive('a Uint8Array', (v): v is Uint8Array =>
  isOf(v, 'Uint8Array'),
);
export const nothing = primitive('nothing', (v): v is undefined => v === undefined);

export const optional =
  <T>(inner: Parser<T>): Parser<T | undefined> =>
  (value, path) =>
    value === undefined ? undefined : inner(value, path);

/** A value that may be absent, for which the core writes `null`. */
export const missing =
  <T>(inner: Parser<T>): Parser<T | undefined> =>
  (value, path) =>
    value === null || value === undefined ? undefined : inner(value, path);

/** A value that older records lack, with the value to use instead. */
export const otherwise =
  <T>(inner: Parser<T>, value: T): Parser<T> =>
  (given, path) =>
    given === undefined ? value : inner(given, path);

export const nullable =
  <T>(inner: Parser<T>): Parser<T | null> =>
  (value, path) =>
    value === null ? null : inner(value, path);

export const listOf =
  <T>(inner: Parser<T>): Parser<T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) throw new ParseError(path, 'a list', value);
    return value.map((item, index) => inner(item, `${path}[${index}]`));
  };

/** A table of values; its keys are data. */
export const tableOf =
  <T>(item: Parser<T>): Parser<Readonly<Record<string, T>>> =>
  (value, path) =>
    Object.fromEntries(
      Object.entries(document(value, path)).map(([key, one]) => [key, item(one, `${path}.${key}`)]),
    );
export const oneOf =
  <const T extends readonly string[]>(...words: T): Parser<T[number]> =>
  (value, path) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new ParseError(path, `one of ${words.join(', ')}`, value);
    return found;
  };

type Fields = Record<string, Parser<unknown>>;
type Absentable<F extends Fields> = {
  [K in keyof F]: undefined extends Parsed<F[K]> ? K : never;
}[keyof F];
type Recorded<F extends Fields> = { [K in Exclude<keyof F, Absentable<F>>]: Parsed<F[K]> } & {
  [K in Absentable<F>]?: Parsed<F[K]>;
};

/** A plain object of the given fields; other keys are dropped. */
export const record =
  <F extends Fields>(fields: F): Parser<Recorded<F>> =>
  (value, path) => {
    if (typeof value !== 'object' || value === null) throw new ParseError(path, 'an object', value);
    const entries = Object.entries(fields).map(([key, parser]) => [
      key,
      parser(Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined, `${path}.${key}`),
    ]);
    // The entries were parsed field by field just above; TypeScript cannot follow `fromEntries`.
    return Object.fromEntries(entries) as Recorded<F>;
  };

type Tagged<K extends string, V extends Record<string, Fields>> = {
  [T in keyof V & string]: { [P in K]: T } & Recorded<V[T]>;
}[keyof V & string];

/** A closed union whose variants are distinguished by the field `key`. */
export const variant = <K extends string, V extends Record<string, Fields>>(
  key: K,
  variants: V,
): Parser<Tagged<K, V>> => {
  const parsers = new Map(Object.entries(variants).map(([tag, fields]) => [tag, record(fields)]));
  return (value, path) => {
    const tag: unknown =
      typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
    const parser = typeof tag === 'string' ? parsers.get(tag) : undefined;
    if (parser === undefined)
      throw new ParseError(`${path}.${key}`, `one of ${[...parsers.keys()].join(', ')}`, tag);
    return { [key]: tag, ...parser(value, path) } as Tagged<K, V>;
  };
};
