/** Why the script of a worker does not load: its `error` event says nothing of it. */
import type { TabtuneError } from '../protocol/errors.js';
import { escaped, fault } from '../protocol/errors.js';
import { limited } from '../protocol/limited.js';

/** How long the script is asked for once more, to learn what came. */
const ASK_MILLIS = 10_000;
const SCRIPTS = /^(worker-src|child-src|script-src|default-src)/;

/** Listens to the page's policy while a worker starts. */
export class Loading {
  #violated: SecurityPolicyViolationEvent | undefined;
  readonly #hear = (event: SecurityPolicyViolationEvent): void => {
    if (event.disposition === 'enforce' && SCRIPTS.test(event.effectiveDirective)) this.#violated = event;
  };

  /** `address`: of the script, where it is known. */
  constructor(private readonly address: string | undefined) {
    globalThis.document?.addEventListener('securitypolicyviolation', this.#hear);
  }

  end(): void {
    globalThis.document?.removeEventListener('securitypolicyviolation', this.#hear);
  }

  /** Resolves when another request has loaded the script, or failed to. */
  async loaded(): Promise<void> {
    if (this.address === undefined) return;
    await fetch(this.address)
      .then((response) => response.arrayBuffer())
      .catch(() => undefined);
  }

  /** Why it failed, in the class of the reason. */
  async why(): Promise<TabtuneError> {
    const script = this.address === undefined ? 'its script' : `its script ${escaped(this.address)}`;
    const failed = (reason: string): TabtuneError => fault('worker.failed', `the training worker failed: ${script} could not be loaded${reason}. The last checkpoint is kept.`);
    // The violation may be told after the error.
    const response = this.address === undefined ? undefined : await limited(fetch(this.address), ASK_MILLIS, () => undefined).catch(() => undefined);
    const { effectiveDirective, blockedURI } = this.#violated ?? {};
    if (effectiveDirective !== undefined) {
      return fault('worker.blocked', `the page's Content-Security-Policy forbids the training worker: its ${effectiveDirective} does not allow ${escaped(blockedURI ?? '')}. See "Page requirements".`);
    }
    if (response === undefined) return failed('');
    const type = response.headers.get('content-type') ?? 'no type';
    if (!response.ok) return failed(`: HTTP ${response.status}`);
    if (!/(java|ecma)script/i.test(type)) return failed(`: it is served as ${escaped(type)}, not as JavaScript`);
    if (globalThis.crossOriginIsolated && !/require-corp|credentialless/.test(response.headers.get('cross-origin-embedder-policy') ?? '')) {
      return fault('worker.blocked', `this page is isolated (Cross-Origin-Embedder-Policy) and the training worker is not: ${script} must be served with Cross-Origin-Embedder-Policy: require-corp.`);
    }
    return failed('');
  }
}
