/** Why a table of operators, modules or kernels is empty: not recorded at all, or not in the chosen steps. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Missing } from '../../components/loaded';
import { t } from '../../i18n';
import { setQuery } from '../../router';

interface Props {
  readonly run: string;
  readonly parameters: Parameters;
  /** The note where nothing was recorded in the whole run. */
  readonly why: string;
  readonly command?: string;
}

export function Nothing({
  run,
  parameters,
  why,
  command = 'strobe run --steps 6:11 train.py',
}: Props) {
  const steps = parameters.steps == null ? null : String(parameters.steps);
  return steps === null ? (
    <Missing why={why} command={command} />
  ) : (
    <NotInTheseSteps run={run} parameters={parameters} steps={steps} />
  );
}

/** Other steps may well have what these have not. */
function NotInTheseSteps({
  run,
  parameters,
  steps,
}: {
  run: string;
  parameters: Parameters;
  steps: string;
}) {
  const table = useTable(run, 'steps', {
    rank: parameters.rank,
    where: 'is_recorded:eq:true',
    columns: 'step',
    limit: 20_000,
  });
  const recorded =
    table.state === 'ready' ? records<{ step: number }>(table.value).map((row) => row.step) : [];
  const [first, last] = [recorded[0], recorded.at(-1)];
  const shown = steps.replace(':', '–');
  return (
    <div class="note missing">
      <p>
        {first === undefined
          ? t('operators.noneInSteps', { steps: shown })
          : t('operators.noneInStepsBut', {
              steps: shown,
              recorded: first === last ? first : `${first}–${last}`,
            })}
      </p>
      <p class="note-ways">
        {first !== undefined && (
          <button
            type="button"
            onClick={() => setQuery({ steps: `${first}:${last}` }, { push: true })}
          >
            {t('table.steps', { steps: first === last ? first : `${first}–${last}` })}
          </button>
        )}
        <button type="button" onClick={() => setQuery({ steps: null }, { push: true })}>
          {t('steps.all')}
        </button>
      </p>
    </div>
  );
}
