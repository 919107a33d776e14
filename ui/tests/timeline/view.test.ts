import { describe, expect, test } from 'vitest';
import { around, atEnd, grown, moved, showing, whole, zoomed } from '../../src/timeline/view';

const limits = { t0: 0, t1: 1_000_000 };
const view = { t0: 400_000, t1: 600_000 };

test('the whole has a hundredth of room on each side, and is never empty', () => {
  expect(whole(0, 1000)).toEqual({ t0: -10, t1: 1010 });
  expect(whole(5, 5)).toEqual({ t0: -5, t1: 15 });
});

describe('zoomed', () => {
  test('what is at the pointer stays there', () => {
    expect(zoomed(view, 0.5, 450_000, limits)).toEqual({ t0: 425_000, t1: 525_000 });
    expect(zoomed(view, 2, 450_000, limits)).toEqual({ t0: 350_000, t1: 750_000 });
  });

  test('in and out again is where it began', () => {
    const there = zoomed(view, 0.1, 444_444, limits);
    const back = zoomed(there, 10, 444_444, limits);
    expect(back.t0).toBeCloseTo(view.t0, 3);
    expect(back.t1).toBeCloseTo(view.t1, 3);
  });

  test('it ends at 20 ns and at the whole', () => {
    const close = zoomed(view, 1e-9, 500_000, limits);
    expect(close.t1 - close.t0).toBeCloseTo(20, 6);
    const far = zoomed(view, 1e9, 500_000, limits);
    expect(far.t1 - far.t0).toBe(1_000_000);
  });
});

test('moving ends where half of the view is past the end', () => {
  expect(moved(view, 100, limits)).toEqual({ t0: 400_100, t1: 600_100 });
  expect(moved(view, 1e12, limits)).toEqual({ t0: 900_000, t1: 1_100_000 });
  expect(moved(view, -1e12, limits)).toEqual({ t0: -100_000, t1: 100_000 });
});

test('an event is in the middle, with room around it', () => {
  expect(around(500_000, 501_000, limits)).toEqual({ t0: 499_850, t1: 501_150 });
  const instant = around(500_000, 500_000, limits);
  expect([instant.t0, instant.t1]).toEqual([499_990, 500_010]);
});

describe('showing', () => {
  test('what is in sight moves nothing', () => {
    expect(showing(view, 450_000, 460_000, limits)).toBe(view);
  });

  test('what is out of sight comes to the middle at the same zoom', () => {
    expect(showing(view, 800_000, 810_000, limits)).toEqual({ t0: 705_000, t1: 905_000 });
  });

  test('what is too long for the view is shown whole', () => {
    const seen = showing(view, 100_000, 500_000, limits);
    expect(seen.t0).toBeLessThan(100_000);
    expect(seen.t1).toBeGreaterThan(500_000);
  });

  test('what is too short to see gets a twentieth of the view', () => {
    const seen = showing(view, 500_000, 500_050, limits);
    expect((500_050 - 500_000) / (seen.t1 - seen.t0)).toBeCloseTo(1 / 21, 6);
  });
});

describe('a run that grows', () => {
  const before = { begin_ns: 0, end_ns: 1000 };
  const after = { begin_ns: 0, end_ns: 3000 };

  test('the whole stays the whole', () => {
    expect(grown(whole(0, 1000), before, after, false)).toEqual(whole(0, 3000));
  });

  test('a view of the end moves on with it, if it follows', () => {
    expect(grown(atEnd({ t0: 0, t1: 100 }, 1000), before, after, true)).toEqual({
      t0: 2905,
      t1: 3005,
    });
    const still = { t0: 905, t1: 1005 };
    expect(grown(still, before, after, false)).toBe(still);
  });

  test('a view of the middle stays', () => {
    const middle = { t0: 400, t1: 500 };
    expect(grown(middle, before, after, true)).toBe(middle);
  });
});
