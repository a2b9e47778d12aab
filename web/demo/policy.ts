/** What the browser enforces where this page is served: the worker, which reads the files and trains, has the policy of its own response alone. */
import { byId } from './dom.js';

/** Whether a Content-Security-Policy header lets its page or worker talk to its own address and to nothing else. Several policies all hold. */
export function confines(header: string | null): boolean {
  return (header ?? '').split(',').some((policy) => {
    const directives = new Map<string, string>();
    for (const text of policy.split(';')) {
      const [name = '', ...sources] = text.trim().split(/\s+/);
      // The first directive of a name counts.
      if (!directives.has(name.toLowerCase())) directives.set(name.toLowerCase(), sources.join(' ').toLowerCase());
    }
    const allowed = directives.get('connect-src') ?? directives.get('default-src');
    return allowed === "'self'" || allowed === "'none'" || allowed === '';
  });
}

/** Says in the About box what is enforced; asks for the headers of the worker's own file and for nothing else. */
export async function sayPolicy(workerUrl: string): Promise<void> {
  const answer = await fetch(workerUrl, { method: 'HEAD' }).catch(() => undefined);
  byId('policy', HTMLElement).textContent = confines(answer?.headers.get('content-security-policy') ?? null)
    ? 'The browser sees to it: the Content-Security-Policy of this page and of the worker that trains lets both talk to this address only.'
    : 'The browser keeps the page itself to its own address. This server sends no such policy with the worker that trains: there it is the program that asks no other address, not the browser.';
}
