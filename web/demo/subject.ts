/** The run whose model is tried, and the page around it. */
import type { Model, OpenOptions, SessionInfo, Trainer } from 'tabtune';

/** Opens the model again that a run started from. */
export type OpenAgain = (options: Pick<OpenOptions, 'signal' | 'onProgress'>) => Promise<Model>;

/** The run whose model is tried. */
export interface Subject {
  trainer: Trainer;
  info: SessionInfo;
  /** Undefined for a new model, and for a run whose files are not at hand. */
  again: OpenAgain | undefined;
}

export interface TryHost {
  /** Pauses the open run while `work` runs. */
  alone: (work: () => Promise<void>) => Promise<void>;
  pause: () => void;
}
