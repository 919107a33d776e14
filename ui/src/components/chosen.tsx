/** The rank and the steps that a page of a run is about: in the address, and the same on every page. */

import { ofRun, useAnswer, type Parameters } from '../api';
import { t } from '../i18n';
import { route, setQuery } from '../router';

interface About {
  readonly ranks: readonly number[];
}

/** For the server. Where a run has several ranks, one at a time: their times do not add up to anything. */
export function useChosen(run: string): {
  readonly parameters: Parameters;
  readonly ranks: readonly number[];
} {
  const about = useAnswer<About>(ofRun(run));
  const ranks = about.state === 'ready' ? about.value.ranks : [];
  const { rank, steps } = route.value.query;
  const first = ranks.length > 1 ? String(ranks[0]) : null;
  return { parameters: { rank: rank ?? first, steps: steps ?? null }, ranks };
}

export function ChosenBar({ ranks }: { ranks: readonly number[] }) {
  const { steps } = route.value.query;
  if (ranks.length < 2 && steps === undefined) return null;
  return (
    <div class="chosen">
      <RankChoice ranks={ranks} />
      {steps !== undefined && (
        <button
          type="button"
          class="filter"
          aria-label={t('table.allSteps')}
          onClick={() => setQuery({ steps: null }, { push: true })}
        >
          {t('table.steps', { steps: steps.replace(':', '–') })} <span aria-hidden="true">×</span>
        </button>
      )}
    </div>
  );
}

export function RankChoice({ ranks }: { ranks: readonly number[] }) {
  if (ranks.length < 2) return null;
  return (
    <label>
      {t('table.rank')}{' '}
      <select
        value={route.value.query.rank ?? String(ranks[0])}
        onChange={(event) => setQuery({ rank: event.currentTarget.value }, { push: true })}
      >
        {ranks.map((one) => (
          <option key={one} value={String(one)}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}
