// The declarations by which the worker calls the core match the built module: names, parameters, and which calls return a promise.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import ts from 'typescript';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';

/** Functions that wasm-bindgen adds, and that only tests of the module itself call. */
const OTHERS = /^(initSync|default|.*\.(free|\[Symbol\.dispose\]))$/;
/** Additional functions of the quick core, which replay recorded trajectories and reference cases, and crash. */
const OF_THE_QUICK_CORE = [
  'panicForTest',
  'replay',
  'Session.evaluateOn',
  'Session.gradientsOn',
  'Session.stepOn',
  'Session.trained',
];

/** Returns the functions and methods of a declaration file: parameters, and a flag if they return a promise. */
function callsOf(path) {
  const file = ts.createSourceFile(
    path,
    readFileSync(join(root, path), 'utf8'),
    ts.ScriptTarget.ES2022,
    true,
  );
  const calls = {};
  const add = (name, node) => {
    if (OTHERS.test(name)) return;
    const where = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)
      ? 'static '
      : '';
    calls[name] =
      `${where}(${node.parameters.length}) => ${node.type?.getText().startsWith('Promise') ? 'a promise' : 'a value'}`;
  };
  ts.forEachChild(file, (node) => {
    if (ts.isFunctionDeclaration(node))
      add(
        node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)
          ? 'default'
          : node.name?.text,
        node,
      );
    if (ts.isClassDeclaration(node))
      for (const member of node.members)
        if (ts.isMethodDeclaration(member))
          add(`${node.name?.text}.${member.name.getText()}`, member);
  });
  return calls;
}

test("the worker's declarations match the exports of the core", () => {
  const declared = callsOf('web/src/worker/wasm-api.d.ts');
  assert.ok(Object.keys(declared).length > 20);
  const additional = built.kind === 'quick' ? OF_THE_QUICK_CORE : [];
  const found = Object.entries(callsOf(join(built.core, 'tabtune.d.ts')));
  const names = found.map(([name]) => name);
  for (const name of additional) assert.ok(names.includes(name), name);
  assert.deepEqual(
    declared,
    Object.fromEntries(found.filter(([name]) => !additional.includes(name))),
  );
});
