/** Who held the memory at its peak, by module or by operator. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { PartsOfWhole, type Part } from '../../components/donut';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';

interface Holder {
  readonly scope: string | null;
  readonly name: string | null;
  readonly bytes: number;
}

const SHOWN = 12;
const MOST_HOLDERS = 5_000;

export function Holders({
  run,
  parameters,
  device,
}: {
  run: string;
  parameters: Parameters;
  device: string;
}) {
  const where = `device:eq:${device}`;
  const table = useTable(run, 'memory-holders', { ...parameters, where, limit: MOST_HOLDERS });
  const by = route.value.query.held === 'operator' ? 'name' : 'scope';
  return (
    <div class="side-by-side">
      <Section
        title={t('memory.holders')}
        about={t('memory.holdersAbout')}
        tools={
          <>
            <button
              type="button"
              aria-pressed={by === 'scope'}
              onClick={() => setQuery({ held: null })}
            >
              {t('memory.byModule')}
            </button>
            <button
              type="button"
              aria-pressed={by === 'name'}
              onClick={() => setQuery({ held: 'operator' })}
            >
              {t('memory.byOperator')}
            </button>
          </>
        }
      >
        <Loaded of={table}>{(answer) => <Held holders={records<Holder>(answer)} by={by} />}</Loaded>
      </Section>
      <Section title={t('memory.holdersTable')}>
        <TableView
          run={run}
          name="memory-holders"
          id="holders"
          label={t('memory.holdersTable')}
          parameters={parameters}
          where={[where]}
          columns={['scope', 'name', 'bytes', 'share', 'blocks']}
          rows={10}
        />
      </Section>
    </div>
  );
}

function Held({ holders, by }: { holders: readonly Holder[]; by: 'scope' | 'name' }) {
  const sums = new Map<string, number>();
  for (const holder of holders) {
    const key = holder[by] || t(by === 'scope' ? 'memory.noModule' : 'memory.noOperator');
    sums.set(key, (sums.get(key) ?? 0) + holder.bytes);
  }
  const total = holders.reduce((sum, holder) => sum + holder.bytes, 0);
  const parts: Part[] = [...sums]
    .sort((a, b) => b[1] - a[1])
    .slice(0, SHOWN)
    .map(([key, bytes]) => ({ key, label: key, value: bytes, text: units.size(bytes) }));
  return <PartsOfWhole label={t('memory.holders')} parts={parts} total={total} form="bars" />;
}
