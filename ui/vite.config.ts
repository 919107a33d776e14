import { defineConfig } from 'vite';
import { builtFrom } from './freshness.ts';
import { licences } from './licences.ts';

// `npm run dev` shows pages as they are edited, with the data of a server: STROBE_SERVER=http://127.0.0.1:8080
const server = process.env.STROBE_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  // Relative addresses, so that the pages also work behind a proxy that adds a prefix.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [licences('THIRD_PARTY_WEB.txt'), builtFrom('built_from.txt')],
  build: {
    outDir: '../src/strobe/web/static',
    emptyOutDir: true,
    target: 'es2022',
    // Pictures stay files: the pages' Content-Security-Policy has no room for data: addresses.
    assetsInlineLimit: 0,
  },
  server: { proxy: { '/api': { target: server, changeOrigin: true } } },
});
