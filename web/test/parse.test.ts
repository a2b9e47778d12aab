import { describe, expect, it } from 'vitest';

import { count, listOf, optional, record, text, variant } from '../src/protocol/parse.js';
import { pageMessage, workerMessage } from '../src/protocol/messages.js';
import { REQUESTS } from '../src/protocol/protocol.js';

describe('parser', () => {
  it('record_names_the_path_of_what_is_wrong', () => {
    const parser = record({ a: listOf(record({ b: count })) });
    expect(() => parser({ a: [{ b: 1 }, { b: -1 }] }, 'x')).toThrow(
      'x.a[1].b: expected an integer >= 0, found number',
    );
    expect(() => parser(null, 'x')).toThrow('x: expected an object, found null');
  });
  it('record_drops_unknown_keys', () => {
    expect(record({ a: count })({ a: 1, __proto__x: 2 }, 'x')).toEqual({ a: 1 });
  });
  it('optional_lets_only_undefined_through', () => {
    const parser = optional(text);
    expect(parser(undefined, 'x')).toBeUndefined();
    expect(() => parser(null, 'x')).toThrow('found null');
  });
  it('variant_refuses_unknown_tags', () => {
    const parser = variant('type', { a: { n: count } });
    expect(parser({ type: 'a', n: 3 }, 'x')).toEqual({ type: 'a', n: 3 });
    expect(() => parser({ type: 'toString' }, 'x')).toThrow('x.type: expected one of a');
  });
});

describe('protocol', () => {
  it('tags_are_noun_verb', () => {
    for (const tag of Object.keys(REQUESTS)) expect(tag).toMatch(/^[a-z]+\.[a-z]+$/);
  });
  it('messages_of_the_wrong_form_are_refused', () => {
    expect(() => pageMessage({ type: 'request', id: '1', tag: 'a', ask: 1 }, 'm')).toThrow('m.id');
    expect(() =>
      workerMessage({ type: 'events', events: [{ type: 'step', step: 1 }] }, 'm'),
    ).toThrow('m.events[0].epoch');
  });
});
