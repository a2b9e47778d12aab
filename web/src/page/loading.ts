/** Finds out why the script of a worker does not load, because its `error` event does not say. */
import type { TabtuneError } from '../protocol/errors.js';
import { escaped, fault } from '../protocol/errors.js';
import { limited } from '../protocol/limited.js';

/** Time limit for requesting the script once more, to see the response. */
const ASK_MILLIS = 10_000;
const SCRIPTS = /^(worker-src|child-src|script-src|default-src)/;
/** Folder of the dependencies that Vite before version 8 bundles while it serves; it leaves their workers out. */
const BUNDLED_BY_VITE = /\/\.vite\/deps\//;

/** Returns what to do about a script that Vite left out, or one of another origin that a worker made from a Blob could not import; else undefined. */
function adviceAbout(address: string | undefined, here: string): string | undefined {
  if (address === undefined && BUNDLED_BY_VITE.test(here))
    return "add optimizeDeps: { exclude: ['tabtune'] } to Vite's configuration: before version 8 Vite loses the worker of a package that it bundles while it serves";
  const origin = address === undefined ? globalThis.origin : new URL(address).origin;
  return origin === globalThis.origin
    ? undefined
    : `a script of another origin needs CORS there, and \`blob:\` and ${origin} in this page's worker-src. Or copy the package's worker and WebAssembly to this site and name the worker in \`workerUrl\``;
}

/** Listens for violations of the page's security policy while a worker starts. */
export class Loading {
  #violated: SecurityPolicyViolationEvent | undefined;
  readonly #hear = (event: SecurityPolicyViolationEvent): void => {
    if (event.disposition === 'enforce' && SCRIPTS.test(event.effectiveDirective))
      this.#violated = event;
  };

  /** `address` is that of the script, if it is known, `here` that of this module. */
  constructor(
    private readonly address: string | undefined,
    private readonly here = import.meta.url,
  ) {
    globalThis.document?.addEventListener('securitypolicyviolation', this.#hear);
  }

  end(): void {
    globalThis.document?.removeEventListener('securitypolicyviolation', this.#hear);
  }

  /** Resolves once another request for the script has succeeded or failed. */
  async loaded(): Promise<void> {
    if (this.address === undefined) return;
    await fetch(this.address)
      .then((response) => response.arrayBuffer())
      .catch(() => undefined);
  }

  /** Returns the error with the reason of the failure, in the matching class. */
  async why(): Promise<TabtuneError> {
    const script =
      this.address === undefined ? 'its script' : `its script ${escaped(this.address)}`;
    const hint = adviceAbout(this.address, this.here);
    const failed = (reason: string): TabtuneError =>
      fault('worker.failed', { found: `${script} could not be loaded${reason}`, hint });
    // The violation may be reported after the error.
    const response =
      this.address === undefined
        ? undefined
        : await limited(fetch(this.address), ASK_MILLIS, () => undefined).catch(() => undefined);
    const { effectiveDirective, blockedURI } = this.#violated ?? {};
    if (effectiveDirective !== undefined) {
      return fault('worker.blocked', {
        found: `${effectiveDirective} in its Content-Security-Policy does not allow ${escaped(blockedURI ?? '')}`,
        hint,
      });
    }
    if (response === undefined) return failed('');
    const type = response.headers.get('content-type') ?? 'no type';
    if (!response.ok) return failed(`: HTTP ${response.status}`);
    if (!/(java|ecma)script/i.test(type))
      return failed(`: it is served as ${escaped(type)}, not as JavaScript`);
    if (
      globalThis.crossOriginIsolated &&
      !/require-corp|credentialless/.test(
        response.headers.get('cross-origin-embedder-policy') ?? '',
      )
    ) {
      return fault('worker.blocked', {
        found: `the page is isolated (Cross-Origin-Embedder-Policy), but the script of the worker is not`,
        hint: `serve ${script} with Cross-Origin-Embedder-Policy: require-corp`,
      });
    }
    return failed('');
  }
}
