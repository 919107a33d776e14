/** The kinds of operator by their self time: a ring or bars of the first twenty, and all of them as a table. */

import { records, type Parameters, type TableAnswer } from '../../api';
import { useTable } from '../../tables';
import { PartsOfWhole, type Part } from '../../components/donut';
import { Cut } from '../../components/cut';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView, type Row } from '../../components/table';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import { headings } from './clock';
import { Nothing } from './nothing';

interface TypeRow {
  readonly name: string;
  readonly self_ns: number;
  readonly device_ns: number | null;
  readonly share: number;
}

const SHOWN = 20;

function isOfDevice(answer: TableAnswer): boolean {
  return records<TypeRow>(answer).some((row) => row.device_ns !== null);
}

export function Types({ run, parameters }: { run: string; parameters: Parameters }) {
  const form = route.value.query.chart === 'bars' ? 'bars' : 'ring';
  const top = useTable(run, 'operator-types', { ...parameters, limit: SHOWN });
  const selected = route.value.query.op ?? null;
  return (
    <Loaded of={top}>
      {(answer) =>
        answer.total === 0 ? (
          <Nothing run={run} parameters={parameters} why={t('operators.none')} />
        ) : (
          <div class="side-by-side">
            <Section
              title={t('operators.topTypes', { count: Math.min(SHOWN, answer.total) })}
              about={t(isOfDevice(answer) ? 'operators.deviceTime' : 'operators.selfTime')}
              tools={
                <>
                  <button
                    type="button"
                    aria-pressed={form === 'ring'}
                    onClick={() => setQuery({ chart: null })}
                  >
                    {t('operators.ring')}
                  </button>
                  <button
                    type="button"
                    aria-pressed={form === 'bars'}
                    onClick={() => setQuery({ chart: 'bars' })}
                  >
                    {t('operators.bars')}
                  </button>
                </>
              }
            >
              <TopTypes rows={records<TypeRow>(answer)} form={form} selected={selected} />
            </Section>
            <Section title={t('operators.allTypes')} about={t('operators.typesAbout')}>
              <TableView
                run={run}
                name="operator-types"
                id="types"
                label={t('operators.allTypes')}
                parameters={parameters}
                columns={
                  isOfDevice(answer)
                    ? ['name', 'calls', 'device_ns', 'share', 'self_ns', 'total_ns']
                    : ['name', 'calls', 'self_ns', 'share', 'total_ns', 'mean_ns']
                }
                headings={headings(isOfDevice(answer))}
                order={isOfDevice(answer) ? 'device_ns' : 'self_ns'}
                isDescending
                rows={18}
                isTall
                onRow={(row) => setQuery({ op: String(row.name), opScope: null }, { push: true })}
                isSelected={(row) => row.name === selected}
                cell={(column, row) => (column === 'name' ? <TypeName row={row} /> : undefined)}
              />
            </Section>
          </div>
        )
      }
    </Loaded>
  );
}

function TopTypes({
  rows,
  form,
  selected,
}: {
  rows: readonly TypeRow[];
  form: 'ring' | 'bars';
  selected: string | null;
}) {
  const first = rows[0];
  const time = (row: TypeRow) => row.device_ns ?? row.self_ns;
  const total =
    first && first.share > 0
      ? time(first) / first.share
      : rows.reduce((sum, row) => sum + time(row), 0);
  const parts: Part[] = rows
    .filter((row) => time(row) > 0)
    .map((row) => ({
      key: row.name,
      label: row.name,
      value: time(row),
      text: units.duration(time(row)),
    }));
  return (
    <PartsOfWhole
      label={t('operators.shareOfTypes')}
      parts={parts}
      total={total}
      form={form}
      selected={selected}
      onPick={(part) => showOperators(part.key)}
    />
  );
}

/** From a type to its operators. */
function showOperators(name: string): void {
  setQuery(
    { tab: 'operators', 'ops.where': `name:eq:${name}`, op: name, opScope: null },
    { push: true },
  );
}

function TypeName({ row }: { row: Row }) {
  const name = String(row.name);
  return (
    <a
      href={`#${name}`}
      title={t('operators.showOperatorsOf', { name })}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        showOperators(name);
      }}
    >
      <Cut text={name} />
    </a>
  );
}
