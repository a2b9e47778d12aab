/** Handlers of requests: their arguments and results. */
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { Finding, SampledToken } from '../protocol/reports.js';
import type { Context } from './worker-state.js';

export interface CallContext extends Context {
  onToken: (token: SampledToken) => void;
  onWarning: (warning: Finding) => void;
  /** Buffers of the reply that are transferred instead of copied. */
  transfer: Transferable[];
}
export type Handlers = { [T in Tag]: (ask: Ask<T>, context: CallContext) => Promise<Reply<T>> };
