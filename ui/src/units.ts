/** Numbers with units as text; the same words as strobe/units.py. No other place does this. */

const TIMES: readonly [string, number][] = [
  ['ns', 1],
  ['µs', 1e3],
  ['ms', 1e6],
];
const SECOND = 1e9;
const MINUTE = 60e9;
const HOUR = 3600e9;
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const COUNTS = ['', 'k', 'M', 'G', 'T', 'P'];

/** A unit gives way to the next where three digits would round up to a fourth. */
const ROUNDS_UP = 999.5;

/** What stands where a number is not known. */
export const UNKNOWN = '–';

type Number = number | null | undefined;

/** 12 ns, 1.23 ms, 45.6 s, 12.3 min. */
export function duration(ns: Number): string {
  if (ns == null) return UNKNOWN;
  const size = Math.abs(ns);
  for (const [unit, factor] of TIMES) {
    if (size / factor < ROUNDS_UP) return `${threeDigits(ns / factor, factor === 1)} ${unit}`;
  }
  // From two minutes and two hours on: "1.5 min" reads worse than "90 s".
  if (size < 2 * MINUTE) return `${threeDigits(ns / SECOND)} s`;
  const [unit, factor] = size < 2 * HOUR ? (['min', MINUTE] as const) : (['h', HOUR] as const);
  return `${threeDigits(ns / factor)} ${unit}`;
}

/** A difference, always with its sign: +1.2 ms, −3 µs, ±0. */
export function difference(ns: Number): string {
  if (ns == null) return UNKNOWN;
  if (ns === 0) return '±0';
  return (ns > 0 ? '+' : '−') + duration(Math.abs(ns));
}

/** A point in time, in seconds to the microsecond: 12.345678 s. */
export function moment(ns: Number): string {
  if (ns == null) return UNKNOWN;
  const [whole, rest] = (ns / SECOND).toFixed(6).split('.') as [string, string];
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${rest} s`;
}

/** 1.2 GiB. */
export function size(bytes: Number): string {
  if (bytes == null) return UNKNOWN;
  let value = bytes;
  for (const unit of BYTES) {
    if (Math.abs(value) < ROUNDS_UP || unit === 'PiB')
      return `${threeDigits(value, unit === 'B')} ${unit}`;
    value /= 1024;
  }
  return UNKNOWN;
}

/** 12,345 up to a million, then 1.23 M. */
export function count(number: Number): string {
  if (number == null) return UNKNOWN;
  if (Math.abs(number) >= 1e6) return rate(number);
  if (Number.isInteger(number)) return number.toLocaleString('en');
  return Math.abs(number) < 1000 ? threeDigits(number) : Math.round(number).toLocaleString('en');
}

/** 1.23 GFLOP/s: a decimal prefix before the unit. */
export function rate(number: Number, unit = ''): string {
  if (number == null) return UNKNOWN;
  let value = number;
  for (const prefix of COUNTS) {
    if (Math.abs(value) < ROUNDS_UP || prefix === 'P')
      return `${threeDigits(value)} ${prefix}${unit}`.trimEnd();
    value /= 1000;
  }
  return UNKNOWN;
}

/** 62%; below ten one digit more: 6.2%. */
export function percent(ratio: Number): string {
  if (ratio == null) return UNKNOWN;
  const value = ratio * 100;
  return `${value.toFixed(Math.abs(value) >= 9.95 || value === 0 ? 0 : 1)}%`;
}

/** 2.6×, as speedups are written. */
export function times(factor: Number): string {
  return factor == null ? UNKNOWN : `${factor.toFixed(factor < 9.95 ? 1 : 0)}×`;
}

/** 0.97×: one amount over another, where a few percent matter. */
export function ratio(factor: Number): string {
  return factor == null ? UNKNOWN : `${factor.toFixed(factor < 9.995 ? 2 : 0)}×`;
}

function threeDigits(value: number, whole = false): string {
  if (whole && Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 99.95 || value === 0) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}
