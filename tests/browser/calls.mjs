// What scenarios of the page's own calls share: failures as values, and the workers that are left.
import { create } from './scenario.mjs';

/** What a scenario needs to be told of failures, and of workers that are left. */
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
/** A scenario with these helpers: `create`, `failure`, `workers`. */
export const scenario = (body) => `async (tabtune, argument) => { ${HELPERS} ${body} }`;
