/** Everything under the base directory. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import { useAnswer } from '../../api';
import { Command, Loaded, Missing } from '../../components/loaded';
import { maybe, t } from '../../i18n';
import { useShortcuts } from '../../keys';
import { go, href, route, setQuery } from '../../router';
import { ChangeRun } from './change';
import { isChanging, matches, type ListedRun, type RunsAnswer } from './run';
import { RunsTable } from './table';
import './runs.css';

/** How often the list is asked for again: often while a run grows or is being read, else to notice new ones. */
const SOON_MS = 2000;
const LATER_MS = 10000;

/** Rows put into the page at first; thousands would make it slow. */
const FIRST_ROWS = 200;

export default function Runs() {
  const [revision, setRevision] = useState(0);
  const answer = useAnswer<RunsAnswer>('runs', {}, revision);
  useEffect(() => {
    if (answer.state === 'loading') return;
    const isSoon = answer.state === 'ready' && answer.value.runs.some(isChanging);
    const timer = setTimeout(() => setRevision((now) => now + 1), isSoon ? SOON_MS : LATER_MS);
    return () => clearTimeout(timer);
  }, [answer]);
  return (
    <div class="page runs">
      <Loaded of={answer}>
        {(value) => <List {...value} onChanged={() => setRevision((now) => now + 1)} />}
      </Loaded>
    </div>
  );
}

function List({ base_dir, runs, onChanged }: RunsAnswer & { onChanged: () => void }) {
  const { q = '', tag = '', state = '', chosen: chosenText = '' } = route.value.query;
  const chosen = useMemo(
    () => chosenText.split('|').filter((id) => runs.some((run) => run.id === id)),
    [chosenText, runs],
  );
  const [changing, setChanging] = useState<ListedRun | null>(null);
  const [most, setMost] = useState(FIRST_ROWS);
  const shown = useMemo(
    () =>
      runs.filter(
        (run) =>
          matches(run, q) &&
          (tag === '' || run.tags.includes(tag)) &&
          (state === '' || run.state === state),
      ),
    [runs, q, tag, state],
  );
  // Two at most: choosing a third lets the first go.
  const choose = (id: string) => {
    const next = chosen.includes(id)
      ? chosen.filter((other) => other !== id)
      : [...chosen, id].slice(-2);
    setQuery({ chosen: next.join('|') });
  };
  const compare = () => {
    if (chosen.length === 2) go(href('compare', null, { a: chosen[0]!, b: chosen[1]! }));
  };
  useShortcuts(
    'runs.keys',
    useMemo(
      () => [{ code: 'KeyC', does: 'runs.keys.compare' as const, run: compare }],
      [chosenText],
    ),
  );
  return (
    <>
      <header class="page-head">
        <h1>{t('runs.title')}</h1>
        <span class="dim mono">{t('runs.in', { folder: base_dir })}</span>
      </header>
      {runs.length === 0 ? (
        <Missing
          why={`${t('runs.none', { folder: base_dir })} ${t('runs.noneHow')}`}
          command={`cd ${base_dir} && strobe run train.py`}
        />
      ) : (
        <section class="section" aria-label={t('runs.title')}>
          <div class="toolbar">
            <input
              type="search"
              value={q}
              placeholder={t('runs.search')}
              aria-label={t('runs.search')}
              onInput={(event) => setQuery({ q: event.currentTarget.value })}
            />
            <Choice
              label={t('runs.column.state')}
              any={t('runs.stateAll')}
              name="state"
              value={state}
              options={unique(runs.map((run) => run.state))}
              show={(one) => maybe(`runs.state.${one}`) ?? one}
            />
            <Choice
              label={t('runs.column.tags')}
              any={t('runs.tagAll')}
              name="tag"
              value={tag}
              options={unique(runs.flatMap((run) => run.tags))}
              show={(one) => one}
            />
            <span class="dim" role="status">
              {t('runs.count', { shown: shown.length, all: runs.length })}
            </span>
            <button
              type="button"
              class="primary push-right"
              disabled={chosen.length !== 2}
              title={t('runs.compareHow')}
              onClick={compare}
            >
              {t('runs.compareTwo')}
            </button>
          </div>
          {shown.length === 0 ? (
            <p>
              {t('runs.noMatch')}{' '}
              <button type="button" onClick={() => setQuery({ q: null, tag: null, state: null })}>
                {t('runs.showAll')}
              </button>
            </p>
          ) : (
            <RunsTable
              runs={shown.slice(0, most)}
              chosen={chosen}
              onChoose={choose}
              onChange={setChanging}
            />
          )}
          {shown.length > most && (
            <p>
              <button type="button" onClick={() => setMost(most + FIRST_ROWS)}>
                {t('runs.more', { n: Math.min(FIRST_ROWS, shown.length - most) })}
              </button>
            </p>
          )}
        </section>
      )}
      {runs.length > 0 && runs.length < 3 && (
        <p class="dim next-step">
          {t('runs.noneHow')} <Command text={`cd ${base_dir} && strobe run train.py`} />
        </p>
      )}
      {changing !== null && (
        <ChangeRun
          run={changing}
          onDone={(isChanged) => {
            setChanging(null);
            if (isChanged) onChanged();
          }}
        />
      )}
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly any: string;
  readonly name: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly show: (option: string) => string;
}

function Choice({ label, any, name, value, options, show }: ChoiceProps) {
  if (options.length < 2 && value === '') return null;
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <option value="">{any}</option>
      {options.map((option) => (
        <option key={option} value={option}>
          {show(option)}
        </option>
      ))}
    </select>
  );
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
