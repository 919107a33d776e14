/** What is left in use at the end of each step: a line that rises is memory that is never given back. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Lines } from '../../components/lines';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import * as units from '../../units';

interface StepMemory {
  readonly step: number;
  readonly end_bytes: number;
  readonly peak_bytes: number;
}

const MOST_STEPS = 20_000;

export function Growth({
  run,
  parameters,
  device,
}: {
  run: string;
  parameters: Parameters;
  device: string;
}) {
  const where = `device:eq:${device}`;
  const table = useTable(run, 'memory-steps', { ...parameters, where, limit: MOST_STEPS });
  return (
    <Section title={t('memory.growth')} about={t('memory.growthAbout')}>
      <Loaded of={table}>
        {(answer) =>
          answer.total === 0 ? (
            <p class="dim">{t('memory.noSteps')}</p>
          ) : (
            <Rising steps={records<StepMemory>(answer)} />
          )
        }
      </Loaded>
      <TableView
        run={run}
        name="memory-steps"
        id="growth"
        label={t('memory.growth')}
        parameters={parameters}
        where={[where]}
        columns={['step', 'ts_ns', 'end_bytes', 'peak_bytes', 'growth_bytes']}
        rows={8}
        hasSearch={false}
      />
    </Section>
  );
}

function Rising({ steps }: { steps: readonly StepMemory[] }) {
  const x = useMemo(() => steps.map((row) => row.step), [steps]);
  const [first, last] = [steps[0], steps[steps.length - 1]];
  // Memory that is measured less often than steps end has one value for a step.
  const hasPeaks = steps.some((row) => row.peak_bytes !== row.end_bytes);
  const grown = first && last ? last.end_bytes - first.end_bytes : 0;
  return (
    <>
      <dl class="key-figures">
        <div>
          <dt>{t('memory.fromTo', { first: first?.step ?? 0, last: last?.step ?? 0 })}</dt>
          <dd>
            {grown >= 0 ? '+' : '−'}
            {units.size(Math.abs(grown))}
          </dd>
        </div>
        {steps.length > 1 && last && first && (
          <div>
            <dt>{t('memory.aStep')}</dt>
            <dd>
              {grown >= 0 ? '+' : '−'}
              {units.size(Math.abs(grown) / (last.step - first.step))}
            </dd>
          </div>
        )}
      </dl>
      <Lines
        label={t('memory.growth')}
        x={x}
        series={[
          {
            label: t('memory.atEnd'),
            values: steps.map((row) => row.end_bytes),
            color: '--kind-1',
          },
          ...(hasPeaks
            ? [
                {
                  label: t('memory.peakOfStep'),
                  values: steps.map((row) => row.peak_bytes),
                  color: '--kind-2' as const,
                },
              ]
            : []),
        ]}
        formatX={String}
        isWholeX
        formatY={(bytes) => units.size(bytes)}
        labelX={t('table.step')}
        isBytes
        fromZero={false}
      />
    </>
  );
}
