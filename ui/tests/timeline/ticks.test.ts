import { expect, test } from 'vitest';
import { ticks } from '../../src/timeline/ticks';

test('ticks are round moments with the digits that tell them apart', () => {
  expect(ticks({ t0: 0, t1: 1e9 }, 550)).toEqual([
    { moment: 0, text: '0.0 s' },
    { moment: 200e6, text: '0.2 s' },
    { moment: 400e6, text: '0.4 s' },
    { moment: 600e6, text: '0.6 s' },
    { moment: 800e6, text: '0.8 s' },
    { moment: 1e9, text: '1.0 s' },
  ]);
});

test('all ticks of a ruler have the unit of its largest number', () => {
  const texts = ticks({ t0: 999_000, t1: 1_001_000 }, 440).map((tick) => tick.text);
  expect(texts).toEqual(['0.9990 ms', '0.9995 ms', '1.0000 ms', '1.0005 ms', '1.0010 ms']);
});

test('a tick before the run has no minus zero', () => {
  const texts = ticks({ t0: -1e9, t1: 1e9 }, 220).map((tick) => tick.text);
  expect(texts).toEqual(['-1 s', '0 s', '1 s']);
});

test('ticks are never closer than asked for, at any zoom', () => {
  for (let span = 20; span < 1e13; span *= 3.7) {
    const found = ticks({ t0: 12_345, t1: 12_345 + span }, 1000, 110);
    const apart = found.slice(1).map((tick, at) => tick.moment - (found[at]?.moment ?? 0));
    for (const one of apart) expect((one / span) * 1000).toBeGreaterThanOrEqual(110 - 1e-6);
    expect(new Set(found.map((tick) => tick.text)).size).toBe(found.length);
  }
});

test('no width yet is not an endless loop', () => {
  expect(ticks({ t0: 0, t1: 1e9 }, 0).length).toBeLessThan(3);
});
