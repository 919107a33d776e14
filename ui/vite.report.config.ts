import { resolve } from 'node:path';
import { defineConfig } from 'vite';

// The pages as one script and one style, which `strobe export --format html` puts into a file with a run's data.
export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  resolve: {
    // The pages of a file, in place of those of the server.
    alias: [
      { find: /^\.\/pages$/, replacement: resolve(import.meta.dirname, 'src/report/pages.ts') },
    ],
  },
  publicDir: false,
  build: {
    outDir: '../src/strobe/web/static/report',
    emptyOutDir: true,
    target: 'es2022',
    cssCodeSplit: false,
    modulePreload: false,
    lib: {
      entry: 'src/report/main.tsx',
      formats: ['iife'],
      name: 'strobeReport',
      fileName: () => 'report.js',
      cssFileName: 'report',
    },
  },
  define: { 'process.env.NODE_ENV': '"production"' },
});
