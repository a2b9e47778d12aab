// The strict policy on page and worker: a whole run without a violation, and a request of the worker to another origin refused.
import { TINY, differences } from './arena.mjs';

export async function csp(arena, tally) {
  const fault = 'a whole run under the strict policy';
  await arena.with(async (subject) => {
    const found = await subject.do(async (s, setting) => {
      const seen = [];
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        seen.push(`${violatedDirective} ${blockedURI}`),
      );
      const header = (await fetch('/torture/worker.mjs')).headers.get('content-security-policy');
      const run = await s.create(setting);
      await s.step(2);
      await s.current().evaluate();
      for await (const token of s.current().sample('It is', { maxTokens: 2 })) void token;
      await s.current().save();
      await s.current().export();
      const file = await s.current().checkpoints.exportFile();
      const imported = await s.current().checkpoints.importFile(file);
      const inWorker = await s.tell('violations');
      const foreign = await s.tell('fetch', { url: 'http://localhost:9/' });
      const violations = await s.tell('violations');
      await s.current().dispose();
      await s.resume({ run: imported.run });
      await s.step(1);
      await s.current().dispose();
      return { run, header, seen, inWorker, foreign, violations };
    }, TINY);
    tally.add(fault, [
      ...differences('violations', [found.seen, found.inWorker], [[], []]),
      ...(found.header ? [] : ['the worker is served without a policy']),
      ...differences(
        'origins',
        [...subject.record.origins].filter((origin) => !origin.includes('localhost')),
        [arena.site.url],
      ),
    ]);
    tally.add('foreign fetch in the worker refused', [
      ...differences('fetch', found.foreign, 'TypeError'),
      ...(found.violations.some((each) => each.startsWith('connect-src'))
        ? []
        : [`violations: ${found.violations}`]),
    ]);
  });
}
