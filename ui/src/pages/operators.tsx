/** Which operators, kernels and modules training spends its time in. */

import { ChosenBar, useChosen } from '../components/chosen';
import { chosenTab, Tabs } from '../components/tabs';
import { t } from '../i18n';
import { route } from '../router';
import { CallHistory } from './operators/call_history';
import { Kernels } from './operators/kernels';
import { Modules } from './operators/modules';
import { OperatorTable } from './operators/operator_table';
import { Types } from './operators/types';

export default function Operators({ run }: { run: string }) {
  const tabs = [
    { name: 'types', title: t('operators.types') },
    { name: 'operators', title: t('operators.operators') },
    { name: 'modules', title: t('operators.modules') },
    { name: 'kernels', title: t('operators.kernels') },
  ];
  const tab = chosenTab(tabs);
  const { parameters, ranks } = useChosen(run);
  const { op, opScope } = route.value.query;
  const history = op !== undefined && (
    <CallHistory run={run} name={op} scope={opScope ?? null} parameters={parameters} />
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t('operators.title')}</h1>
        <Tabs tabs={tabs} label={t('operators.title')} />
        <ChosenBar ranks={ranks} />
      </div>
      {tab === 'types' && <Types run={run} parameters={parameters} />}
      {tab === 'operators' && <OperatorTable run={run} parameters={parameters} />}
      {tab === 'modules' && <Modules run={run} parameters={parameters} />}
      {tab === 'kernels' && <Kernels run={run} parameters={parameters} />}
      {tab !== 'modules' && history}
    </div>
  );
}
