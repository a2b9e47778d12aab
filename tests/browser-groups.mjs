// The browser tests in several processes of Playwright Test, which share the cores with the Rust tests. Short files share a process.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { read, run } from '../web/toolchain.mjs';
import { settle } from './counts.mjs';
import { secondsOf } from './durations.mjs';

/** Seconds of tests that a process runs, if they are in several files; and what a file is taken to need before its first run here. */
const [FULL, UNKNOWN] = [45, 15];
const command = (projects, ...more) => [
  'test',
  '--config',
  'tests',
  ...projects.map((name) => `--project=${name}`),
  '--workers',
  '1',
  ...more,
];

/** Returns the results of a report, file by file. */
const resultsOf = ({ suites }) => {
  const testsOf = (suite) => [...suite.specs.flatMap(({ tests }) => tests), ...(suite.suites ?? []).flatMap(testsOf)];
  return suites.map((suite) => ({ file: suite.file, tests: testsOf(suite) }));
};

/** Returns the files of these projects in groups, the slowest first, by the seconds that they took last time. */
export async function groupsOf(...projects) {
  const asked = command(projects, '--list', '--reporter', 'json');
  const listed = await read('playwright', asked);
  if (listed === undefined) throw new Error(`playwright ${asked.join(' ')} failed`);
  const files = resultsOf(JSON.parse(listed)).map(({ file, tests }) => ({
    project: tests[0].projectName,
    key: file,
    expected: secondsOf(file) ?? UNKNOWN,
    took: [],
  }));
  const groups = [];
  for (const file of files.sort((a, b) => b.expected - a.expected)) {
    const open = groups.find((group) => group.project === file.project && group.expected + file.expected <= FULL);
    if (open) Object.assign(open, { key: `${open.key} ${file.key}`, expected: open.expected + file.expected });
    else groups.push(file);
  }
  return groups;
}

/** Runs a group; `scratch` is a folder for its report. */
export async function runGroup(group, scratch, env) {
  const names = group.key.split(' ');
  const own = join(scratch, names[0].replaceAll('/', '-'));
  const report = `${own}.json`;
  const output = [];
  const code = await run('playwright', command([group.project], '--reporter', 'list,json', '--output', own, ...names), {
    allowFailure: true,
    quiet: true,
    onLine: (line) => output.push(line),
    env: { ...env, PLAYWRIGHT_JSON_OUTPUT_FILE: report },
  });
  // Other jobs write at the same time, so the lines of a group are printed together.
  console.log(output.filter((line) => line.trim() !== '').join('\n'));
  if (!existsSync(report)) return { passed: 0, failed: 1 };
  const made = JSON.parse(readFileSync(report, 'utf8'));
  group.took = resultsOf(made).map(({ file, tests }) => {
    const millis = tests.flatMap(({ results }) => results).reduce((sum, { duration }) => sum + duration, 0);
    return { key: file, seconds: Math.round(millis / 100) / 10 };
  });
  return settle({ passed: made.stats.expected, failed: made.stats.unexpected + made.errors.length }, code);
}
