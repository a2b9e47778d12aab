/** Generation and scoring with loaded weights. */
import { aborted, protocolError } from '../protocol/errors.js';
import type { Finding, SampledToken } from '../protocol/reports.js';
import type { SampleEnd } from '../protocol/events.js';
import { macrotask } from './pacing.js';
import { parsed } from './wasm.js';
import type { LoadedModel, ModelHandle, Session, TokenStream } from './wasm.js';

/** Weights that can generate and score. */
export type Askable = Pick<Session & LoadedModel, 'chat' | 'score'>;

/** Passes on the warnings and each token of the stream, and returns the reason why the text ended. */
export async function streamed(
  stream: TokenStream,
  signal: AbortSignal,
  onToken: (token: SampledToken) => void,
  onWarning: (warning: Finding) => void,
): Promise<SampleEnd> {
  try {
    parsed.findings(stream.warnings()).forEach(onWarning);
    for (;;) {
      if (signal.aborted) throw aborted('the sample');
      const token = parsed.token(await stream.next());
      if (token === undefined) return parsed.sampleEnd(stream.end());
      onToken(token);
      await macrotask();
    }
  } finally {
    stream.free();
  }
}

/** Weights of the open model on the device, loaded at the first question. */
export class Weights {
  #held: { model: ModelHandle; loaded: LoadedModel } | undefined;

  /** Returns the weights of `model`, which must still be the open one. */
  async loaded(model: ModelHandle, open: ModelHandle | undefined): Promise<LoadedModel> {
    if (model !== open) throw protocolError('another model was opened in this worker');
    if (this.#held?.model !== model) {
      this.drop();
      this.#held = { model, loaded: await model.load() };
    }
    return this.#held.loaded;
  }

  /** Removes the weights from the device. */
  drop(): void {
    this.#held?.loaded.free();
    this.#held = undefined;
  }
}
