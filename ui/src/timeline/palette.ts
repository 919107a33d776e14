/** The colours of events, as the numbers in tiles name them: light and dark paint for the same thing. */

import { theme, token } from '../theme';
import type { Meta } from './types';

export interface Palette {
  /** For pixels of an image, opaque: alpha, blue, green, red from the highest byte. */
  readonly pixels: Uint32Array;
  /** The same, a little darker or lighter: where an event begins. */
  readonly edges: Uint32Array;
  /** Text that can be read on it. */
  readonly texts: readonly string[];
  readonly css: readonly string[];
}

const SLOTS = 256;

/** Things that mean the same in every run. Phases have the colours that the other pages give them. */
const FIXED: Readonly<Record<string, `--${string}`>> = {
  'phase:gap': '--part-gap',
  'phase:forward': '--part-forward',
  'phase:backward': '--part-backward',
  'phase:all_reduce': '--part-all_reduce',
  'phase:update': '--part-update',
  'phase:rest': '--part-rest',
  'phase:recorder': '--part-recorder',
  collective: '--part-all_reduce',
  memcpy: '--kind-2',
  memset: '--kind-7',
  runtime: '--kind-8',
  sync: '--kind-6',
  data: '--part-gap',
  gc: '--bad',
  mark: '--text-dim',
  step: '--line-strong',
};

export function palette(meta: Meta): Palette {
  const isDark = theme.value === 'dark';
  const colours: [number, number, number][] = [];
  for (let slot = 0; slot < SLOTS; slot++) colours.push(colourOf(slot, meta, isDark));
  return {
    pixels: Uint32Array.from(colours, pixel),
    edges: Uint32Array.from(colours, (colour) => pixel(shaded(colour, isDark ? 0.72 : 0.8))),
    texts: colours.map((colour) => (luminance(colour) > 0.3 ? '#10151b' : '#ffffff')),
    css: colours.map(([red, green, blue]) => `rgb(${red} ${green} ${blue})`),
  };
}

function colourOf(slot: number, meta: Meta, isDark: boolean): [number, number, number] {
  const { by_name: byName, fixed } = meta.colours;
  if (slot >= byName) {
    const name = FIXED[fixed[slot - byName] ?? ''] ?? '--text-dim';
    return parsed(token(name));
  }
  // One lightness for all, so that no operator shouts; neighbours in hue differ in strength.
  const hue = (slot * 360) / byName;
  const strength = slot % 2 === 0 ? 0.1 : 0.065;
  return fromOklch(isDark ? 0.62 : 0.76, strength, hue);
}

/** Oklch to sRGB: https://bottosson.github.io/posts/oklab/ */
function fromOklch(lightness: number, chroma: number, hue: number): [number, number, number] {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function encoded(linear: number): number {
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, value)));
}

function parsed(text: string): [number, number, number] {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(text);
  return hex === null
    ? [128, 128, 128]
    : [
        Number.parseInt(hex[1] ?? '80', 16),
        Number.parseInt(hex[2] ?? '80', 16),
        Number.parseInt(hex[3] ?? '80', 16),
      ];
}

function shaded(
  [red, green, blue]: readonly [number, number, number],
  factor: number,
): [number, number, number] {
  return [Math.round(red * factor), Math.round(green * factor), Math.round(blue * factor)];
}

function pixel([red, green, blue]: readonly [number, number, number]): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function luminance([red, green, blue]: readonly [number, number, number]): number {
  const linear = (value: number) => (value / 255) ** 2.2;
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}
