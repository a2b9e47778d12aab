/** Public names as an editor shows them: each has a description, and none has a type that says nothing. */
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';

const source = join(import.meta.dirname, '../src');
const ENTRIES = ['index', 'files', 'schema', 'testing'].map((name) => join(source, `${name}.ts`));

/** Returns the program of the entries, with the options of the repository. */
function compiled(): ts.Program {
  const root = join(import.meta.dirname, '../..');
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) =>
    ts.sys.readFile(path),
  ) as { config: { include?: string[] } };
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, include: ['web/src'] },
    ts.sys,
    root,
  );
  return ts.createProgram(ENTRIES, { ...options, incremental: false });
}

/** Describes the declarations below a public name that are ours: their description and the text of their types. */
function faultsOf(program: ts.Program): string[] {
  const checker = program.getTypeChecker();
  const faults = new Set<string>();
  const seen = new Set<ts.Symbol>();

  const isOurs = (node: ts.Node): boolean => node.getSourceFile().fileName.startsWith(source);
  const isHidden = (node: ts.Node): boolean =>
    ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal') ||
    (ts.canHaveModifiers(node) &&
      (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword));

  /** Looks for keywords that say nothing about a value in a declaration's own text, without bodies. */
  const look = (node: ts.Node, name: string): void => {
    const empty =
      node.kind === ts.SyntaxKind.AnyKeyword || node.kind === ts.SyntaxKind.UnknownKeyword;
    if (empty) faults.add(`${name}: ${node.getText()}`);
    if (ts.isTypeReferenceNode(node) || ts.isExpressionWithTypeArguments(node)) {
      const place = ts.isTypeReferenceNode(node) ? node.typeName : node.expression;
      const symbol = checker.getSymbolAtLocation(place);
      if (symbol) visit(symbol, place.getText());
    }
    if (ts.isBlock(node) || isHidden(node)) return;
    ts.forEachChild(node, (child) => look(child, name));
  };

  const visit = (given: ts.Symbol, name: string): void => {
    const symbol = given.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(given) : given;
    if (seen.has(symbol)) return;
    seen.add(symbol);
    const declarations = (symbol.declarations ?? []).filter(isOurs).filter((one) => !isHidden(one));
    if (declarations.length === 0 || symbol.flags & ts.SymbolFlags.TypeParameter) return;
    if (symbol.getDocumentationComment(checker).length === 0) faults.add(`${name}: no description`);
    for (const declaration of declarations) {
      const isWhole = ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration);
      if (!isWhole) look(declaration, name);
      if (!isWhole) continue;
      for (const clause of declaration.heritageClauses ?? []) look(clause, name);
      for (const member of declaration.members) {
        const own = member.name && checker.getSymbolAtLocation(member.name);
        if (own && !ts.isPrivateIdentifier(member.name) && !own.name.startsWith('__@'))
          visit(own, `${name}.${own.name}`);
      }
    }
  };

  for (const entry of ENTRIES) {
    const file = program.getSourceFile(entry);
    const module = file && checker.getSymbolAtLocation(file);
    for (const symbol of module ? checker.getExportsOfModule(module) : [])
      visit(symbol, symbol.name);
  }
  return [...faults].sort();
}

it('every public name has a description, and no type that says nothing', () => {
  expect(faultsOf(compiled())).toEqual([]);
}, 60_000);
