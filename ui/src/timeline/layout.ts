/** Which lanes the timeline shows, and where they lie. Pure: what there is and what was chosen in, lanes out. */

import { maybe, t } from '../i18n';
import type { CurveAbout, Meta, Track } from './types';

export const ROW_HEIGHT = 18;
export const RANK_HEIGHT = 26;
export const CURVE_HEIGHT = 46;
/** Room below each lane. */
const GAP = 3;
/** Ranks beyond the first ones begin closed: their lanes would be miles below. */
const RANKS_OPEN = 4;
/** A track with more rows begins with only its first ones shown. */
const MANY_ROWS = 24;

export type Lane =
  | {
      readonly kind: 'rank';
      readonly key: string;
      readonly y: number;
      readonly height: number;
      readonly rank: number;
      readonly isOpen: boolean;
      readonly hidden: number;
    }
  | {
      readonly kind: 'track';
      readonly key: string;
      readonly y: number;
      readonly height: number;
      readonly track: Track;
      readonly shownRows: number;
      readonly isOpen: boolean;
    }
  | {
      readonly kind: 'curves';
      readonly key: string;
      readonly y: number;
      readonly height: number;
      readonly rank: number;
      readonly isOpen: boolean;
      readonly count: number;
    }
  | {
      readonly kind: 'curve';
      readonly key: string;
      readonly y: number;
      readonly height: number;
      readonly number: number;
      readonly curve: CurveAbout;
    };

export interface Choice {
  /** Lanes that are not as they begin: opened or closed. */
  readonly toggled: ReadonlySet<string>;
  readonly pinned: ReadonlySet<string>;
  /** Only tracks and curves with these words in their name. */
  readonly filter: string;
}

export interface Layout {
  readonly pinned: readonly Lane[];
  readonly lanes: readonly Lane[];
}

export function layout(meta: Meta, choice: Choice): Layout {
  const all = ranks(meta).flatMap((rank, at) => lanesOfRank(meta, rank, at < RANKS_OPEN, choice));
  return {
    pinned: stacked(all.filter((lane) => choice.pinned.has(lane.key))),
    lanes: stacked(all.filter((lane) => !choice.pinned.has(lane.key))),
  };
}

export function heightOf(lanes: readonly Lane[]): number {
  const last = lanes[lanes.length - 1];
  return last === undefined ? 0 : last.y + last.height + GAP;
}

/** The lane at a height, or null between lanes. */
export function laneAt(lanes: readonly Lane[], y: number): Lane | null {
  const at = firstBelow(lanes, y);
  const lane = lanes[at];
  return lane !== undefined && y >= lane.y && y < lane.y + lane.height ? lane : null;
}

/** Lanes that touch [top, bottom). */
export function lanesIn(lanes: readonly Lane[], top: number, bottom: number): readonly Lane[] {
  const first = firstBelow(lanes, top);
  let last = first;
  while (last < lanes.length && (lanes[last]?.y ?? 0) < bottom) last++;
  return lanes.slice(first, last);
}

export function rowAt(lane: Lane, y: number): number | null {
  if (lane.kind !== 'track') return null;
  const depth = Math.floor((y - lane.y) / ROW_HEIGHT);
  return depth >= 0 && depth < lane.shownRows ? lane.track.first_row + depth : null;
}

/** The rows of events on lanes. */
export function rowsOf(lanes: readonly Lane[]): number[] {
  return lanes.flatMap((lane) =>
    lane.kind === 'track' ? range(lane.track.first_row, lane.track.first_row + lane.shownRows) : [],
  );
}

/** The track that a row belongs to. */
export function trackOf(meta: Meta, row: number): Track | null {
  return (
    meta.tracks.find((track) => row >= track.first_row && row < track.first_row + track.rows) ??
    null
  );
}

/** What must be opened so that a row is seen. */
export function keysAbove(
  meta: Meta,
  row: number,
): { readonly track: string; readonly rank: string; readonly depth: number } | null {
  const track = trackOf(meta, row);
  return track === null
    ? null
    : { track: trackKey(track), rank: rankKey(track.rank), depth: row - track.first_row };
}

