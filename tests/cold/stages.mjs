// The stages of a run, from its output lines: how long each took, and how many cores were idle in the meantime.

export const clock = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

/** Returns name, begin and end of each stage, from the lines that `web/stages.mjs` prints. */
function stagesOf(marks, last) {
  const stages = new Map();
  for (const mark of marks) {
    const found = /^\[\d+\/\d+\] ([^:]+)(.*)$/.exec(mark.line);
    if (!found) continue;
    const [, name, rest] = found;
    const stage = stages.get(name) ?? { name, begin: mark, end: last };
    if (/^: (done in|FAILED|ended|there|current|taken)/.test(rest)) stage.end = mark;
    stages.set(name, stage);
  }
  return [...stages.values()];
}

/** Returns a table of a run's stages. Stages overlap: the seconds of CPU are the whole machine's during that time. */
export function stageTable({ marks, last }) {
  const row = (name, begin, end) => {
    const wall = (end.at - begin.at) / 1000;
    const busy = (end.busy - begin.busy) / 1000;
    const idle = wall > 0 ? (end.idle - begin.idle) / 1000 / wall : 0;
    return `| ${name} | ${clock((begin.at - marks[0].at) / 1000)} | ${clock(wall)} | ${Math.round(busy)} | ${idle.toFixed(2)} |`;
  };
  return [
    '| stage | begins | wall | CPU seconds of the machine meanwhile | idle cores |',
    '|---|---|---|---|---|',
    ...stagesOf(marks, last).map(({ name, begin, end }) => row(name, begin, end)),
    row('all', marks[0], last),
  ];
}
