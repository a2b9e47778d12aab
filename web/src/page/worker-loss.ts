/** A trainer's reactions and reports when its worker is lost. */
import { finding } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import type { Owner } from './link.js';
import type { RunLoop } from './loop.js';
import type { Finding, SessionInfo } from '../protocol/reports.js';
import type { TrainerEvent, TrainerState } from '../protocol/events.js';
import { proposals } from './proposals.js';
import type { Recovery } from './recovery.js';
import type { Connection } from './rpc.js';
import type { RunStatus } from './status.js';

export class WorkerLoss implements Owner {
  /** Step at the end of the last call; a successful read has confirmed it. */
  #settled: number;
  readonly #reported = new Set<string>();
  #stateBefore: TrainerState = 'ready';
  #restored: SessionInfo | undefined;
  /** Step of the newest generation, as far as is known. */
  #saved = 0;
  /** Suggestions for a run that did not have enough memory. */
  #advice = '';

  constructor(
    private readonly status: RunStatus,
    private readonly loop: RunLoop,
    private readonly recovery: Recovery,
    private readonly release: () => void,
    info: SessionInfo,
  ) {
    this.#settled = info.completedSteps;
    this.#saved = info.completedSteps;
  }

  /** True if steps were made since the newest generation, as far as is known. */
  get unsaved(): boolean {
    return this.status.step !== this.#saved;
  }

  /** Reports warnings of the start, each only once. */
  warn(findings: readonly Finding[]): void {
    for (const warning of findings) {
      if (this.#reported.has(warning.message)) continue;
      this.#reported.add(warning.message);
      this.status.warn(warning);
    }
  }

  /** Notes that a call has ended, so that its steps are confirmed. */
  settle(): void {
    this.#settled = this.status.step;
  }

  /** Notes that a generation was loaded in place of the live state. */
  loaded(info: SessionInfo): void {
    this.status.loaded(info.completedSteps);
    this.settle();
    this.#saved = info.completedSteps;
    if (info.generation !== undefined) this.recovery.loaded(info.generation);
  }

  confirmed(error: TabtuneError): number {
    const { step } = this.status;
    if (error.detail.step !== undefined) return error.detail.step;
    // The loss of the last step was read before its update.
    return this.loop.running ? Math.max(this.#settled, step - 1) : step;
  }

  events(events: TrainerEvent[]): void {
    for (const event of events) {
      if (event.type === 'checkpoint') {
        this.#saved = event.step;
        this.recovery.saved();
      }
      this.status.receive(event);
    }
  }

  lost(error: TabtuneError): void {
    this.#stateBefore = this.status.state;
    this.status.warn({ code: error.detail.code ?? error.code, message: error.message });
    this.status.receive({ type: 'state', state: 'recovering', step: this.#saved });
  }

  async restore(connection: Connection, error: TabtuneError): Promise<void> {
    const info = await this.recovery.reopen(connection);
    const { completedSteps } = info;
    this.#restored = info;
    this.status.loaded(completedSteps);
    this.#settled = completedSteps;
    if (completedSteps !== this.#saved)
      this.status.receive({ type: 'state', state: 'recovering', step: completedSteps });
    this.#saved = completedSteps;
    this.warn(info.warnings);
    this.#advice = '';
    // After running out of memory the same steps would fail again.
    if (error.code === 'OUT_OF_MEMORY') this.#advice = proposals(info.config);
    else await this.recovery.repeat(connection, info, error.detail.step ?? completedSteps);
    this.#settled = this.status.step;
  }

  recovered(error: TabtuneError): void {
    const from = this.#restored?.completedSteps ?? 0;
    const { step } = this.status;
    this.status.warn(
      finding('run.recovered', { subject: step, expected: from, found: error.message }),
    );
    // A loop that continues reports this itself.
    if (this.#advice === '') {
      if (!this.loop.running) this.status.become(this.#stateBefore);
      return;
    }
    this.status.warn(finding('run.memory', { hint: this.#advice }));
    if (!this.loop.running) this.status.become('paused');
  }

  failed(error: TabtuneError): void {
    this.status.become('failed');
    this.status.end('failed', error);
    this.release();
  }
}
