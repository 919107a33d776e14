/** The operators that begin the forward pass and end the backward pass. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Command, Loaded } from '../../components/loaded';
import { onTimeline } from '../../components/places';
import { Section } from '../../components/section';
import { maybe, t } from '../../i18n';
import * as units from '../../units';

interface Edge {
  readonly edge: string;
  readonly name: string;
  readonly scope: string | null;
  readonly steps: number;
  readonly share: number;
  readonly ts_ns: number;
  readonly event_id: number;
}

export function Edges({ run, parameters }: { run: string; parameters: Parameters }) {
  const answer = useTable(run, 'step-edges', { ...parameters, limit: 6 });
  return (
    <Section title={t('steps.edges')}>
      <Loaded of={answer}>{(value) => <Told run={run} edges={records<Edge>(value)} />}</Loaded>
    </Section>
  );
}

function Told({ run, edges }: { run: string; edges: readonly Edge[] }) {
  if (edges.length === 0) return <p>{t('steps.edgesMissing')}</p>;
  return (
    <div class="edges">
      <dl>
        {edges.map((edge) => (
          <div key={`${edge.edge} ${edge.name} ${edge.scope}`}>
            <dt>{maybe(`steps.edge.${edge.edge}`) ?? edge.edge}</dt>
            <dd>
              <a
                class="mono"
                href={onTimeline(run, { event: edge.event_id, ts_ns: edge.ts_ns, dur_ns: 0 })}
              >
                {edge.name}
              </a>
              {edge.scope !== null && <span class="mono dim"> {edge.scope}</span>}
              <span class="dim small">
                {' '}
                {t('steps.edgeSteps', { count: edge.steps, share: units.percent(edge.share) })}
              </span>
            </dd>
          </div>
        ))}
      </dl>
      <p class="dim small">{t('steps.edgesHow')}</p>
      <Command text="FP_POINT=aten::conv2d BP_POINT=aten::mm strobe run train.py" />
    </div>
  );
}
