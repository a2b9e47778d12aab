/** Questions to the browser about its storage, which it may refuse to answer, or never answer. */
import { limited } from './limited.js';

type Question = 'files' | 'lock' | 'permission' | 'room';
/** Time limit for an answer. */
const ANSWER_MILLIS = 3000;
/** Questions that were not answered in time. */
export const unanswered = new Set<Question>();

/** Returns the browser's answer, or undefined if it refuses, or does not answer in time; until it does, it is not asked again. */
export async function answerTo<T>(
  question: Question,
  ask: () => PromiseLike<T> | undefined,
): Promise<T | undefined> {
  if (unanswered.has(question)) return undefined;
  const answer = (async () => ask())().catch(() => undefined);
  return limited<T | undefined>(answer, ANSWER_MILLIS, () => {
    unanswered.add(question);
    void answer.then(() => unanswered.delete(question));
    return undefined;
  });
}

/** Returns the folder of the origin's private files, if the browser has one and gives access to it. */
export const privateFiles = (): Promise<FileSystemDirectoryHandle | undefined> =>
  answerTo('files', () => globalThis.navigator?.storage?.getDirectory?.());
