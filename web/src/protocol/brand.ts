/** Classes of objects, also of those from another frame, whose classes differ from this frame's. */

/** Returns the platform's name of an object's class: `File`, `Response`, `Uint8Array`; that of a plain object is `Object`. */
export const brandOf = (value: unknown): string =>
  Object.prototype.toString.call(value).slice(8, -1);

interface Classes {
  Blob: Blob;
  File: File;
  ArrayBuffer: ArrayBuffer;
  WritableStream: WritableStream;
  MessagePort: MessagePort;
  Response: Response;
  Request: Request;
  URL: URL;
  Uint8Array: Uint8Array<ArrayBuffer>;
  Uint32Array: Uint32Array;
  FileList: FileList;
}

/** Classes by their platform's subclasses. */
const BASES = new Map([
  ['File', 'Blob'],
  ['FileSystemWritableFileStream', 'WritableStream'],
]);

/** Returns whether a value is an instance of this class or of a subclass, from any frame. */
export function isOf<K extends keyof Classes>(value: unknown, name: K): value is Classes[K] {
  const brand = brandOf(value);
  if (brand === name || BASES.get(brand) === name) return true;
  const here: unknown = Reflect.get(globalThis, name);
  return typeof here === 'function' && value instanceof here;
}
