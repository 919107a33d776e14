/** Every operator by shape, module and direction. A click shows its calls over time. */

import type { Parameters } from '../../api';
import { ProgressNote } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import { headings, useIsOfDevice } from './clock';
import { Nothing } from './nothing';

const ON_HOST = [
  'name',
  'scope',
  'direction',
  'input_shapes',
  'calls',
  'self_ns',
  'share',
  'total_ns',
  'mean_ns',
  'flops_per_s',
  'bytes_per_s',
];
const ON_DEVICE = [
  'name',
  'scope',
  'input_shapes',
  'calls',
  'device_ns',
  'share',
  'self_ns',
  'flops_per_s',
  'bytes_per_s',
  'direction',
  'device',
  'total_ns',
];

export function OperatorTable({ run, parameters }: { run: string; parameters: Parameters }) {
  const { op, opScope } = route.value.query;
  const isOfDevice = useIsOfDevice(run, parameters);
  if (isOfDevice === null) return <ProgressNote progress={null} />;
  return (
    <Section title={t('operators.operators')} about={t('operators.operatorsAbout')}>
      <TableView
        run={run}
        name="operators"
        id="ops"
        label={t('operators.operators')}
        parameters={parameters}
        columns={isOfDevice ? ON_DEVICE : ON_HOST}
        headings={headings(isOfDevice)}
        order={isOfDevice ? 'device_ns' : 'self_ns'}
        isDescending
        rows={16}
        isTall
        onRow={(row) =>
          setQuery(
            { op: String(row.name), opScope: row.scope === null ? null : String(row.scope) },
            { push: true },
          )
        }
        isSelected={(row) => row.name === op && (row.scope ?? undefined) === opScope}
        empty={<Nothing run={run} parameters={parameters} why={t('operators.none')} />}
      />
    </Section>
  );
}
