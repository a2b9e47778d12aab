/** Returns a shader with its comment lines replaced by spaces. */
export function uncommented(text: string): string;
/** Returns the module with the texts of `files` replaced in this way. */
export function withoutComments(wasm: Buffer, files: string[]): Buffer<ArrayBuffer>;
