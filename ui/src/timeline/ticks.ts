/** Where to put the lines of a ruler, and what to write at them. */

import type { View } from './types';

export interface Tick {
  readonly moment: number;
  readonly text: string;
}

const STEPS = [1, 2, 5];
const UNITS: readonly [string, number][] = [
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
  ['ns', 1],
];
/** A nanosecond of a second. */
const MOST_DIGITS = 9;

/** Round moments, about `apart` pixels from each other. */
export function ticks(view: View, width: number, apart = 110): Tick[] {
  const least = ((view.t1 - view.t0) * apart) / Math.max(1, width);
  const step = roundUp(Math.max(1, least));
  // One unit for the whole ruler, that of its largest number, with the digits that tell ticks apart.
  const [unit, factor] = UNITS.find(([, size]) => Math.abs(view.t1) >= size) ?? ['ns', 1];
  const digits = Math.min(MOST_DIGITS, Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  const found: Tick[] = [];
  for (let number = Math.ceil(view.t0 / step); number * step <= view.t1; number++) {
    const moment = number * step;
    found.push({
      moment,
      text: `${(moment / factor + 0).toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`,
    });
  }
  return found;
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return (STEPS.find((step) => step * power >= value) ?? 10) * power;
}
