/** A shader with spaces in the place of its lines of comment. */
export function uncommented(text: string): string;
/** The module with such texts in place of those of `files`. */
export function withoutComments(wasm: Buffer, files: string[]): Buffer<ArrayBuffer>;
