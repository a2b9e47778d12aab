/** A conversation with the model of a run, through its own chat template; a model without one continues texts. */
import { escaped } from 'tabtune';
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { counted } from '../format.js';
import { begun } from '../words.js';
import { answered, baseAnswered, emptyAnswer, ENDS } from './answers.js';
import type { Answer, Prompt } from './answers.js';
import { LIKELIEST } from './continued.js';
import type { Choice } from './continued.js';
import type { Desk } from './desk.js';
import { faultLine } from './fault-line.js';

/** One message of the person, and the answers to it. */
interface Turn {
  said: string;
  answer: Answer;
  base?: Answer;
}

/** Minimum time between two answers that are read out. */
const SPOKEN_EVERY_MILLIS = 10_000;

export class Chat {
  #turns: Turn[] = [];
  #fault: unknown;
  #seed = 1;
  /** True if the base answers too. */
  #paired = false;
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
      ${this.#pairing()}
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
        ${faultLine('talk-fault', this.#fault)}
        <div class="choice-of">
          <label
            >Temperature<input
              id="talk-temperature"
              name="temperature"
              type="number"
              min="0"
              step="0.1"
              value="0.7"
          /></label>
          <label
            >Tokens at most<input
              id="talk-length"
              name="length"
              type="number"
              min="1"
              step="1"
              value="200"
          /></label>
          <label
            >Seed of the next answer<input
              id="talk-seed"
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

  /** The switch for a second column, where the base can answer. */
  #pairing(): TemplateResult | typeof nothing {
    const { base } = this.desk;
    if (!base.isReady) return nothing;
    return html`<label class="choice"
        ><input
          type="checkbox"
          id="talk-pair"
          .checked=${this.#paired}
          @change=${({ currentTarget }: Event) => {
            this.#paired = (currentTarget as HTMLInputElement).checked;
            this.desk.changed();
          }}
        />
        Base and tuned side by side</label
      >
      ${
        this.#paired && !this.#talks
          ? html`<p class="facts">
              Side by side, both choose each token among the ${LIKELIEST} likeliest. The base
              computes the whole text again for each token.
            </p>`
          : nothing
      }`;
  }

  #turn({ said, answer, base }: Turn): TemplateResult {
    const view = (each: Answer, name: string): TemplateResult =>
      answerView(
        each,
        html`<b>${name}</b>${this.#talks ? nothing : html`<mark>${said}</mark>`}`,
        this.desk.busy && each.end === undefined && this.#turns.at(-1)?.answer === answer,
      );
    return html`<li>
      ${this.#talks ? html`<p class="said"><b>You</b>${said}</p>` : nothing}
      ${
        base
          ? html`<div class="pair-of">${view(base, 'Base')}${view(answer, 'Tuned')}</div>`
          : view(answer, 'Model')
      }
    </li>`;
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
    const system = word('system');
    const turn: Turn = { said, answer: emptyAnswer(choice) };
    if (this.#paired) turn.base = emptyAnswer(choice);
    const before = this.#turns;
    this.#turns = [...this.#turns, turn];
    const field = form.querySelector<HTMLTextAreaElement>('#talk-text');
    if (field) field.value = '';
    this.#seed = choice.seed;
    const fault = await this.desk.ask(async (signal) => {
      const how = { signal, grown: this.desk.changed };
      if (turn.base)
        await baseAnswered(
          this.desk,
          this.#prompt(before, system, turn, 'base'),
          choice,
          turn.base,
          how,
        );
      const prompt = this.#prompt(before, system, turn, 'answer');
      await answered(this.desk, prompt, choice, turn.answer, { ...how, paired: this.#paired });
    });
    this.#fault = fault;
    if ([turn.answer, turn.base].every((each) => !each || (each.tokens === 0 && !each.end))) {
      // Nothing was answered: the text can be sent again.
      this.#turns = this.#turns.filter((each) => each !== turn);
      if (field?.value === '') field.value = said;
    } else {
      this.#seed = choice.seed + 1;
      this.#speak(turn);
    }
    this.desk.changed();
  }

  /** Returns the text to continue, or the conversation: each side has its own earlier answers in it. */
  #prompt(
    before: readonly Turn[],
    system: string,
    { said }: Turn,
    side: 'answer' | 'base',
  ): Prompt {
    if (!this.#talks) return said;
    return [
      ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
      ...before.flatMap((turn) => [
        { role: 'user', content: turn.said },
        { role: 'assistant', content: (turn[side] ?? turn.answer).text },
      ]),
      { role: 'user', content: said },
    ];
  }

  /** Lets screen readers read out the answers, unless those before are still read. */
  #speak({ answer, base }: Turn): void {
    if (performance.now() < this.#lastSpoken + SPOKEN_EVERY_MILLIS) return;
    this.#lastSpoken = performance.now();
    this.#spoken = base ? `Base: ${base.text} Tuned: ${answer.text}` : answer.text;
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
