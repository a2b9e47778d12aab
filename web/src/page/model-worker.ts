/** The worker of a model, and how a model is opened in it. */
import { aborted } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { ModelDetails, ModelInfo } from '../protocol/reports.js';
import { Link } from './link.js';
import type { Owner } from './link.js';
import type { CallOptions, Connection } from './rpc.js';
import type { WorkerOptions } from './spawn.js';

/** @internal Opens the model in a worker; the inputs are kept so that another worker can open it again. */
export type Open = (
  connection: Pick<Connection, 'call'>,
  options?: CallOptions,
) => Promise<ModelInfo>;

const ownerOf = (open: Open): Owner => ({
  confirmed: () => 0,
  lost: () => undefined,
  restore: (connection) => open(connection).then(() => undefined),
  recovered: () => undefined,
  failed: () => undefined,
  events: () => undefined,
});

/** An open model, with its worker. */
export interface Opened {
  info: ModelInfo;
  details: ModelDetails;
  link: Link;
}

/** Starts a worker and opens the model in it; a worker in which that fails is ended. */
export async function opened(
  worker: WorkerOptions,
  open: Open,
  call: CallOptions,
): Promise<Opened> {
  const link = await Link.open(worker, ownerOf(open), call.signal);
  try {
    return {
      info: await open(link, call),
      details: await link.call('model.details', undefined, call),
      link,
    };
  } catch (thrown) {
    link.close(aborted('the model'));
    throw thrown;
  }
}

/** @internal How a model was opened. */
export interface Kept {
  allowNonFinite?: boolean;
  files?: SourceSpec[];
  alone?: () => void;
}
