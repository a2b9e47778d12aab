/** The inspector: reports what dropped or chosen files are, their faults, how they can be trained, and the formats they can be converted to. */
import { escaped, inspectFiles } from 'tabtune';
import type { FileReport, InspectReport } from 'tabtune';

import { byId, make } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import { bytes, counted, grouped } from '../format.js';
import { ruleName } from '../optimizers.js';
import { begun, showFault } from '../words.js';
import { workerUrl } from '../worker.js';
import { choiceFacts, choiceName } from './export-as.js';

const KINDS: Readonly<Record<InspectReport['kind'], string>> = {
  model: 'A model',
  adapter: 'A LoRA adapter',
  optimizer: 'The state of an optimizer',
  state: 'Tensors, without the files of a model',
  checkpoint: 'A checkpoint of a run',
  unknown: 'Files of an unknown kind',
};
/** Number of rows shown of long lists. */
const ROWS = 200;
const NAME = 64;

/** Returns text from a file: shortened and escaped. */
const cut = (text: string): string =>
  escaped(text.length > NAME ? `${text.slice(0, NAME - 1)}…` : text);

function fileLine({
  file,
  format,
  ok,
  code,
  message,
  tensors,
  warnings,
}: FileReport): HTMLLIElement {
  const state = warnings.length === 0 ? 'valid' : 'readable';
  const facts = ok
    ? tensors === 0
      ? state
      : `${counted(tensors, 'tensor')}, ${state}`
    : escaped(message ?? code ?? 'refused');
  const item = make('li', '', ok ? '' : 'fault');
  item.append(
    make('strong', cut(file)),
    ` ${format === undefined ? '' : `(${escaped(format)}) `}${facts}`,
  );
  return item;
}

/** Returns a list under a heading, or nothing if the list is empty. */
function section(title: string, items: readonly HTMLElement[]): HTMLElement[] {
  if (items.length === 0) return [];
  const list = make('ul', '', 'findings');
  list.append(...items.slice(0, ROWS));
  if (items.length > ROWS) list.append(make('li', `and ${grouped(items.length - ROWS)} more`));
  return [make('h3', title), list];
}

/** Returns a finding: its code, and its meaning here. */
function finding(code: string, words: string, fault = false): HTMLLIElement {
  const item = make('li', '', fault ? 'fault' : '');
  item.append(`${words} `, make('small', `[${escaped(code)}]`));
  return item;
}

function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): HTMLElement {
  const made = make('table', '', 'named');
  const row = (kind: 'th' | 'td', cells: readonly string[]): HTMLTableRowElement => {
    const line = make('tr');
    line.append(...cells.map((text) => make(kind, text)));
    return line;
  };
  const [head, body] = [make('thead'), make('tbody')];
  head.append(row('th', heads));
  for (const cell of head.querySelectorAll('th')) cell.scope = 'col';
  body.append(...rows.slice(0, ROWS).map((cells) => row('td', cells)));
  made.append(make('caption', caption, 'unseen'), head, body);
  const box = make('div', '', 'scroll');
  box.append(made);
  return box;
}

function training({ ok, reason, options }: InspectReport['trainable']): HTMLElement[] {
  const title = make('h3', 'Training');
  if (!ok)
    return [
      title,
      make('p', `It cannot be trained here: ${escaped(reason ?? 'it is not a model')}.`, 'facts'),
    ];
  return [
    title,
    table(
      'GPU memory of a step',
      ['Update rule', 'Weights', 'GPU memory of a step'],
      options.map(({ optimizer, precision, bytes: need }) => [
        escaped(ruleName(optimizer)),
        escaped(precision),
        bytes(need),
      ]),
    ),
  ];
}

function tensorList({ tensors }: InspectReport): HTMLElement[] {
  if (tensors.length === 0) return [];
  const box = make('details', '', 'table');
  const more = tensors.length > ROWS ? `, the first ${ROWS}` : '';
  box.append(
    make('summary', `${counted(tensors.length, 'tensor')}${more}`),
    table(
      'Tensors',
      ['Name', 'Type', 'Shape'],
      tensors.map(({ name, dtype, shape }) => [
        cut(name),
        escaped(dtype),
        shape.join(' × ') || 'scalar',
      ]),
    ),
  );
  return [box];
}

export class Inspector {
  #running: AbortController | undefined;
  readonly #report = byId('inspect-report', HTMLElement);
  readonly #fault = byId('inspect-fault', HTMLElement);

  constructor() {
    const take: Take = (files, left) => void this.#inspect(files, left);
    onChoice(byId('inspect-files', HTMLInputElement), take);
    onDrop(byId('drop-inspect', HTMLElement), take, (thrown) => showFault(this.#fault, thrown));
  }

  async #inspect(files: File[], left: string): Promise<void> {
    byId('inspect-left', HTMLElement).textContent = left;
    if (files.length === 0) return;
    this.#running?.abort();
    const controller = new AbortController();
    this.#running = controller;
    this.#fault.hidden = true;
    this.#report.replaceChildren(make('p', 'Reading the headers …', 'facts'));
    try {
      this.#show(await inspectFiles(files, { workerUrl, signal: controller.signal }));
    } catch (thrown) {
      if (controller.signal.aborted) return;
      this.#report.replaceChildren();
      showFault(this.#fault, thrown);
    }
  }

  #show(report: InspectReport): void {
    const { kind, files, refusals, warnings, exports, tokenizer } = report;
    const words =
      tokenizer === undefined ? '' : `, tokenizer: ${escaped(tokenizer.kind).replaceAll('_', ' ')}`;
    this.#report.replaceChildren(
      make('p', `${KINDS[kind]}${words}.`, 'verdict'),
      ...section(
        'Refused',
        refusals.map(({ code, message = code }) => finding(code, begun(escaped(message)), true)),
      ),
      ...section(
        'Findings',
        warnings.map(({ code, message }) => finding(code, begun(escaped(message)))),
      ),
      ...section('Files', files.map(fileLine)),
      ...(kind === 'model' || kind === 'checkpoint' ? training(report.trainable) : []),
      ...section(
        'It can be exported as',
        exports.map((choice) =>
          make('li', `${choiceName(choice)}: ${choiceFacts(choice)}`, choice.ok ? '' : 'off'),
        ),
      ),
      ...tensorList(report),
    );
  }
}
