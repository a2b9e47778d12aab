import { join } from 'node:path';

export default {
  mode: 'production',
  entry: { main: './main.js', own: './own.js' },
  output: { path: join(import.meta.dirname, 'dist'), filename: '[name].js' },
};
