/** The step "Try": a conversation with the model of the open run. */
import { html, nothing, render } from 'lit-html';

import { byId } from '../dom.js';
import type { Subject, TryHost } from '../subject.js';
import { BaseView } from './base-view.js';
import { Chat } from './chat.js';
import { Desk } from './desk.js';
import { Learned } from './learned.js';

export class TryPanel {
  readonly #root = byId('try-panel', HTMLElement);
  #subject: Subject | undefined;
  #desk: Desk | undefined;
  #chat: Chat | undefined;
  #base: BaseView | undefined;
  #learned: Learned | undefined;
  #unwatch: () => void = () => undefined;
  #frame = 0;

  constructor(private readonly host: TryHost) {}

  use(subject: Subject | undefined): void {
    if (subject === this.#subject) return;
    this.#subject = subject;
    this.#desk?.close();
    this.#unwatch();
    this.#desk = undefined;
    if (subject) {
      const { trainer } = subject;
      const desk = new Desk(subject, this.host, () => this.#update());
      this.#desk = desk;
      this.#chat = new Chat(desk);
      this.#base = new BaseView(desk);
      this.#learned = new Learned(desk);
      let { state } = trainer;
      this.#unwatch = trainer.subscribe(() => {
        if (trainer.state === state) return;
        ({ state } = trainer);
        this.#update();
      });
    }
    this.#update();
  }

  /** Shows the present state, once in the next frame. */
  #update(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      render(this.#view(), this.#root);
    });
  }

  #view(): unknown {
    if (!this.#desk) return nothing;
    const { trainer, busy } = this.#desk;
    return html`${
      trainer.state === 'running' && !busy
        ? html`<div class="acts">
            <p class="facts">The run waits while the model answers, and continues after that.</p>
            <button type="button" @click=${this.host.pause}>Pause the run</button>
          </div>`
        : nothing
    }${this.#base?.view()}${this.#chat?.view()}${this.#learned?.view()}`;
  }
}
