/** The part of Go's text/template that the demo writes for Ollama, and Ollama's variables of a conversation. */
import type { Said } from '../demo/chat-turns.js';

type Scope = Record<string, unknown>;
type Node = string | { code: string; body: Node[]; otherwise: Node[] };

/** Parses up to an `end` or `else`, and returns what ended it. */
function parse(pieces: string[]): { nodes: Node[]; ended: string } {
  const nodes: Node[] = [];
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    const code = /^\{\{ (.*) \}\}$/s.exec(piece)?.[1];
    if (code === undefined) nodes.push(piece);
    else if (code === 'end' || code.startsWith('else')) return { nodes, ended: code };
    else if (/^(if|range) /.test(code)) nodes.push(block(code, pieces));
    else nodes.push({ code, body: [], otherwise: [] });
  }
  return { nodes, ended: '' };
}
function block(code: string, pieces: string[]): Node {
  const { nodes: body, ended } = parse(pieces);
  if (ended === 'end') return { code, body, otherwise: [] };
  if (ended === 'else') return { code, body, otherwise: parse(pieces).nodes };
  if (!ended.startsWith('else ')) throw new Error(`${code} has no end`);
  return { code, body, otherwise: [block(ended.slice(5), pieces)] };
}

const truth = (value: unknown): boolean => Boolean(Array.isArray(value) ? value.length : value);

/** Splits a call into its words; parentheses and quotes hold one together. */
function wordsOf(code: string): string[] {
  const words = [''];
  let depth = 0;
  for (const piece of code.match(/"[^"]*"|[()\s]|[^()\s"]+/g) ?? []) {
    if (piece === '(') depth += 1;
    if (piece === ')') depth -= 1;
    if (depth === 0 && /^\s/.test(piece)) words.push('');
    else words.push(`${words.pop() ?? ''}${piece}`);
  }
  return words.filter(Boolean);
}

/** Evaluates a call or a value. */
function valueOf(code: string, dot: Scope, names: Map<string, unknown>): unknown {
  const one = (word: string): unknown => {
    if (word.startsWith('(')) return valueOf(word.slice(1, -1), dot, names);
    if (word.startsWith('"')) return JSON.parse(word);
    if (/^\d/.test(word)) return Number(word);
    if (word.startsWith('.')) return dot[word.slice(1)];
    const [name = '', key] = word.split('.');
    if (!names.has(name)) throw new Error(`${word} is not defined`);
    const value = names.get(name);
    return key === undefined ? value : Reflect.get(Object(value), key);
  };
  const [head = '', ...rest] = wordsOf(code);
  if (rest.length === 0) return one(head);
  const given = rest.map(one);
  const [first, second] = given;
  switch (head) {
    case 'eq':
      return first === second;
    case 'and':
      return given.find((value) => !truth(value)) ?? given.at(-1);
    case 'len':
      return (first as unknown[]).length;
    case 'slice':
      return (first as unknown[]).slice(Number(second));
    default:
      throw new Error(`${head} is not a function of the template`);
  }
}

function render(nodes: Node[], dot: Scope, names: Map<string, unknown>): string {
  return nodes
    .map((node) => {
      if (typeof node === 'string') return node;
      const { code, body, otherwise } = node;
      const range = /^range (\$\w+), \$_ := (.*)$/.exec(code);
      if (range) {
        const [, index = '', list = ''] = range;
        return (valueOf(list, dot, names) as Scope[])
          .map((item, at) => render(body, item, names.set(index, at)))
          .join('');
      }
      if (code.startsWith('if '))
        return render(truth(valueOf(code.slice(3), dot, names)) ? body : otherwise, dot, names);
      const set = /^(\$\w+) :?= (.*)$/.exec(code);
      if (!set) return String(valueOf(code, dot, names));
      names.set(set[1] ?? '', valueOf(set[2] ?? '', dot, names));
      return '';
    })
    .join('');
}

/** Renders a template as Ollama does: all system messages are `.System` too. */
export function renderGo(template: string, said: readonly Said[]): string {
  const system = said.filter(({ role }) => role === 'system').map(({ content }) => content);
  const root = {
    System: system.join('\n\n'),
    Messages: said.map(({ role, content }) => ({ Role: role, Content: content })),
  };
  const { nodes, ended } = parse(template.split(/(\{\{.*?\}\})/s).filter(Boolean));
  if (ended !== '') throw new Error(`an ${ended} without a beginning`);
  return render(nodes, root, new Map<string, unknown>([['$', root]]));
}
