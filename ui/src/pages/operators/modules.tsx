/** The model's own tree: an icicle, and the same as a table. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters, type TableAnswer } from '../../api';
import { useTable } from '../../tables';
import { Icicle, type ModuleBranch } from '../../components/icicle';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t, type Key } from '../../i18n';
import { route, setQuery } from '../../router';
import { headings } from './clock';
import { Nothing } from './nothing';

interface ModuleRow {
  readonly scope: string;
  readonly class: string | null;
  readonly calls: number;
  readonly operators_ns: number;
  readonly forward_operators_ns: number;
  readonly backward_operators_ns: number;
  readonly forward_ns: number;
  readonly device_ns: number | null;
  readonly forward_device_ns: number | null;
  readonly backward_device_ns: number | null;
  readonly share: number;
}

const MEASURES = ['operators_ns', 'forward_operators_ns', 'backward_operators_ns'] as const;
type Measure = (typeof MEASURES)[number];
/** The same of the device, where there is one. */
const OF_DEVICE = {
  operators_ns: 'device_ns',
  forward_operators_ns: 'forward_device_ns',
  backward_operators_ns: 'backward_device_ns',
} as const;

/** Models have hundreds of modules, the largest thousands. */
const MOST_MODULES = 20_000;

export function Modules({ run, parameters }: { run: string; parameters: Parameters }) {
  const table = useTable(run, 'modules', { ...parameters, limit: MOST_MODULES });
  const measure = MEASURES.find((one) => one === route.value.query.by) ?? 'operators_ns';
  return (
    <Loaded of={table}>
      {(answer) =>
        answer.total === 0 ? (
          <Nothing run={run} parameters={parameters} why={t('operators.noModules')} />
        ) : (
          <div class="stack">
            <Section
              title={t('operators.modules')}
              about={t(
                hasDevice(answer) ? 'operators.modulesAboutDevice' : 'operators.modulesAbout',
              )}
              tools={MEASURES.map((one) => (
                <button
                  key={one}
                  type="button"
                  aria-pressed={one === measure}
                  onClick={() => setQuery({ by: one === 'operators_ns' ? null : one })}
                >
                  {t(`operators.${one}` as Key)}
                </button>
              ))}
            >
              <Tree rows={records<ModuleRow>(answer)} measure={measure} />
            </Section>
            <Section title={t('operators.modulesTable')}>
              <TableView
                run={run}
                name="modules"
                id="modules"
                label={t('operators.modulesTable')}
                parameters={parameters}
                columns={
                  hasDevice(answer)
                    ? [
                        'scope',
                        'class',
                        'calls',
                        'device_ns',
                        'share',
                        'operators_ns',
                        'forward_device_ns',
                        'backward_device_ns',
                        'forward_ns',
                      ]
                    : [
                        'scope',
                        'class',
                        'calls',
                        'operators_ns',
                        'share',
                        'forward_operators_ns',
                        'backward_operators_ns',
                        'forward_ns',
                        'forward_exclusive_ns',
                      ]
                }
                headings={headings(hasDevice(answer))}
                onRow={(row) => setQuery({ module: String(row.scope) }, { push: true })}
                isSelected={(row) => row.scope === route.value.query.module}
              />
            </Section>
          </div>
        )
      }
    </Loaded>
  );
}

function hasDevice(answer: TableAnswer): boolean {
  return records<ModuleRow>(answer).some((row) => row.device_ns !== null);
}

function timeOf(row: ModuleRow, measure: Measure): number {
  return row[OF_DEVICE[measure]] ?? row[measure];
}

function Tree({ rows, measure }: { rows: readonly ModuleRow[]; measure: Measure }) {
  const branches = useMemo(
    () =>
      rows.map((row): ModuleBranch => ({
        scope: row.scope,
        kind: row.class,
        calls: row.calls,
        value: timeOf(row, measure),
        share:
          timeOf(row, 'operators_ns') > 0
            ? (row.share * timeOf(row, measure)) / timeOf(row, 'operators_ns')
            : 0,
      })),
    [rows, measure],
  );
  const root = route.value.query.module ?? null;
  return (
    <>
      <Icicle
        label={t('operators.modules')}
        branches={branches}
        root={root}
        onRoot={(module) => setQuery({ module }, { push: true })}
      />
      {root !== null && (
        <p>
          <button
            type="button"
            onClick={() =>
              setQuery(
                { tab: 'operators', 'ops.where': `scope:has:${root}`, op: null },
                { push: true },
              )
            }
          >
            {t('operators.operatorsOf', { scope: root })}
          </button>
        </p>
      )}
    </>
  );
}
