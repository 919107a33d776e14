/** Below the timeline: the event or the area that was chosen, what was found, and the events in view as a table. */

import type { ComponentChildren } from 'preact';
import { address, hasServer, ofRun, useAnswer, type Column } from '../api';
import { Loaded } from '../components/loaded';
import { t, type Key } from '../i18n';
import { hrefOfPage } from '../router';
import * as units from '../units';
import { ranges, rowsOf, trackOf, trackTitle } from './layout';
import type { Tab, TimelineState } from './state';
import type { Area, Brief, Details, Flow } from './types';

const TABS: readonly { readonly tab: Tab; readonly title: Key }[] = [
  { tab: 'event', title: 'timeline.tabEvent' },
  { tab: 'area', title: 'timeline.tabArea' },
  { tab: 'search', title: 'timeline.tabSearch' },
  { tab: 'events', title: 'timeline.tabEvents' },
];
const EVENTS_SHOWN = 200;

export function Drawer({ state }: { state: TimelineState }) {
  const isOpen = state.isDrawerOpen.value;
  const tab = state.tab.value;
  return (
    <section
      class={`tl-drawer ${isOpen ? '' : 'is-closed'} ${isEmpty(state) ? 'is-empty' : ''}`}
      aria-label={t('timeline.drawer')}
    >
      <div class="tl-drawer-head">
        <div class="tabs" role="tablist" aria-label={t('timeline.drawer')}>
          {TABS.map((one) => (
            <button
              key={one.tab}
              type="button"
              role="tab"
              id={`tl-tab-${one.tab}`}
              aria-selected={isOpen && tab === one.tab}
              aria-controls="tl-panel"
              onClick={() => {
                state.tab.value = one.tab;
                state.isDrawerOpen.value = true;
              }}
            >
              {t(one.title)}
            </button>
          ))}
        </div>
        <button
          type="button"
          class="quiet"
          aria-expanded={isOpen}
          onClick={() => {
            state.isDrawerOpen.value = !isOpen;
          }}
        >
          {t(isOpen ? 'timeline.closeDrawer' : 'timeline.openDrawer')} <kbd>Q</kbd>
        </button>
      </div>
      {isOpen && (
        <div
          class="tl-drawer-body"
          role="tabpanel"
          id="tl-panel"
          aria-labelledby={`tl-tab-${tab}`}
          tabIndex={0}
        >
          <Panel state={state} tab={tab} />
        </div>
      )}
    </section>
  );
}

function Panel({ state, tab }: { state: TimelineState; tab: Tab }) {
  switch (tab) {
    case 'event':
      return state.selected.value === null ? (
        <Empty text={t('timeline.noEvent')} />
      ) : (
        <EventPanel state={state} details={state.selected.value} />
      );
    case 'area':
      return state.area.value === null ? (
        <Empty text={t('timeline.noArea')} />
      ) : (
        <AreaPanel state={state} area={state.area.value} />
      );
    case 'search':
      return <SearchPanel state={state} />;
    case 'events':
      return <EventsPanel state={state} />;
  }
}

/** Whether there is only a hint to show, which needs little room. */
function isEmpty(state: TimelineState): boolean {
  switch (state.tab.value) {
    case 'event':
      return state.selected.value === null;
    case 'area':
      return state.area.value === null;
    case 'search':
      return state.found.value === null || state.found.value.total === 0;
    case 'events':
      return false;
  }
}

function Empty({ text }: { text: string }) {
  return <p class="dim tl-empty">{text}</p>;
}

interface Arguments {
  readonly step: number | null;
  readonly scope: string | null;
  readonly arguments: readonly {
    readonly name: string;
    readonly value: string | number | boolean;
    readonly doc: string;
  }[];
}

