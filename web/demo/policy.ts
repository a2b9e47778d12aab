/** The Content-Security-Policy that the browser enforces: the worker, which reads the files and trains, has only the policy of its own response. */
import { byId } from './dom.js';
import { HUB_HOSTS } from './hub-hosts.mjs';

const ALLOWED = new Set(["'self'", "'none'", ...HUB_HOSTS]);

/**
 * Returns whether a Content-Security-Policy header confines its page or worker to its own origin and the Hugging Face Hub. If there are several
 * policies, all of them apply.
 */
export function confines(header: string | null): boolean {
  return (header ?? '').split(',').some((policy) => {
    const directives = new Map<string, string[]>();
    for (const text of policy.split(';')) {
      const [name = '', ...sources] = text.trim().toLowerCase().split(/\s+/);
      // Only the first directive of each name counts.
      if (!directives.has(name)) directives.set(name, sources);
    }
    const sources = directives.get('connect-src') ?? directives.get('default-src');
    return sources?.every((source) => ALLOWED.has(source)) ?? false;
  });
}

/** Shows in the About box what is enforced, after a request for the headers of the worker's own file. */
export async function sayPolicy(workerUrl: string): Promise<void> {
  const answer = await fetch(workerUrl, { method: 'HEAD' }).catch(() => undefined);
  byId('policy', HTMLElement).textContent = confines(
    answer?.headers.get('content-security-policy') ?? null,
  )
    ? 'The browser enforces this: the Content-Security-Policy of this page and of the worker that trains lets both talk to this address and to the Hugging Face Hub only.'
    : 'The browser keeps the page itself to its own address and the Hugging Face Hub. This server sends no such policy with the worker that trains: the program in it contacts no other address, but the browser does not enforce that.';
}
