/** What strobe/timeline answers on a server, from the part of a timeline that a file holds. */

import { packed, type Column, type Packet } from '../timeline/packet';
import { NAMES_AT_ONCE } from '../timeline/stores';
import type { Brief, CurveAbout, Details, Flow, Found, Meta, Track } from '../timeline/types';
import { tile } from './tiles';

export interface HeldAbout {
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly events_in_run: number;
  readonly stretches: Meta['stretches'];
  readonly tracks: readonly Omit<Track, 'first_row' | 'events'>[];
  readonly names: readonly (readonly [string, string])[];
  readonly kinds: readonly string[];
  readonly curves: readonly CurveAbout[];
  readonly flow_kinds: readonly string[];
  readonly colours: Meta['colours'];
}

/** No parent, or none that is held: strobe/timeline/held.py */
const NONE = 2 ** 32 - 1;
/** As on a server: strobe/timeline/details.py, search.py, levels.py */
const MOST_FLOWS = 50;
const MOST_NAMES = 100;
const DENSITY_BUCKETS = 512;
const FEWEST_BUCKETS = 512;

export class HeldTimeline {
  readonly about: HeldAbout;
  readonly rowAt: Uint32Array;
  readonly start: Float64Array;
  readonly length: Float64Array;
  readonly paint: Uint32Array;
  readonly name: Uint32Array;
  private readonly self: Float64Array;
  private readonly id: Float64Array;
  private readonly parent: Uint32Array;
  private readonly tracks: readonly Track[];
  private readonly columns: Readonly<Record<string, Column>>;

  constructor({ about, columns }: Packet<HeldAbout>) {
    this.about = about;
    this.columns = columns;
    this.rowAt = columns['row_at'] as Uint32Array;
    this.start = columns['start_ns'] as Float64Array;
    this.length = columns['dur_ns'] as Float64Array;
    this.self = columns['self_ns'] as Float64Array;
    this.id = columns['id'] as Float64Array;
    this.name = columns['name'] as Uint32Array;
    this.parent = columns['parent'] as Uint32Array;
    this.paint = columns['paint'] as Uint32Array;
    let first = 0;
    this.tracks = about.tracks.map((track) => {
      const first_row = first;
      first += track.rows;
      return { ...track, first_row, events: this.at(first) - this.at(first_row) };
    });
  }

  get isWhole(): boolean {
    return this.start.length === this.about.events_in_run;
  }

  /** The answer to `timeline/<words>`: JSON, bytes, or nothing where the file has none. */
  answer(words: readonly string[], asked: URLSearchParams): object | ArrayBuffer | null {
    const number = (name: string) => Number(asked.get(name) ?? 0);
    switch (words[0]) {
      case undefined:
        return this.meta();
      case 'tiles':
        return tile(this, this.rows(asked), number('shift'), number('first'), number('last'));
      case 'curves':
        return this.curves(
          numbers(asked.get('curves') ?? ''),
          number('t0'),
          number('t1'),
          number('buckets'),
        );
      case 'names':
        return { names: this.about.names.slice(number('first'), number('first') + NAMES_AT_ONCE) };
      case 'at':
        return { event: this.eventAt(number('row'), number('t0'), number('t1')) };
      case 'event':
        return this.details(this.id.indexOf(Number(words[1])));
      case 'search':
        return this.search(
          asked.get('q') ?? '',
          asked.get('way'),
          number('from'),
          Number(asked.get('position') ?? -1),
        );
      case 'area':
        return this.area(this.rows(asked), number('t0'), number('t1'));
      case 'events':
        return this.longest(this.rows(asked), number('t0'), number('t1'), number('limit') || 200);
      case 'steps':
        return this.steps(asked.get('steps') ?? '', asked.get('rank'));
      default:
        return null;
    }
  }

  private meta(): Meta {
    const { begin_ns, end_ns, stretches, curves, names, colours } = this.about;
    const tracks = this.tracks.filter((track) => track.events > 0);
    const coarsest_shift = Math.max(
      0,
      Math.ceil(Math.log2(Math.max(1, (end_ns - begin_ns) / FEWEST_BUCKETS))),
    );
    return {
      ready: true,
      index: 'file',
      is_live: false,
      begin_ns,
      end_ns,
      stretches,
      coarsest_shift,
      events: this.start.length,
      tracks,
      curves,
      names: names.length,
      colours,
    };
  }

  private at(row: number): number {
    return this.rowAt[row] ?? this.start.length;
  }

  private rows(asked: URLSearchParams): readonly number[] {
    const text = asked.get('rows');
    return text === null
      ? Array.from({ length: this.rowAt.length - 1 }, (_, row) => row)
      : numbers(text);
  }