function EventPanel({ state, details }: { state: TimelineState; details: Details }) {
  const { event, around } = details;
  const track = trackOf(state.meta, event.row);
  const known = useAnswer<Arguments>(ofRun(state.run, `timeline/arguments/${event.id}`), {
    index: state.meta.index,
  });
  return (
    <div class="tl-event">
      <div class="tl-facts">
        <h2 class="mono">{event.name}</h2>
        <dl>
          <Fact name={t('timeline.kind')}>{event.kind}</Fact>
          <Fact name={t('timeline.start')}>{units.moment(event.ts_ns)}</Fact>
          <Fact name={t('timeline.duration')}>{units.duration(event.dur_ns)}</Fact>
          <Fact name={t('timeline.self')}>
            {units.duration(event.self_ns)}
            {event.dur_ns > 0 && (
              <span class="dim"> · {units.percent(event.self_ns / event.dur_ns)}</span>
            )}
          </Fact>
          {track !== null && (
            <Fact name={t('timeline.track')}>
              {t('timeline.rank', { rank: track.rank })} · {trackTitle(track)}
            </Fact>
          )}
          <Fact name={t('timeline.id')}>
            <code>{event.id}</code>
          </Fact>
        </dl>
        <div class="tl-actions">
          <button type="button" onClick={() => state.focus()}>
            {t('timeline.focus')} <kbd>F</kbd>
          </button>
          <button
            type="button"
            onClick={() =>
              void state.search(event.name).then(() => {
                state.tab.value = 'search';
              })
            }
          >
            {t('timeline.sameName')}
          </button>
          {event.kind === 'op' && (
            <a
              class="button"
              href={hrefOfPage('operators', state.run, { tab: 'operators', 'ops.q': event.name })}
            >
              {t('timeline.inOperators')}
            </a>
          )}
          <button type="button" onClick={() => state.mark()}>
            {t('timeline.mark')} <kbd>M</kbd>
          </button>
        </div>
      </div>
      <div class="tl-column">
        <h3>{t('timeline.arguments')}</h3>
        <Loaded of={known}>
          {({ step, scope, arguments: listed }) => (
            <dl>
              {step !== null && <Fact name={t('timeline.step')}>{step}</Fact>}
              {scope !== null && (
                <Fact name={t('timeline.scope')}>
                  <code>{scope}</code>
                </Fact>
              )}
              {listed.map(({ name, value, doc }) => (
                <Fact key={name} name={name.replaceAll('_', ' ')} title={doc}>
                  <code>{argument(name, value)}</code>
                </Fact>
              ))}
              {listed.length === 0 && step === null && scope === null && (
                <p class="dim">{t('timeline.noArguments')}</p>
              )}
            </dl>
          )}
        </Loaded>
      </div>
      <div class="tl-column">
        <h3>{t('timeline.around')}</h3>
        {around.length === 0 ? (
          <p class="dim">{t('timeline.outermost')}</p>
        ) : (
          <ol class="tl-stack">
            {around.map((one) => (
              <li key={one.id}>
                <EventLink state={state} event={one} />
              </li>
            ))}
          </ol>
        )}
      </div>
      <div class="tl-column">
        <h3>{t('timeline.flows')}</h3>
        {details.causes_total + details.effects_total === 0 && (
          <p class="dim">{t('timeline.noFlows')}</p>
        )}
        <Flows
          state={state}
          title={t('timeline.causes')}
          flows={details.causes}
          total={details.causes_total}
        />
        <Flows
          state={state}
          title={t('timeline.effects')}
          flows={details.effects}
          total={details.effects_total}
        />
      </div>
    </div>
  );
}

