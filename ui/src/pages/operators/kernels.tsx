/** What ran on devices: kernels, collectives, copies and fills, and the operator that launched them. */

import type { Parameters } from '../../api';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import { Nothing } from './nothing';

export function Kernels({ run, parameters }: { run: string; parameters: Parameters }) {
  return (
    <Section title={t('operators.kernels')} about={t('operators.kernelsAbout')}>
      <TableView
        run={run}
        name="kernels"
        id="kernels"
        label={t('operators.kernels')}
        parameters={parameters}
        columns={[
          'name',
          'kind',
          'device',
          'calls',
          'total_ns',
          'share',
          'mean_ns',
          'max_ns',
          'operator',
          'scope',
        ]}
        order="total_ns"
        isDescending
        rows={18}
        isTall
        onRow={(row) => setQuery({ op: String(row.name), opScope: null }, { push: true })}
        isSelected={(row) => row.name === route.value.query.op}
        empty={
          <Nothing
            run={run}
            parameters={parameters}
            why={t('operators.noKernels')}
            command="strobe import trace.json -o RUN"
          />
        }
      />
    </Section>
  );
}
