/** The model that a run started from, as it was: without the run's adapter, or opened a second time. */
import { openModel } from 'tabtune';
import type { ChatMessage, Model, Progress, SampleEnd, SampledToken, Score } from 'tabtune';
import type { ChatOptions, ScoreOptions } from 'tabtune';

import { askForFiles } from '../ask.js';
import type { OpenAgain, Subject } from '../subject.js';
import { workerUrl } from '../worker.js';

/** Number of bytes of a weight that is not trained here, on the GPU. */
const BYTES_PER_WEIGHT = 4;

export class BaseAgain {
  #model: Model | undefined;
  #closed = false;

  constructor(private readonly subject: Subject) {}

  /** `adapter`: the run's own model without its adapter; `opened`: a second model; `none`: the run began from random weights. */
  get kind(): 'adapter' | 'opened' | 'none' {
    const { adapter, base } = this.subject.info;
    if (adapter) return 'adapter';
    return base ? 'opened' : 'none';
  }

  /** True if the base can answer now. */
  get isReady(): boolean {
    return this.kind === 'adapter' || this.#model !== undefined;
  }

  /** Number of bytes that the weights of the second model take on the GPU. */
  get bytes(): number {
    return this.subject.info.model.parameters * BYTES_PER_WEIGHT;
  }

  /** Opens the second model; without its files the person is asked for them, and may decline. */
  async open(signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<void> {
    const { again, info } = this.subject;
    if (this.isReady || !info.base) return;
    const options = { signal, onProgress };
    const model = await (again ? again(options) : this.#asked(options));
    if (!model) return;
    const found = model.base?.files.map((file) => file.header_sha256).join();
    const wanted = info.base.files.map(({ headerSha256 }) => headerSha256).join();
    if (this.#closed || found !== wanted) {
      await model.dispose();
      throw new Error('These files are not those of the model that this run started from.');
    }
    this.#model = model;
  }

  async #asked(options: Parameters<OpenAgain>[0]): Promise<Model | undefined> {
    const names = this.subject.info.base?.files.map(({ name }) => name).join(', ') ?? '';
    const files = await askForFiles(
      'Which model?',
      `This page no longer has the files that the run started from: ${names}. Choose them again, with those of the tokenizer.`,
    );
    return files && openModel(files, { ...options, workerUrl });
  }

  chat(
    messages: readonly ChatMessage[],
    options: ChatOptions,
  ): AsyncGenerator<SampledToken, SampleEnd | undefined> {
    return this.#model
      ? this.#model.chat(messages, options)
      : this.subject.trainer.chat(messages, { ...options, base: true });
  }

  score(of: string | readonly number[], options: ScoreOptions): Promise<Score> {
    return this.#model
      ? this.#model.score(of, options)
      : this.subject.trainer.score(of, { ...options, base: true });
  }

  /** Closes the second model, which frees its memory. */
  close(): void {
    this.#closed = true;
    void this.#model?.dispose();
    this.#model = undefined;
  }
}
