/** Two runs side by side, and what explains the difference. */

import { useAnswer } from '../../api';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { laid, StepBar } from '../../components/step_bar';
import { sentence } from '../../components/words';
import { language, t } from '../../i18n';
import { href, route, setQuery } from '../../router';
import * as units from '../../units';
import type { RunsAnswer } from '../runs/run';
import { rowsOf, type ComparisonAnswer, type PartRow } from './answer';
import { Amounts, Devices, Explanation, Operators, Parts, Settings } from './tables';
import './compare.css';

export default function Compare() {
  const { a = '', b = '' } = route.value.query;
  const runs = useAnswer<RunsAnswer>('runs');
  return (
    <div class="page compare">
      <h1>{t('compare.title')}</h1>
      <Loaded of={runs}>
        {({ runs: all }) => (
          <Choose
            ids={all.filter((run) => run.problem === null).map((run) => run.id)}
            a={a}
            b={b}
          />
        )}
      </Loaded>
      {a === '' || b === '' ? (
        <p class="dim">{t('compare.how')}</p>
      ) : a === b ? (
        <p>{t('compare.same')}</p>
      ) : (
        <Compared key={`${a} ${b}`} a={a} b={b} />
      )}
    </div>
  );
}

function Choose({ ids, a, b }: { ids: readonly string[]; a: string; b: string }) {
  return (
    <div class="choose-two">
      <RunChoice name="a" label={t('compare.a')} ids={ids} value={a} />
      <button
        type="button"
        onClick={() => setQuery({ a: b, b: a }, { push: true })}
        disabled={a === '' && b === ''}
      >
        ⇄ {t('compare.swap')}
      </button>
      <RunChoice name="b" label={t('compare.b')} ids={ids} value={b} />
    </div>
  );
}

function RunChoice({
  name,
  label,
  ids,
  value,
}: {
  name: string;
  label: string;
  ids: readonly string[];
  value: string;
}) {
  const options = value === '' || ids.includes(value) ? ids : [value, ...ids];
  return (
    <label class="run-choice">
      <span>{label}</span>
      <select
        value={value}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value }, { push: true })}
      >
        <option value="">{t('compare.choose')}</option>
        {options.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
      {value !== '' && (
        <a class="small" href={href('overview', value)}>
          {t('overview.title')} →
        </a>
      )}
    </label>
  );
}

function Compared({ a, b }: { a: string; b: string }) {
  const answer = useAnswer<ComparisonAnswer>('compare', { a, b });
  return (
    <Loaded of={answer}>
      {(value) => (
        <div class="stack">
          <div
            class={`comparison-verdict ${value.is_different ? ((value.step_ratio ?? 1) > 1 ? 'is-worse' : 'is-better') : ''}`}
            role="status"
          >
            <strong>{verdict(value)}</strong>
            <span class="dim small">
              {t('compare.counted', {
                a: units.count(value.steps_counted[0]),
                b: units.count(value.steps_counted[1]),
              })}
            </span>
          </div>
          <Sides answer={value} a={a} b={b} />
          <Explanation answer={value} />
          <div class="columns">
            <Parts answer={value} />
            <Devices answer={value} />
            <Amounts answer={value} />
          </div>
          <Operators answer={value} />
          <Settings answer={value} />
        </div>
      )}
    </Loaded>
  );
}

/** As the server says it; in other languages from its figures. */
function verdict({
  verdict: told,
  is_different: isDifferent,
  step_ratio: ratio,
  step_ratio_low: low,
  step_ratio_high: high,
}: ComparisonAnswer): string {
  if (language.value === 'en') return sentence(told);
  if (ratio === null || low === null || high === null) return t('compare.verdict.few');
  const [change, least, most] = [ratio - 1, low - 1, high - 1].map((one) =>
    units.percent(isDifferent ? Math.abs(one) : one),
  ) as [string, string, string];
  const key = !isDifferent
    ? 'compare.verdict.same'
    : ratio > 1
      ? 'compare.verdict.slower'
      : 'compare.verdict.faster';
  return t(key, {
    change,
    least: ratio > 1 || !isDifferent ? least : most,
    most: ratio > 1 || !isDifferent ? most : least,
  });
}

/** Both steps on one scale: the shorter leaves room. */
function Sides({ answer, a, b }: { answer: ComparisonAnswer; a: string; b: string }) {
  const rows = rowsOf<PartRow>(answer.steps);
  const whole = Math.max(
    ...rows.filter((row) => row.part === 'step').flatMap((row) => [row.a_ns, row.b_ns]),
  );
  const pieces = (side: 'a_ns' | 'b_ns') => laid(withData(rows, side));
  return (
    <Section title={t('compare.sides')} about={t('compare.sidesAbout')}>
      <div class="sides">
        <span class="side-name">
          A <span class="mono dim">{a}</span>
        </span>
        <StepBar pieces={pieces('a_ns')} whole_ns={whole} label={`A ${a}`} />
        <span class="side-name">
          B <span class="mono dim">{b}</span>
        </span>
        <StepBar pieces={pieces('b_ns')} whole_ns={whole} label={`B ${b}`} />
      </div>
    </Section>
  );
}

/** In the bar the wait for data is part of the gap, as on the page of the steps. */
function withData(rows: readonly PartRow[], side: 'a_ns' | 'b_ns'): Map<string, number> {
  const lengths = new Map(rows.map((row) => [row.part, row[side]]));
  lengths.set('gap', (lengths.get('gap') ?? 0) + (lengths.get('data') ?? 0));
  return lengths;
}