/** `0-17,20`, as the server reads rows. */
export function ranges(rows: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (end + 1 < rows.length && rows[end + 1] === (rows[end] ?? 0) + 1) end++;
    parts.push(end > at ? `${rows[at]}-${rows[end]}` : `${rows[at]}`);
    at = end + 1;
  }
  return parts.join(',');
}

export function rowsFrom(text: string): number[] {
  return text
    .split(',')
    .filter(Boolean)
    .flatMap((part) => {
      const [first = '', last = first] = part.split('-');
      return range(Number.parseInt(first, 10) || 0, (Number.parseInt(last, 10) || 0) + 1);
    });
}

export function trackTitle(track: Track): string {
  const name =
    track.device === 'steps'
      ? t('timeline.stepsTrack')
      : track.device === 'cpu'
        ? (maybe(`timeline.named.${track.name}`) ?? track.name)
        : `${track.device} · ${track.name}`;
  return track.part === undefined ? name : `${t(`timeline.part.${track.part}`)} · ${name}`;
}

function ranks(meta: Meta): number[] {
  return [
    ...new Set([
      ...meta.tracks.map((track) => track.rank),
      ...meta.curves.map((curve) => curve.rank),
    ]),
  ].sort((a, b) => a - b);
}

function lanesOfRank(meta: Meta, rank: number, beginsOpen: boolean, choice: Choice): Lane[] {
  const words = choice.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const isWanted = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const tracks = meta.tracks.filter(
    (track) => track.rank === rank && isWanted(`rank ${rank} ${trackTitle(track)}`),
  );
  const curves = meta.curves
    .map((curve, number) => ({ curve, number }))
    .filter(({ curve }) => curve.rank === rank && isWanted(`rank ${rank} ${curve.name}`));
  if (tracks.length === 0 && curves.length === 0) return [];
  const key = rankKey(rank);
  const isOpen = words.length > 0 || beginsOpen !== choice.toggled.has(key);
  const curvesKey = `c${rank}`;
  // Few curves begin open, many would push the next rank away.
  const curvesOpen = words.length > 0 || curves.length <= 3 !== choice.toggled.has(curvesKey);
  const inside: Lane[] = [
    ...tracks.map((track) => trackLane(track, choice)),
    ...(curves.length === 0
      ? []
      : [
          {
            kind: 'curves' as const,
            key: curvesKey,
            y: 0,
            height: RANK_HEIGHT - 4,
            rank,
            isOpen: curvesOpen,
            count: curves.length,
          },
        ]),
    ...curves
      .filter((one) => curvesOpen || choice.pinned.has(curveKey(one.curve)))
      .map(({ curve, number }) => ({
        kind: 'curve' as const,
        key: curveKey(curve),
        y: 0,
        height: CURVE_HEIGHT,
        number,
        curve,
      })),
  ];
  const head: Lane = {
    kind: 'rank',
    key,
    y: 0,
    height: RANK_HEIGHT,
    rank,
    isOpen,
    hidden: isOpen ? 0 : tracks.length,
  };
  return [head, ...inside.filter((lane) => isOpen || choice.pinned.has(lane.key))];
}

function trackLane(track: Track, choice: Choice): Lane {
  const key = trackKey(track);
  // Python frames begin closed: most of them say how the training was started.
  const isPython = track.part === 'python';
  const isOpen = (track.rows <= MANY_ROWS && !isPython) !== choice.toggled.has(key);
  const few = track.rows <= MANY_ROWS || isPython ? 1 : MANY_ROWS / 3;
  const shownRows = isOpen ? track.rows : Math.min(few, track.rows);
  return { kind: 'track', key, y: 0, height: shownRows * ROW_HEIGHT, track, shownRows, isOpen };
}

function stacked(lanes: readonly Lane[]): Lane[] {
  let y = 0;
  return lanes.map((lane) => {
    const placed = { ...lane, y };
    y += lane.height + GAP;
    return placed;
  });
}

/** The first lane that ends below a height. */
function firstBelow(lanes: readonly Lane[], y: number): number {
  let low = 0;
  let high = lanes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const lane = lanes[middle];
    if (lane !== undefined && lane.y + lane.height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
}

const rankKey = (rank: number) => `r${rank}`;
export const trackKey = (track: Track) => `t${track.id}`;
const curveKey = (curve: CurveAbout) => `v${curve.rank}.${curve.name}`;
