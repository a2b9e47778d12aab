import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['**/dist/', '**/pkg/', '**/pkg-quick/', 'node_modules/', 'target/'] },
  {
    files: ['web/**/*.ts', 'examples/*.ts', 'examples/private-data/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      'max-lines': ['error', { max: 300 }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // `void promise` says that nobody waits, and `() => void` handlers are given one-line bodies.
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      // The DOM library declares what older browsers lack; we ask at run time.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // An async function without an await keeps its throws in the promise.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
    },
  },
  {
    // Types of scripts are checked by tsc (tsconfig.scripts.json).
    files: ['**/*.mjs'],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: {
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      eqeqeq: 'error',
    },
  },
  // What is made is read where it is made from.
  { files: ['web/src/protocol/generated/*.ts'], rules: { 'max-lines': 'off' } },
);
