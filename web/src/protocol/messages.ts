/** The messages between page and worker. Every request has an id and exactly one reply; events have no id. */
import { ERROR_CODES } from './errors.js';
import { errorDetail, token, warning } from './generated/reports.js';
import {
  anything,
  count,
  listOf,
  oneOf,
  optional,
  record,
  text,
  variant,
  wasmModule,
} from './parse.js';
import type { Parsed } from './parse.js';
import { progress } from './progress.js';
import { trainerEvent } from './events.js';

/**
 * Field of every message with the connection that it belongs to. A worker may exchange other messages with its page, and those of a connection that
 * has ended may still arrive: both are ignored.
 */
export const OWNER = 'tabtune';
/** Returns the connection that a message belongs to, if it is one of the package. */
export function ownerOf(data: unknown): string | undefined {
  const owner: unknown =
    typeof data === 'object' && data !== null && Object.hasOwn(data, OWNER)
      ? Reflect.get(data, OWNER)
      : undefined;
  return typeof owner === 'string' ? owner : undefined;
}

const errorData = record({
  code: oneOf(...ERROR_CODES),
  message: text,
  detail: errorDetail,
  cause: optional(text),
});

/** Messages from page to worker. `ask` is parsed with the parser of the request; `release` gives back a worker that belongs to the page. */
export const pageMessage = variant('type', {
  request: { id: count, tag: text, ask: anything },
  cancel: { id: count },
  release: {},
});
export type PageMessage = Parsed<typeof pageMessage>;

/** Messages from worker to page. */
export const workerMessage = variant('type', {
  reply: { id: count, reply: anything },
  error: { id: count, error: errorData },
  progress: { id: count, progress },
  /** A token of the `trainer.sample` or `model.chat` request with this id. */
  token: { id: count, token },
  /** Something worth knowing about the prompt, the conversation or the text of the request with this id. */
  warning: { id: count, warning },
  events: { events: listOf(trainerEvent) },
  /** A fault of the GPU, reported as soon as it is noticed. */
  fault: { error: errorData },
  /** Material from which later workers can start: the core that the worker has compiled, or the text of its script. */
  kept: { core: optional(wasmModule), script: optional(text) },
  /** The worker is unusable. */
  fatal: { error: errorData },
});
export type WorkerMessage = Parsed<typeof workerMessage>;
