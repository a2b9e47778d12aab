import { defineConfig } from 'vite';

// Before version 8 Vite bundles dependencies while it serves, and the worker is not found there.
export default defineConfig({ optimizeDeps: { exclude: ['tabtune'] } });
