/** A conversation with the model of a run, through its own chat template; a model without one continues texts. */
import { escaped } from 'tabtune';
import type { ChatMessage } from 'tabtune';
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { counted } from '../format.js';
import { begun, faultOf } from '../words.js';
import { answered, emptyAnswer, ENDS } from './answers.js';
import type { Answer, Choice, Prompt } from './answers.js';
import type { Desk } from './desk.js';

/** One message of the person, and the answer to it. */
interface Turn {
  said: string;
  answer: Answer;
}

/** Minimum time between two answers that are read out. */
const SPOKEN_EVERY_MILLIS = 10_000;

export class Chat {
  #turns: Turn[] = [];
  #fault: unknown;
  #seed = 1;
  /** The answer that screen readers read out, and when the last one was. */
  #spoken = '';
  #lastSpoken = -Infinity;
  readonly #talks: boolean;

  constructor(private readonly desk: Desk) {
    this.#talks = desk.subject.info.model.tokenizer?.hasChatTemplate === true;
  }

  view(): TemplateResult {
    const { busy } = this.desk;
    const talks = this.#talks;
    return html`<section class="talk" aria-labelledby="talk-title">
      <h3 id="talk-title">${talks ? 'Chat' : 'Continue a text'}</h3>
      <p class="facts">
        ${
          talks
            ? 'The model answers through its own chat template.'
            : 'This model has no chat template, so it does not answer: it continues your text.'
        }
        Enter sends; Shift and Enter begin a new line.
      </p>
      ${
        this.#turns.length === 0
          ? nothing
          : html`<ol class="turns" aria-label=${talks ? 'Conversation' : 'Continued texts'}>
              ${this.#turns.map((turn) => this.#turn(turn))}
            </ol>`
      }
      <p class="unseen" role="status">${this.#spoken}</p>
      <form
        id="talk-form"
        novalidate
        @submit=${(event: SubmitEvent) => {
          event.preventDefault();
          void this.#send(event.currentTarget as HTMLFormElement);
        }}
      >
        ${
          talks
            ? html`<details class="table">
                <summary>System text</summary>
                <label for="talk-system">Said to the model before the conversation</label>
                <textarea id="talk-system" name="system" rows="2"></textarea>
              </details>`
            : nothing
        }
        <label for="talk-text">${talks ? 'Message' : 'Text to continue'}</label>
        <textarea
          id="talk-text"
          name="text"
          rows="3"
          aria-describedby="talk-fault"
          @keydown=${sendOnEnter}
        ></textarea>
        <p class="fault" id="talk-fault" role="alert">
          ${this.#fault === undefined ? '' : faultOf(this.#fault)}
        </p>
        <div class="choice-of">
          <label
            >Temperature<input name="temperature" type="number" min="0" step="0.1" value="0.7"
          /></label>
          <label
            >Tokens at most<input name="length" type="number" min="1" step="1" value="200"
          /></label>
          <label
            >Seed of the next answer<input
              name="seed"
              type="number"
              min="0"
              step="1"
              .value=${String(this.#seed)}
          /></label>
        </div>
        <div class="acts">
          <button class="primary" id="talk-send" ?disabled=${busy}>
            ${talks ? 'Send' : 'Continue'}
          </button>
          <button type="button" id="talk-stop" ?hidden=${!busy} @click=${() => this.desk.stop()}>
            Stop
          </button>
          <button
            type="button"
            id="talk-new"
            ?hidden=${this.#turns.length === 0}
            ?disabled=${busy}
            @click=${() => this.#clear()}
          >
            ${talks ? 'New conversation' : 'Clear'}
          </button>
        </div>
      </form>
    </section>`;
  }

  #turn({ said, answer }: Turn): TemplateResult {
    return this.#talks
      ? html`<li>
          <p class="said"><b>You</b>${said}</p>
          ${answerView(answer, html`<b>Model</b>`, this.#isLive(answer))}
        </li>`
      : html`<li>${answerView(answer, html`<mark>${said}</mark>`, this.#isLive(answer))}</li>`;
  }

  #isLive(answer: Answer): boolean {
    return this.desk.busy && answer.end === undefined && answer === this.#turns.at(-1)?.answer;
  }

  #clear(): void {
    this.#turns = [];
    this.#fault = undefined;
    this.desk.changed();
    document.getElementById('talk-text')?.focus();
  }

  async #send(form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form);
    const word = (name: string): string => {
      const value = fields.get(name);
      return typeof value === 'string' ? value : '';
    };
    const number = (name: string): number => Number.parseFloat(word(name));
    const said = word('text');
    if (this.desk.busy || said.trim() === '') return;
    const choice: Choice = {
      temperature: number('temperature'),
      maxTokens: number('length'),
      seed: number('seed'),
    };
    const prompt = this.#talks ? this.#messages(word('system'), said) : said;
    const turn: Turn = { said, answer: emptyAnswer(choice) };
    this.#turns = [...this.#turns, turn];
    const field = form.querySelector<HTMLTextAreaElement>('#talk-text');
    if (field) field.value = '';
    this.#seed = choice.seed;
    const fault = await this.desk.ask((signal) => this.#answer(turn, prompt, choice, signal));
    this.#fault = fault;
    if (turn.answer.tokens === 0 && turn.answer.end === undefined) {
      // Nothing was answered: the text can be sent again.
      this.#turns = this.#turns.filter((each) => each !== turn);
      if (field?.value === '') field.value = said;
    } else {
      this.#seed = choice.seed + 1;
      this.#speak(turn.answer.text);
    }
    this.desk.changed();
  }

  #messages(system: string, said: string): ChatMessage[] {
    return [
      ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
      ...this.#turns.flatMap((turn) => [
        { role: 'user', content: turn.said },
        { role: 'assistant', content: turn.answer.text },
      ]),
      { role: 'user', content: said },
    ];
  }

  #answer(turn: Turn, prompt: Prompt, choice: Choice, signal: AbortSignal): Promise<void> {
    const grown = this.desk.changed;
    return answered(this.desk.trainer, prompt, choice, turn.answer, { signal, grown });
  }

  /** Lets screen readers read out a whole answer, unless the one before it is still read. */
  #speak(text: string): void {
    if (performance.now() < this.#lastSpoken + SPOKEN_EVERY_MILLIS) return;
    this.#lastSpoken = performance.now();
    this.#spoken = text;
  }
}

/** Sends the form on Enter, except within a composition, and begins a new line with Shift. */
function sendOnEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
}

/** Shows an answer after its `head`, with its seed, its length, the reason for its end, and its warnings; a `live` one is still written. */
function answerView(answer: Answer, head: TemplateResult, live: boolean): TemplateResult {
  const { text, tokens, seed, end, warnings } = answer;
  const ended = live ? 'being written …' : end === undefined ? 'not finished' : ENDS[end];
  const facts = [`Seed ${seed}`, counted(tokens, 'token'), ended];
  return html`<div class="answer">
    <p class="written">${head}${text}</p>
    <p class="meta">${facts.join(' · ')}</p>
    ${warnings.map(
      ({ code, message }) =>
        html`<p class="meta">${begun(escaped(message))} · ${escaped(code)}</p>`,
    )}
  </div>`;
}
