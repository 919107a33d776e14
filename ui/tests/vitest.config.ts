import { defineConfig } from 'vitest/config';

// `npm test`: the logic of the pages, without a browser. What needs one is tested by tests/browser.
export default defineConfig({
  root: import.meta.dirname,
  test: { include: ['**/*.test.ts'], setupFiles: ['./setup.ts'], reporters: ['dot'] },
});
