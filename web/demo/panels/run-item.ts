/** One saved run in the list, and its checkpoints below it. */
import { escaped } from 'tabtune';
import type { CheckpointInfo } from 'tabtune';

import { actionButton, make } from '../dom.js';
import { bytes, grouped, when } from '../format.js';
import { picks } from '../pick.js';

export interface RunActs {
  /** True if the run is open in this page. */
  live: boolean;
  /** `undefined` if runs cannot be resumed. */
  resume: ((info: CheckpointInfo, generation?: number) => void) | undefined;
  opened: (open: boolean) => void;
  download: (info?: CheckpointInfo) => void;
  keep: (info: CheckpointInfo) => void;
  fork: (info: CheckpointInfo) => void;
  folder: (info?: CheckpointInfo) => void;
  remove: (info: CheckpointInfo, all?: boolean) => void;
}

/** Returns the list item of a run; `infos` are its checkpoints, newest first. */
export function runItem(
  infos: readonly CheckpointInfo[],
  acts: RunActs,
  open: boolean,
): HTMLLIElement {
  const item = make('li');
  const newest = infos.find(({ fault }) => fault === undefined);
  const named = newest ?? infos[0];
  if (!named) return item;
  const label = escaped(named.label) || 'A run without a name';
  const facts = make('div');
  facts.append(
    make('strong', label),
    make(
      'div',
      newest ? factsOf(newest, acts.live) : 'None of its checkpoints can be read',
      'meta',
    ),
  );
  const row = make('div', '', 'acts');
  const { resume } = acts;
  if (newest) {
    if (resume && !acts.live)
      row.append(
        actionButton(newest.step < newest.totalSteps ? 'Resume' : 'Open', `Resume ${label}`, () =>
          resume(newest),
        ),
      );
    row.append(actionButton('Download', `Download ${label}`, () => acts.download()));
    if (picks('Directory'))
      row.append(actionButton('To a folder', `Write ${label} into a folder`, () => acts.folder()));
  }
  if (!acts.live)
    row.append(actionButton('Delete', `Delete ${label}`, () => acts.remove(named, true)));
  const all = make('details');
  all.open = open;
  all.addEventListener('toggle', () => acts.opened(all.open));
  all.append(
    make('summary', infos.length === 1 ? 'One checkpoint' : `${infos.length} checkpoints`),
    generations(infos, label, acts),
  );
  item.append(facts, row, all);
  return item;
}

function factsOf(
  { savedAt, step, totalSteps, loss, dataName }: CheckpointInfo,
  live: boolean,
): string {
  const words = [`step ${grouped(step)} of ${grouped(totalSteps)}`, when(savedAt)];
  if (loss !== undefined) words.push(`loss ${loss.toFixed(3)}`);
  if (dataName !== '') words.push(escaped(dataName));
  if (live) words.push('open in this page');
  return words.join(' · ');
}

function generations(
  infos: readonly CheckpointInfo[],
  label: string,
  acts: RunActs,
): HTMLUListElement {
  const list = make('ul');
  for (const info of infos)
    list.append(
      info.fault === undefined
        ? whole(info, `${label}, step ${grouped(info.step)}`, acts)
        : damaged(info, info.fault, label, acts),
    );
  return list;
}

function whole(info: CheckpointInfo, name: string, acts: RunActs): HTMLLIElement {
  const item = make('li');
  const words = [`Step ${grouped(info.step)}`, when(info.savedAt)];
  if (info.loss !== undefined) words.push(`loss ${info.loss.toFixed(3)}`);
  if (info.validationLoss !== undefined) words.push(`validation ${info.validationLoss.toFixed(3)}`);
  words.push(bytes(info.bytes));
  if (info.kept) words.push('kept');
  if (info.home === 'opfs') words.push('second copy');
  const row = make('div', '', 'acts');
  const { resume } = acts;
  if (resume)
    row.append(actionButton('Resume', `Resume ${name}`, () => resume(info, info.generation)));
  const keep = actionButton('Keep', `Keep ${name}`, () => acts.keep(info));
  keep.setAttribute('aria-pressed', String(info.kept));
  row.append(
    actionButton('Fork', `Fork ${name}`, () => acts.fork(info)),
    keep,
    actionButton('Download', `Download ${name}`, () => acts.download(info)),
    ...(picks('Directory')
      ? [actionButton('To a folder', `Write ${name} into a folder`, () => acts.folder(info))]
      : []),
    actionButton('Delete', `Delete ${name}`, () => acts.remove(info)),
  );
  item.append(make('span', words.join(' · '), 'meta'), row);
  return item;
}

/** Returns the list item of a checkpoint that cannot be read, with the reason; it remains until the user deletes it. */
function damaged(info: CheckpointInfo, fault: string, label: string, acts: RunActs): HTMLLIElement {
  const item = make('li');
  const row = make('div', '', 'acts');
  row.append(
    actionButton(
      'Delete',
      `Delete the damaged checkpoint ${grouped(info.generation)} of ${label}`,
      () => acts.remove(info),
    ),
  );
  item.append(
    make(
      'span',
      `This checkpoint is damaged · ${when(info.savedAt)} · ${escaped(fault)}`,
      'meta fault',
    ),
    row,
  );
  return item;
}
