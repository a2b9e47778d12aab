/** The Content-Security-Policy of the demo. A page and a worker each take theirs from their own response, so every response carries it. */
export const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src 'self'; style-src 'self'; img-src 'self' data: blob:";
