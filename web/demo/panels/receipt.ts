/** The contents of an export's receipt: the written files with their checksums. */
import { escaped } from 'tabtune';
import type { Receipt } from 'tabtune';

import { make } from '../dom.js';
import { counted, grouped } from '../format.js';

export function receiptOf(receipt: Receipt | undefined): HTMLElement[] {
  if (!receipt) return [];
  const list = make('ul', '', 'facts findings');
  for (const { name, bytes, sha256 } of receipt.outputs) {
    const item = make('li', `${escaped(name)}, ${grouped(bytes)} bytes`);
    if (sha256 !== undefined) item.append(make('br'), make('code', escaped(sha256)));
    list.append(item);
  }
  const converted = receipt.conversions.length;
  const notes = [
    converted === 0 ? '' : `${counted(converted, 'tensor')} in another type. `,
    ...receipt.warnings.map(({ subject, code }) => `${escaped(subject)}: ${escaped(code)}. `),
  ].join('');
  return [
    make('h3', 'Receipt'),
    list,
    make('p', `${notes}To check the files later, call verifyFiles or run tabtune verify.`, 'facts'),
  ];
}
