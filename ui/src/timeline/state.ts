/** What is seen of a timeline and what is chosen in it. The address holds all of it. */

import { batch, computed, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { Failure, asFailure, get, ofRun } from '../api';
import { route, setQuery, type Query } from '../router';
import { keysAbove, layout, ranges, rowsFrom, type Layout } from './layout';
import { Growth } from './growth';
import { CurveStore, Names, StripStore, counts, type Store } from './stores';
import type { Area, Brief, Details, Found, Meta, Stretch, View } from './types';
import { around, atEnd, showing, whole } from './view';

/** The address is written when nothing has moved for so long. */
const SETTLED_MS = 200;
const CALM_MS = 150;
const ZOOMS_KEPT = 50;
/** MissingData of the server. */
const NO_SUCH_INDEX = 422;

export type Tab = 'event' | 'area' | 'events' | 'search';

export interface Hover {
  readonly moment: number;
  readonly row: number | null;
  /** Where the pointer is on the page. */
  readonly x: number;
  readonly y: number;
}

export class TimelineState {
  readonly view: Signal<View>;
  /** The view, told now and then while it moves: for what is too slow, or too restless, to follow each frame. */
  readonly calmView: Signal<View>;
  readonly about: Signal<Meta>;
  readonly isLive: Signal<boolean>;
  /** Whether the run has grown beyond what is seen. */
  readonly hasNew = signal(false);
  private readonly all: ReadonlySignal<View>;
  readonly selected = signal<Details | null>(null);
  readonly area = signal<Area | null>(null);
  readonly hover = signal<Hover | null>(null);
  readonly filter = signal('');
  readonly toggled = signal<ReadonlySet<string>>(new Set());
  readonly pinned = signal<ReadonlySet<string>>(new Set());
  readonly query = signal('');
  readonly found = signal<Found | null>(null);
  readonly foundNames: ReadonlySignal<ReadonlySet<number> | null>;
  /** Which hit of how many, once one was gone to. */
  readonly hit = signal<{ readonly number: number; readonly total: number } | null>(null);
  readonly tab = signal<Tab>('event');
  readonly isDrawerOpen = signal(true);
  /** Of the lanes, without their heads and the scroll bar; ruler and overview are as wide. */
  readonly width = signal(0);
  readonly failure = signal<Failure | null>(null);
  /** Raised whenever there is something new to draw. */
  readonly fresh = signal(0);
  /** Names of a row that is to be brought into sight. */
  readonly reveal = signal<{ readonly row: number } | null>(null);
  readonly layout: ReadonlySignal<Layout>;
  names: Names;
  readonly steps: StripStore;
  readonly stores = new Set<Store>();
  readonly growth: Growth;
  private readonly stop = new AbortController();
  private zooms: View[] = [];
  private written = '';
  private isWriting = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private calmTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly run: string,
    meta: Meta,
  ) {
    this.about = signal(meta);
    this.isLive = signal(meta.is_live);
    this.all = computed(() => whole(this.meta.begin_ns, this.meta.end_ns));
    this.view = signal(this.home);
    this.calmView = signal(this.home);
    this.layout = computed(() =>
      layout(this.meta, {
        toggled: this.toggled.value,
        pinned: this.pinned.value,
        filter: this.filter.value,
      }),
    );
    this.foundNames = computed(() =>
      this.query.value !== '' && this.found.value?.codes ? new Set(this.found.value.codes) : null,
    );
    this.names = new Names(run, meta.index, this.stop.signal, () => this.fresh.value++);
    this.steps = this.newStrips();
    this.growth = new Growth(this, this.stop.signal);
    counts.state = this;
    void this.read(route.value.query);
  }

  get meta(): Meta {
    return this.about.value;
  }

  get limits(): View {
    return this.all.value;
  }

  /** What is seen at first: the whole run, or of one that lies hours apart the part with most events. */
  get home(): View {
    const { stretches } = this.meta;
    const most = stretches.reduce(
      (best, one) => (best === null || one.events > best.events ? one : best),
      null as Stretch | null,
    );
    return most === null || stretches.length === 1
      ? this.limits
      : whole(most.begin_ns, most.end_ns);
  }

  get stepRow(): number | null {
    return (
      this.meta.tracks.find((track) => track.device === 'steps' && track.rows > 0)?.first_row ??
      null
    );
  }

  /** Whether the end of a growing run stays in sight; not while somebody looks at something there. */
  get isFollowing(): boolean {
    return this.selected.value === null && this.area.value === null;
  }

  toEnd(): void {
    this.hasNew.value = false;
    this.jump(atEnd(this.view.value, this.meta.end_ns));
  }

  /** To be called in an effect. */
  calm(): void {
    const view = this.view.value;
    if (view === this.calmView.peek() || this.calmTimer !== undefined) return;
    this.calmTimer = setTimeout(() => {
      this.calmTimer = undefined;
      this.calmView.value = this.view.peek();
    }, CALM_MS);
  }

  newStrips(): StripStore {
    return this.stored(
      new StripStore(this.run, this.about.peek(), this.stop.signal, (failure) =>
        this.came(failure),
      ),
    );
  }

  newCurves(): CurveStore {
    return this.stored(
      new CurveStore(this.run, this.about.peek(), this.stop.signal, (failure) =>
        this.came(failure),
      ),
    );
  }

  /** Of lanes that are not shown any more. */
  forget(...stores: readonly Store[]): void {
    for (const store of stores) this.stores.delete(store);
  }

  private stored<S extends Store>(store: S): S {
    this.stores.add(store);
    return store;
  }

  close(): void {
    this.stop.abort();
    clearTimeout(this.timer);
    clearTimeout(this.calmTimer);
  }

  private came(failure: Failure | null): void {
    // The index of a live run makes room for the next: look whether there is one.
    if (failure?.status === NO_SUCH_INDEX && this.isLive.value) void this.growth.renew();
    else this.failure.value = failure;
    this.fresh.value++;
  }

  /** Remembers where one was before a jump, for the way back. */
  jump(view: View): void {
    this.zooms = [...this.zooms, this.view.value].slice(-ZOOMS_KEPT);
    this.view.value = view;
  }

  back(): void {
    const last = this.zooms.pop();
    if (last !== undefined) this.view.value = last;
  }

  async select(id: number | null, { isToBeShown = false } = {}): Promise<void> {
    if (id === null) {
      this.selected.value = null;
      return;
    }
    try {
      const details = await get<Details>(
        ofRun(this.run, `timeline/event/${id}`),
        { index: this.meta.index },
        { signal: this.stop.signal },
      );
      batch(() => {
        this.selected.value = details;
        this.tab.value = 'event';
        this.isDrawerOpen.value = true;
        if (isToBeShown) this.show(details.event);
      });
    } catch (error) {
      if (!this.stop.signal.aborted) this.failure.value = asFailure(error);
    }
  }

  /** Brings an event into sight, in time and among the lanes. */
  show(event: Brief): void {
    const view = showing(this.view.value, event.ts_ns, event.ts_ns + event.dur_ns, this.limits);
    if (view !== this.view.value) this.jump(view);
    this.reveal.value = { row: event.row };
  }

  /** Opens what hides a row; the lanes then scroll to it. */
  open(row: number): void {
    const above = keysAbove(this.meta, row);
    if (above === null) return;
    const lanes = [...this.layout.value.lanes, ...this.layout.value.pinned];
    const lane = lanes.find((one) => one.key === above.track);
    if (lane === undefined && this.filter.value !== '') this.filter.value = '';
    const rank = lanes.find((one) => one.key === above.rank);
    if (rank?.kind === 'rank' && !rank.isOpen) this.toggle(above.rank);
    if (lane?.kind === 'track' && lane.shownRows <= above.depth) this.toggle(above.track);
  }

  toggle(key: string): void {
    this.toggled.value = flipped(this.toggled.value, key);
  }

  pin(key: string): void {
    this.pinned.value = flipped(this.pinned.value, key);
  }

  focus(): void {
    const area = this.area.value;
    const event = this.selected.value?.event;
    if (event !== undefined)
      this.jump(around(event.ts_ns, event.ts_ns + Math.max(1, event.dur_ns), this.limits));
    else if (area !== null) this.jump(around(area.t0, area.t1, this.limits, 0));
  }

  /** The stretch and the rows of the selected event and what lies in it. */
  mark(): void {
    const event = this.selected.value?.event;
    if (event === undefined) return;
    const track = this.meta.tracks.find(
      (one) => event.row >= one.first_row && event.row < one.first_row + one.rows,
    );
    const last = track === undefined ? event.row + 1 : track.first_row + track.rows;
    this.chooseArea({
      t0: event.ts_ns,
      t1: event.ts_ns + Math.max(1, event.dur_ns),
      rows: Array.from({ length: last - event.row }, (_, at) => event.row + at),
    });
  }

  chooseArea(area: Area | null): void {
    batch(() => {
      this.area.value = area;
      if (area !== null) {
        this.tab.value = 'area';
        this.isDrawerOpen.value = true;
      } else if (this.tab.value === 'area') this.tab.value = 'event';
    });
  }

  clear(): void {
    batch(() => {
      if (this.selected.value !== null) this.selected.value = null;
      else if (this.area.value !== null) this.chooseArea(null);
      else void this.search('');
    });
  }

  async search(text: string): Promise<void> {
    batch(() => {
      this.query.value = text;
      this.hit.value = null;
      if (text === '') this.found.value = null;
    });
    if (text.trim() === '') return;
    try {
      const found = await get<Found>(
        ofRun(this.run, 'timeline/search'),
        { index: this.meta.index, q: text },
        { signal: this.stop.signal },
      );
      if (this.query.value !== text) return;
      this.found.value = found;
      this.failure.value = null;
    } catch (error) {
      if (!this.stop.signal.aborted) this.failure.value = asFailure(error);
    }
  }

  async nextHit(way: 'next' | 'previous'): Promise<void> {
    const text = this.query.value;
    if (text.trim() === '') return;
    const position = this.selected.value?.event.position ?? -1;
    const { t0, t1 } = this.view.value;
    const from = Math.round(way === 'next' ? t0 : t1);
    try {
      const hit = await get<{ event: Brief | null; number: number; total: number }>(
        ofRun(this.run, 'timeline/search'),
        { index: this.meta.index, q: text, way, position, from },
        { signal: this.stop.signal },
      );
      this.hit.value = { number: hit.number, total: hit.total };
      if (hit.event !== null) await this.select(hit.event.id, { isToBeShown: true });
    } catch (error) {
      if (!this.stop.signal.aborted) this.failure.value = asFailure(error);
    }
  }

  /** To be called in an effect: whatever it reads is kept in the address. */
  write(): void {
    const { t0, t1 } = this.view.value;
    const { home } = this;
    const isHome = t0 === home.t0 && t1 === home.t1;
    const area = this.area.value;
    const patch = {
      t0: isHome ? null : Math.round(t0),
      t1: isHome ? null : Math.round(t1),
      sel: this.selected.value?.event.id ?? null,
      q: this.query.value || null,
      tracks: this.filter.value || null,
      pin: [...this.pinned.value].join(',') || null,
      toggled: [...this.toggled.value].join(',') || null,
      area:
        area === null ? null : `${Math.round(area.t0)}:${Math.round(area.t1)}:${ranges(area.rows)}`,
      drawer: this.isDrawerOpen.value ? null : 'closed',
      show: this.tab.value === 'event' ? null : this.tab.value,
      // The view says it from now on.
      step: null,
    };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.isWriting = true;
      setQuery(patch);
      this.isWriting = false;
      this.written = JSON.stringify(route.value.query);
    }, SETTLED_MS);
  }

  /** The address was changed by somebody else: a link, the way back. */
  follow(query: Query): void {
    if (!this.isWriting && this.written !== '' && JSON.stringify(query) !== this.written)
      void this.read(query);
  }

  private async read(query: Query): Promise<void> {
    batch(() => {
      this.filter.value = query['tracks'] ?? '';
      this.pinned.value = new Set((query['pin'] ?? '').split(',').filter(Boolean));
      this.toggled.value = new Set((query['toggled'] ?? '').split(',').filter(Boolean));
      this.area.value = areaFrom(query['area'] ?? '');
      this.isDrawerOpen.value = query['drawer'] !== 'closed';
      this.tab.value = isTab(query['show']) ? query['show'] : 'event';
      this.view.value = viewFrom(query) ?? this.home;
    });
    this.written = JSON.stringify(query);
    if (viewFrom(query) === null && query['step'])
      await this.showSteps(`${query['step']}:${query['step']}`, query['rank']);
    const hasView = viewFrom(query) !== null || query['step'] !== undefined;
    if (query['q'] && query['q'] !== this.query.value) void this.search(query['q']);
    const id = Number.parseInt(query['sel'] ?? '', 10);
    const tab = this.tab.value;
    if (Number.isFinite(id)) {
      await this.select(id, { isToBeShown: !hasView });
      if (hasView && this.selected.value !== null)
        this.reveal.value = { row: this.selected.value.event.row };
      this.tab.value = tab;
    } else if (!hasView && query['steps']) await this.showSteps(query['steps'], query['rank']);
  }

  private async showSteps(steps: string, rank: string | undefined): Promise<void> {
    try {
      const { t0, t1 } = await get<View>(
        ofRun(this.run, 'timeline/steps'),
        { index: this.meta.index, steps, rank },
        { signal: this.stop.signal },
      );
      this.view.value = around(t0, t1, this.limits, 0.02);
    } catch (error) {
      if (!this.stop.signal.aborted) this.failure.value = asFailure(error);
    }
  }
}

function flipped(set: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

function viewFrom(query: Query): View | null {
  const t0 = Number(query['t0'] ?? Number.NaN);
  const t1 = Number(query['t1'] ?? Number.NaN);
  return Number.isFinite(t0) && Number.isFinite(t1) && t1 > t0 ? { t0, t1 } : null;
}

function areaFrom(text: string): Area | null {
  const match = /^(-?\d+):(-?\d+):([\d,-]*)$/.exec(text);
  if (match === null) return null;
  const [t0, t1] = [Number(match[1]), Number(match[2])];
  return t1 > t0 ? { t0, t1, rows: rowsFrom(match[3] ?? '') } : null;
}

function isTab(text: string | undefined): text is Tab {
  return text === 'event' || text === 'area' || text === 'events' || text === 'search';
}