  /** Positions of the events of a row that touch a stretch of time, since the begin. */
  touching(row: number, t0: number, t1: number): readonly [number, number] {
    const low = this.at(row);
    const high = this.at(row + 1);
    let first = firstAtLeast(this.start, low, high, t0);
    const last = firstAtLeast(this.start, first, high, t1);
    if (first > low && this.end(first - 1) > t0) first--;
    return [first, last];
  }

  private end(position: number): number {
    return (this.start[position] ?? 0) + (this.length[position] ?? 0);
  }

  private brief(position: number): Brief {
    const code = this.name[position] ?? 0;
    const [name, kind] = this.about.names[code] ?? ['', ''];
    const ts_ns = (this.start[position] ?? 0) + this.about.begin_ns;
    return {
      position,
      id: this.id[position] ?? 0,
      name,
      kind,
      code,
      row: this.rowOf(position),
      ts_ns,
      dur_ns: this.length[position] ?? 0,
      self_ns: this.self[position] ?? 0,
    };
  }

  private rowOf(position: number): number {
    return firstAtLeast(this.rowAt, 0, this.rowAt.length, position + 1) - 1;
  }

  private eventAt(row: number, t0_ns: number, t1_ns: number): Brief | null {
    const t0 = t0_ns - this.about.begin_ns;
    const [first, last] = this.touching(row, t0, Math.max(t1_ns - this.about.begin_ns, t0 + 1));
    let longest = first;
    for (let at = first; at < last; at++)
      if ((this.length[at] ?? 0) > (this.length[longest] ?? 0)) longest = at;
    return first === last ? null : this.brief(longest);
  }

  private details(position: number): Details | null {
    if (position < 0) return null;
    const row = this.rowOf(position);
    const around: Brief[] = [];
    for (let up = this.parent[position] ?? NONE; up !== NONE; up = this.parent[up] ?? NONE)
      around.push(this.brief(up));
    return {
      event: this.brief(position),
      around,
      previous: position > this.at(row) ? this.brief(position - 1) : null,
      next: position + 1 < this.at(row + 1) ? this.brief(position + 1) : null,
      first_inside: this.firstInside(position, row),
      ...this.flows(position, row),
    };
  }

  private firstInside(position: number, row: number): Brief | null {
    const start = this.start[position] ?? 0;
    let found: number | null = null;
    for (const one of this.rowsInside(row)) {
      const [first, last] = this.touching(one, start, Math.max(this.end(position), start + 1));
      for (let at = first; at < last; at++) {
        if (this.parent[at] !== position) continue;
        if (found === null || (this.start[at] ?? 0) < (this.start[found] ?? 0)) found = at;
        break;
      }
    }
    return found === null ? null : this.brief(found);
  }

  /** Rows that may hold what lies in an event of a row: those below it, and the other part of its track. */
  private rowsInside(row: number): readonly number[] {
    const track = this.tracks.find((one) => row >= one.first_row && row < one.first_row + one.rows);
    const parts = track === undefined ? [] : this.partsOf(track);
    const all = parts.flatMap((part) =>
      Array.from({ length: part.rows }, (_, down) => part.first_row + down),
    );
    return all.filter((one) => one > row || (track?.joins && one < track.first_row));
  }

  /** A track and the part of it that has rows of its own. */
  private partsOf(track: Track): readonly Track[] {
    const at = this.tracks.indexOf(track);
    if (track.joins) return this.tracks.slice(at - 1, at + 1);
    return this.tracks[at + 1]?.joins ? this.tracks.slice(at, at + 2) : [track];
  }

  /** An operator's effects are also those of the calls that lie in it. */
  private flows(
    position: number,
    row: number,
  ): Pick<Details, 'causes' | 'causes_total' | 'effects' | 'effects_total'> {
    const {
      cause,
      effect,
      flow_kind: kind,
    } = this.columns as { cause: Uint32Array; effect: Uint32Array; flow_kind: Uint8Array };
    const inside = this.rowsInside(row).map((one) =>
      this.touching(one, this.start[position] ?? 0, this.end(position)),
    );
    const told = (other: number, at: number): Flow => ({
      flow: this.about.flow_kinds[kind[at] ?? 0] ?? '',
      ...this.brief(other),
    });
    const causes: Flow[] = [];
    const effects: Flow[] = [];
    let [causes_total, effects_total] = [0, 0];
    for (let at = 0; at < cause.length; at++) {
      const from = cause[at] ?? 0;
      if (effect[at] === position && causes_total++ < MOST_FLOWS) causes.push(told(from, at));
      const isOwn =
        from === position || inside.some(([first, last]) => from >= first && from < last);
      if (isOwn && effects_total++ < MOST_FLOWS) effects.push(told(effect[at] ?? 0, at));
    }
    return { causes, causes_total, effects, effects_total };
  }

