// Helpers for scenarios about the page's own calls: failures as values, and the workers that remain.
import { create } from './scenario.mjs';

/** Source of the helpers for failures, and for workers that remain. */
const HELPERS = `
  const create = ${create};
  const failure = async (work) => {
    try {
      const late = new Promise((resolve) => setTimeout(resolve, 30_000, 'late'));
      return (await Promise.race([typeof work === 'function' ? work() : work, late])) === 'late' ? 'raw, it hangs' : 'nothing';
    } catch (thrown) {
      return thrown instanceof tabtune.TabtuneError ? [thrown.code, thrown.detail.path ?? thrown.detail.code, thrown.message] : 'raw ' + thrown;
    }
  };
  const workers = new Set();
  const Plain = globalThis.Worker;
  globalThis.Worker = class extends Plain {
    constructor(...given) { super(...given); workers.add(this); }
    terminate() { workers.delete(this); super.terminate(); }
  };
`;
/** Returns a scenario with these helpers: `create`, `failure`, `workers`. */
export const scenario = (body) => `async (tabtune, argument) => { ${HELPERS} ${body} }`;
