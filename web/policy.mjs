import { HUB_HOSTS } from './demo/hub-hosts.mjs';

/** @param {string[]} connect Sources that page and worker may connect to. */
const policyOf = (connect) =>
  `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src ${connect.join(' ')}; style-src 'self'; img-src 'self' data: blob:`;

/** The Content-Security-Policy with which the package works. A page and a worker each take theirs from their own response, so every response carries it. */
export const POLICY = policyOf(["'self'"]);
/** The policy of the demo, which also opens models by name. */
export const DEMO_POLICY = policyOf(["'self'", ...HUB_HOSTS]);
