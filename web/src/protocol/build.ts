/** Constants of the build; `web/build-package.mjs` and the Vite configurations substitute their values. */
declare const __TABTUNE_VERSION__: string;
declare const __TABTUNE_WASM_HASH__: string;

/** Version of the package. */
export const VERSION: string =
  typeof __TABTUNE_VERSION__ === 'string' ? __TABTUNE_VERSION__ : '0.0.0';
/** @internal Takes the place of the core's sum in development. */
export const UNBUILT = 'unbuilt';
/** @internal SHA-256 of the wasm file of this build. */
export const WASM_HASH: string =
  typeof __TABTUNE_WASM_HASH__ === 'string' ? __TABTUNE_WASM_HASH__ : UNBUILT;