  private curves(wanted: readonly number[], t0: number, t1: number, buckets: number): ArrayBuffer {
    const {
      curve_at: begins,
      curve_ns: moments,
      curve_value: values,
    } = this.columns as {
      curve_at: Uint32Array;
      curve_ns: Float64Array;
      curve_value: Float64Array;
    };
    const before: Record<string, number | null> = {};
    const columns: Record<string, Column> = {};
    for (const number of wanted) {
      const [low, high] = [begins[number] ?? 0, begins[number + 1] ?? 0];
      const [first, last] = [
        firstAtLeast(moments, low, high, t0),
        firstAtLeast(moments, low, high, t1),
      ];
      before[number] = first > low ? (values[first - 1] ?? null) : null;
      const drawn: { bucket: number; low: number; high: number; last: number }[] = [];
      for (let at = first; at < last; at++) {
        const bucket = Math.floor((((moments[at] ?? 0) - t0) / (t1 - t0)) * buckets);
        const value = values[at] ?? 0;
        const same = drawn.at(-1);
        if (same?.bucket === bucket)
          Object.assign(same, {
            low: Math.min(same.low, value),
            high: Math.max(same.high, value),
            last: value,
          });
        else drawn.push({ bucket, low: value, high: value, last: value });
      }
      columns[`${number}/bucket`] = Uint16Array.from(drawn, (one) => one.bucket);
      for (const name of ['low', 'high', 'last'] as const)
        columns[`${number}/${name}`] = Float64Array.from(drawn, (one) => one[name]);
    }
    return packed({ t0, t1, buckets, before }, columns);
  }

  /** Every word must be in the name; `kind:sync` asks for a kind. */
  private search(text: string, way: string | null, from: number, position: number): object {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = words.filter((word) => word.startsWith('kind:')).map((word) => word.slice(5));
    const parts = words.filter((word) => !word.startsWith('kind:'));
    const isFound = this.about.names.map(
      ([name, kind]) =>
        (kinds.length === 0 || kinds.includes(kind)) &&
        parts.every((part) => name.toLowerCase().includes(part)),
    );
    const hits: number[] = [];
    this.name.forEach((code, at) => {
      if (isFound[code]) hits.push(at);
    });
    if (way === null) return this.told(hits, isFound);
    hits.sort((a, b) => (this.start[a] ?? 0) - (this.start[b] ?? 0) || a - b);
    const moment = position < 0 ? from - this.about.begin_ns : (this.start[position] ?? 0);
    const isLater = (hit: number) => (this.start[hit] ?? 0) - moment || hit - position;
    const place =
      way === 'next'
        ? hits.findIndex((hit) => isLater(hit) > 0)
        : hits.findLastIndex((hit) => isLater(hit) < 0);
    const round = place >= 0 ? place : way === 'next' ? 0 : hits.length - 1;
    const hit = hits[round];
    return hit === undefined
      ? { event: null, number: 0, total: 0 }
      : { event: this.brief(hit), number: round + 1, total: hits.length };
  }

  private told(hits: readonly number[], isFound: readonly boolean[]): Found {
    const codes = isFound.flatMap((is, code) => (is ? [code] : []));
    const of = new Map(
      codes.map((code) => [
        code,
        {
          code,
          name: this.about.names[code]?.[0] ?? '',
          kind: this.about.names[code]?.[1] ?? '',
          count: 0,
          total_ns: 0,
        },
      ]),
    );
    const density = new Array<number>(DENSITY_BUCKETS).fill(0);
    const span = Math.max(1, this.about.end_ns - this.about.begin_ns);
    for (const hit of hits) {
      const one = of.get(this.name[hit] ?? 0);
      if (one === undefined) continue;
      one.count++;
      one.total_ns += this.length[hit] ?? 0;
      const bucket = Math.max(
        0,
        Math.min(
          DENSITY_BUCKETS - 1,
          Math.floor(((this.start[hit] ?? 0) * DENSITY_BUCKETS) / span),
        ),
      );
      density[bucket] = (density[bucket] ?? 0) + 1;
    }
    const names = [...of.values()].sort((a, b) => b.total_ns - a.total_ns).slice(0, MOST_NAMES);
    return { total: hits.length, names, names_total: codes.length, codes, density };
  }