function Fact({
  name,
  title,
  children,
}: {
  name: string;
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <div>
      <dt title={title}>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function argument(name: string, value: string | number | boolean): string {
  if (typeof value !== 'number') return String(value);
  if (/bytes$/.test(name)) return units.size(value);
  if (name === 'flops') return units.rate(value, 'FLOP');
  return String(value);
}

function EventLink({ state, event, note }: { state: TimelineState; event: Brief; note?: string }) {
  return (
    <button
      type="button"
      class="tl-link"
      onClick={() => void state.select(event.id, { isToBeShown: true })}
    >
      <span class="mono">{event.name}</span>{' '}
      <span class="dim">
        {units.duration(event.dur_ns)}
        {note && ` · ${note}`}
      </span>
    </button>
  );
}

function Flows({
  state,
  title,
  flows,
  total,
}: {
  state: TimelineState;
  title: string;
  flows: readonly Flow[];
  total: number;
}) {
  if (flows.length === 0) return null;
  return (
    <>
      <h4 class="dim">{title}</h4>
      <ol class="tl-stack">
        {flows.map((flow) => (
          <li key={`${flow.flow} ${flow.id}`}>
            <EventLink state={state} event={flow} note={flow.flow.replaceAll('_', ' → ')} />
          </li>
        ))}
      </ol>
      {total > flows.length && (
        <p class="dim">{t('timeline.more', { count: total - flows.length })}</p>
      )}
    </>
  );
}

interface AreaAnswer {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly [string, string, number, number, number, number, number])[];
  readonly busy_ns: Readonly<Record<string, number>>;
  readonly events: number;
  readonly span_ns: number;
}

function AreaPanel({ state, area }: { state: TimelineState; area: Area }) {
  const parameters = { index: state.meta.index, t0: area.t0, t1: area.t1, rows: ranges(area.rows) };
  const answer = useAnswer<AreaAnswer>(
    area.rows.length === 0 ? null : ofRun(state.run, 'timeline/area'),
    parameters,
  );
  if (area.rows.length === 0) return <Empty text={t('timeline.noRows')} />;
  return (
    <Loaded of={answer}>
      {({ rows, busy_ns: busy, events, span_ns: span }) => {
        const total = rows.reduce((sum, row) => sum + row[4], 0);
        return (
          <div class="tl-table-box">
            <div class="tl-actions">
              <strong>{units.duration(span)}</strong>
              <span class="dim">
                {t('timeline.areaEvents', { events: units.count(events), rows: area.rows.length })}
              </span>
              <span class="dim">
                {t('timeline.areaBusy', {
                  share: units.percent(outermostBusy(state, busy, area) / span),
                })}
              </span>
              <button type="button" onClick={() => state.jump({ t0: area.t0, t1: area.t1 })}>
                {t('timeline.zoomTo')}
              </button>
              <button type="button" onClick={() => state.chooseArea(null)}>
                {t('timeline.clear')} <kbd>Esc</kbd>
              </button>
              {hasServer() && (
                <a
                  class="button"
                  href={address(ofRun(state.run, 'timeline/area'), {
                    ...parameters,
                    format: 'csv',
                  })}
                  download
                >
                  CSV
                </a>
              )}
            </div>
            <table class="tl-table">
              <thead>
                <tr>
                  <th scope="col">{t('timeline.name')}</th>
                  <th scope="col">{t('timeline.kind')}</th>
                  {(['count', 'total', 'self', 'selfShare', 'mean', 'longest'] as const).map(
                    (name) => (
                      <th key={name} scope="col" class="number">
                        {t(`timeline.${name}`)}
                      </th>
                    ),
                  )}
                </tr>
              </thead>
              <tbody>
                {rows
                  .slice(0, EVENTS_SHOWN)
                  .map(([name, kind, count, all, self, mean, longest]) => (
                    <tr key={`${kind} ${name}`}>
                      <td class="mono">
                        <button
                          type="button"
                          class="tl-link"
                          onClick={() => void state.search(name)}
                        >
                          {name}
                        </button>
                      </td>
                      <td>{kind}</td>
                      <td class="number">{units.count(count)}</td>
                      <td class="number">{units.duration(all)}</td>
                      <td class="number">{units.duration(self)}</td>
                      <td class="number">{units.percent(total > 0 ? self / total : 0)}</td>
                      <td class="number">{units.duration(mean)}</td>
                      <td class="number">{units.duration(longest)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
            {rows.length > EVENTS_SHOWN && (
              <p class="dim">{t('timeline.moreNames', { count: rows.length - EVENTS_SHOWN })}</p>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

/** Mean over the tracks of the area of the time in which their outermost chosen row is busy. */
function outermostBusy(
  state: TimelineState,
  busy: Readonly<Record<string, number>>,
  area: Area,
): number {
  const outermost = new Map<number, number>();
  for (const row of area.rows) {
    const track = trackOf(state.meta, row);
    if (track !== null && !outermost.has(track.id)) outermost.set(track.id, busy[row] ?? 0);
  }
  return [...outermost.values()].reduce((sum, one) => sum + one, 0) / Math.max(1, outermost.size);
}

function SearchPanel({ state }: { state: TimelineState }) {
  const found = state.found.value;
  if (state.query.value === '' || found === null) return <Empty text={t('timeline.noSearch')} />;
  if (found.total === 0)
    return <Empty text={t('timeline.nothingFound', { text: state.query.value })} />;
  return (
    <table class="tl-table">
      <thead>
        <tr>
          <th scope="col">{t('timeline.name')}</th>
          <th scope="col">{t('timeline.kind')}</th>
          <th scope="col" class="number">
            {t('timeline.count')}
          </th>
          <th scope="col" class="number">
            {t('timeline.total')}
          </th>
        </tr>
      </thead>
      <tbody>
        {found.names.map(({ code, name, kind, count, total_ns: total }) => (
          <tr key={code}>
            <td class="mono">
              <button type="button" class="tl-link" onClick={() => void state.search(name)}>
                {name}
              </button>
            </td>
            <td>{kind}</td>
            <td class="number">{units.count(count)}</td>
            <td class="number">{units.duration(total)}</td>
          </tr>
        ))}
      </tbody>
      {found.names_total > found.names.length && (
        <caption class="dim">
          {t('timeline.moreNames', { count: found.names_total - found.names.length })}
        </caption>
      )}
    </table>
  );
}

interface EventsAnswer {
  readonly rows: readonly (readonly [number, string, string, number, number, number, number])[];
}

/** The same as the picture, for who cannot see it: the longest events of what is in view. */
function EventsPanel({ state }: { state: TimelineState }) {
  const view = state.calmView.value;
  const rows = rowsOf([...state.layout.value.pinned, ...state.layout.value.lanes]).sort(
    (a, b) => a - b,
  );
  const parameters = {
    index: state.meta.index,
    t0: Math.floor(view.t0),
    t1: Math.ceil(view.t1),
    rows: ranges(rows),
    limit: EVENTS_SHOWN,
  };
  const answer = useAnswer<EventsAnswer>(
    rows.length === 0 ? null : ofRun(state.run, 'timeline/events'),
    parameters,
  );
  return (
    <Loaded of={answer}>
      {({ rows: listed }) => (
        <div class="tl-table-box">
          <div class="tl-actions">
            <span class="dim">{t('timeline.longestShown', { count: listed.length })}</span>
            {hasServer() && (
              <a
                class="button"
                href={address(ofRun(state.run, 'timeline/events'), {
                  ...parameters,
                  limit: 5000,
                  format: 'csv',
                })}
                download
              >
                CSV
              </a>
            )}
          </div>
          <table class="tl-table" data-testid="events-in-view">
            <thead>
              <tr>
                <th scope="col">{t('timeline.name')}</th>
                <th scope="col">{t('timeline.kind')}</th>
                <th scope="col">{t('timeline.track')}</th>
                {(['start', 'duration', 'self'] as const).map((name) => (
                  <th key={name} scope="col" class="number">
                    {t(`timeline.${name}`)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {listed.map(([id, name, kind, row, ts, dur, self]) => {
                const track = trackOf(state.meta, row);
                return (
                  <tr key={id} class={state.selected.value?.event.id === id ? 'is-selected' : ''}>
                    <td class="mono">
                      <button
                        type="button"
                        class="tl-link"
                        onClick={() => void state.select(id, { isToBeShown: true })}
                      >
                        {name}
                      </button>
                    </td>
                    <td>{kind}</td>
                    <td>
                      {track === null
                        ? ''
                        : `${t('timeline.rank', { rank: track.rank })} · ${trackTitle(track)}`}
                    </td>
                    <td class="number">{units.moment(ts)}</td>
                    <td class="number">{units.duration(dur)}</td>
                    <td class="number">{units.duration(self)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </Loaded>
  );
}
