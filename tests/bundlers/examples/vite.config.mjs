import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    rollupOptions: { input: ['index.html', 'react.html', 'svelte.html'] },
  },
});
