// Globals of browsers that the DOM library of TypeScript lacks, and modules that only a benchmark installs.
declare const GPUBufferUsage: Readonly<
  Record<'COPY_DST' | 'COPY_SRC' | 'MAP_READ' | 'STORAGE' | 'UNIFORM', number>
>;
declare const GPUMapMode: Readonly<Record<'READ', number>>;
/** Only workers have it. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
interface Window {
  /** Number of workers that were not ended: `demo-choices.test.mjs` counts them. */
  workers(): number;
  /** Words of faults that the page has shown: the same file collects them. */
  faults: Set<string>;
  /** Words of the status line, one after the other: `demo-hub.test.mjs` collects them. */
  said: string[];
}
interface Performance {
  /** Only isolated pages of Chromium have it. */
  measureUserAgentSpecificMemory(): Promise<{ bytes: number }>;
}
interface ParentNode {
  /** Scripts select elements that are there, and fail without them; fields of a form have all that scripts read of an element. */
  querySelector(selectors: string): HTMLInputElement;
}
declare module '@jax-js/jax';
declare module '@tensorflow/tfjs';
declare module '@tensorflow/tfjs-backend-webgpu';
declare module 'nanogpt/*';
declare module 'tabtune-bench';
