/** The text of a run that does not store its own. */
import type { CheckpointInfo, DataInput } from 'tabtune';

import { ask } from './ask.js';
import type { Setup } from './panels/setup.js';

/** Returns the text that is chosen in the form, if the user agrees. */
export async function dataFor(
  { dataName }: CheckpointInfo,
  { data, dataLabel }: Setup,
): Promise<DataInput | undefined> {
  const own =
    dataName === ''
      ? 'Its text is not kept with this run.'
      : `Its text, ${dataName}, is not kept with this run.`;
  const answer = await ask(
    'Which text?',
    `${own} It continues only with the same text. The form below has ${dataLabel}.`,
    { go: `Resume with ${dataLabel}` },
  );
  return answer === undefined ? undefined : data;
}
