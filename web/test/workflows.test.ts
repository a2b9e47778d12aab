import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../.github/workflows/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.yml'));
const { scripts } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { scripts: Record<string, string> };

/** The jobs of a workflow, by the two spaces before their names. */
function jobsOf(text: string): string[] {
  const [, jobs = ''] = text.split(/^jobs:$/m);
  return jobs.split(/^ {2}(?=[\w-]+:$)/m).slice(1);
}

describe('workflows', () => {
  it('are_those_that_the_documents_name', () =>
    expect(names.sort()).toEqual(['ci.yml', 'pages.yml', 'release.yml']));
  it.each(names)('take_no_more_rights_and_time_than_they_need: %s', (name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    expect(text).toMatch(/^permissions:\n {2}contents: read\n\n/m);
    expect(text).toMatch(/^concurrency:$/m);
    const jobs = jobsOf(text);
    expect(jobs.length).toBeGreaterThan(0);
    for (const job of jobs) expect(job).toMatch(/^ {4}timeout-minutes: \d+$/m);
    // A token left in the checkout could be read by whatever is built there.
    expect(text.match(/persist-credentials: false/g)?.length ?? 0).toBe(
      text.match(/uses: actions\/checkout@/g)?.length ?? 0,
    );
  });
  it.each(names)('name_actions_by_version_and_scripts_that_exist: %s', (name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    for (const [, action = ''] of text.matchAll(/uses: (\S+)/g))
      expect(action).toMatch(/^(\.\/\.github\/actions\/toolchain|actions\/[\w/-]+@v\d+)$/);
    for (const [, script = ''] of text.matchAll(/\bnpm (?:run )?(test|(?<=run )[\w:-]+)/g))
      expect(Object.keys(scripts)).toContain(script);
  });
});