  /** Times are cut to the area; self time is without that of children, on whatever row of the track. */
  private area(rows: readonly number[], t0_ns: number, t1_ns: number): object {
    const [t0, t1] = [t0_ns - this.about.begin_ns, t1_ns - this.about.begin_ns];
    const cut = (at: number) => Math.min(this.end(at), t1) - Math.max(this.start[at] ?? 0, t0);
    const busy_ns: Record<string, number> = {};
    const own = new Map<number, number>();
    for (const row of new Set(rows)) {
      const [first, last] = this.touching(row, t0, t1);
      let busy = 0;
      for (let at = first; at < last; at++) {
        busy += cut(at);
        own.set(at, cut(at));
      }
      busy_ns[row] = busy;
    }
    for (const row of this.rowsOfTracks(rows)) {
      const [first, last] = this.touching(row, t0, t1);
      for (let at = first; at < last; at++) {
        const parent = this.parent[at] ?? NONE;
        const left = own.get(parent);
        if (left !== undefined) own.set(parent, left - cut(at));
      }
    }
    const byName = new Map<
      number,
      { count: number; total: number; self: number; longest: number }
    >();
    for (const [at, self] of own) {
      const code = this.name[at] ?? 0;
      const sum = byName.get(code) ?? { count: 0, total: 0, self: 0, longest: 0 };
      byName.set(code, {
        count: sum.count + 1,
        total: sum.total + cut(at),
        self: sum.self + Math.max(0, self),
        longest: Math.max(sum.longest, this.length[at] ?? 0),
      });
    }
    const told = [...byName]
      .sort(([, a], [, b]) => b.total - a.total)
      .map(([code, { count, total, self, longest }]) => [
        ...(this.about.names[code] ?? ['', '']),
        count,
        total,
        self,
        Math.floor(total / count),
        longest,
      ]);
    return {
      table: 'area',
      rows: told,
      total: told.length,
      busy_ns,
      events: own.size,
      span_ns: t1 - t0,
    };
  }

  private rowsOfTracks(rows: readonly number[]): readonly number[] {
    const wanted = new Set(rows);
    return this.tracks
      .filter((track) => !track.joins)
      .flatMap((track) => {
        const all = this.partsOf(track).flatMap((part) =>
          Array.from({ length: part.rows }, (_, down) => part.first_row + down),
        );
        return all.some((row) => wanted.has(row)) ? all : [];
      });
  }

  private longest(rows: readonly number[], t0_ns: number, t1_ns: number, most: number): object {
    const positions = rows.flatMap((row) => {
      const [first, last] = this.touching(
        row,
        t0_ns - this.about.begin_ns,
        t1_ns - this.about.begin_ns,
      );
      return Array.from({ length: last - first }, (_, at) => first + at);
    });
    positions.sort((a, b) => (this.length[b] ?? 0) - (this.length[a] ?? 0));
    const briefs = positions
      .slice(0, most)
      .map((at) => this.brief(at))
      .sort((a, b) => a.ts_ns - b.ts_ns);
    return {
      table: 'events_in_view',
      rows: briefs.map((one) => [
        one.id,
        one.name,
        one.kind,
        one.row,
        one.ts_ns,
        one.dur_ns,
        one.self_ns,
      ]),
      total: briefs.length,
    };
  }

  private steps(text: string, rank: string | null): object | null {
    const [first, last] = text.split(':').map((part) => (part === '' ? null : Number(part)));
    let [t0, t1] = [Infinity, -Infinity];
    for (const track of this.tracks) {
      if (track.device !== 'steps' || (rank !== null && rank !== '' && track.rank !== Number(rank)))
        continue;
      for (let at = this.at(track.first_row); at < this.at(track.first_row + track.rows); at++) {
        const [name, kind] = this.about.names[this.name[at] ?? 0] ?? ['', ''];
        const step = kind === 'step' ? Number(/^\D*(\d+)$/.exec(name)?.[1] ?? -1) : -1;
        if (step < Math.max(0, first ?? 0) || step > (last ?? Infinity)) continue;
        t0 = Math.min(t0, this.start[at] ?? 0);
        t1 = Math.max(t1, this.end(at));
      }
    }
    return t0 < t1 ? { t0: t0 + this.about.begin_ns, t1: t1 + this.about.begin_ns } : null;
  }
}

/** `0-17,20` */
function numbers(text: string): readonly number[] {
  return text
    .split(',')
    .filter(Boolean)
    .flatMap((part) => {
      const [first = 0, last = first] = part.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, at) => first + at);
    });
}

/** Where, among sorted values [low, high), the first one stands that is no less. */
function firstAtLeast(
  values: Float64Array | Uint32Array,
  low: number,
  high: number,
  wanted: number,
): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
