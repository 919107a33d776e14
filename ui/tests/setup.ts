/** The parts of a browser that modules of the pages use when they are imported. */

import { beforeEach } from 'vitest';

const address = new URL('http://strobe.test/');

/** Like the browser's: setting the hash leaves the rest of the address alone. */
class Location {
  get hash(): string {
    return address.hash;
  }

  set hash(text: string) {
    address.hash = text;
    dispatchEvent(new Event('hashchange'));
  }

  get search(): string {
    return address.search;
  }
}

/** Each change of the address that can be gone back from, and the last one that replaced it. */
class History {
  pushed: string[] = [];

  pushState(_data: unknown, _title: string, to: string): void {
    this.pushed.push(to);
    address.hash = to;
  }

  replaceState(_data: unknown, _title: string, to: string): void {
    address.hash = to;
  }
}

const page = new EventTarget();
const stored = new Map<string, string>();

Object.assign(globalThis, {
  location: new Location(),
  history: new History(),
  addEventListener: page.addEventListener.bind(page),
  removeEventListener: page.removeEventListener.bind(page),
  dispatchEvent: page.dispatchEvent.bind(page),
  document: { documentElement: { lang: '', dataset: {} }, hidden: false },
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  // Nothing is drawn on it here.
  OffscreenCanvas: class {},
  localStorage: {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
  },
});
// Node has one, in the language of the machine.
Object.defineProperty(globalThis, 'navigator', { value: { language: 'en' }, configurable: true });

beforeEach(() => {
  stored.clear();
  location.hash = '';
  (history as unknown as History).pushed = [];
});
