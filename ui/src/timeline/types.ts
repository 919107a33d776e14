/** What the server tells of a timeline. Times are nanoseconds since the run began. */

export interface Track {
  readonly id: number;
  readonly rank: number;
  readonly device: string;
  readonly name: string;
  readonly process: number | null;
  readonly thread: number | null;
  readonly first_row: number;
  /** One for each depth of nesting. */
  readonly rows: number;
  /** Python frames or annotations, which have rows of their own. */
  readonly part?: 'python' | 'annotations';
  /** Whether it is the second part of the track before it. */
  readonly joins?: boolean;
  /** Of the rows, those for events that overlap others. */
  readonly overlapping: number;
  readonly events: number;
}

export interface CurveAbout {
  readonly rank: number;
  readonly name: string;
  readonly values: number;
  readonly lowest: number;
  readonly highest: number;
}

/** A part of the run in which something was recorded; far from the next one. */
export interface Stretch {
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly events: number;
  readonly ranks: readonly number[];
}

export interface Meta {
  readonly ready: boolean;
  /** The name of the index that is looked at. Numbers of rows, curves and names are those of this index alone. */
  readonly index: string;
  readonly is_live: boolean;
  readonly begin_ns: number;
  readonly end_ns: number;
  /** In order of time. More than one only where, seen as a whole, the run would be empty. */
  readonly stretches: readonly Stretch[];
  readonly coarsest_shift: number;
  readonly events: number;
  readonly tracks: readonly Track[];
  readonly curves: readonly CurveAbout[];
  readonly names: number;
  readonly colours: { readonly by_name: number; readonly fixed: readonly string[] };
}

export interface Brief {
  readonly position: number;
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  readonly code: number;
  readonly row: number;
  readonly ts_ns: number;
  readonly dur_ns: number;
  readonly self_ns: number;
}

export interface Flow extends Brief {
  readonly flow: string;
}

export interface Details {
  readonly event: Brief;
  readonly around: readonly Brief[];
  readonly previous: Brief | null;
  readonly next: Brief | null;
  readonly first_inside: Brief | null;
  readonly causes: readonly Flow[];
  readonly causes_total: number;
  readonly effects: readonly Flow[];
  readonly effects_total: number;
}

export interface Found {
  readonly total: number;
  readonly names: readonly {
    readonly code: number;
    readonly name: string;
    readonly kind: string;
    readonly count: number;
    readonly total_ns: number;
  }[];
  readonly names_total: number;
  readonly codes: readonly number[] | null;
  readonly density: readonly number[];
}

/** A stretch of time. */
export interface View {
  readonly t0: number;
  readonly t1: number;
}

/** A stretch of time on some rows. */
export interface Area extends View {
  readonly rows: readonly number[];
}
