/** The input pipeline: which steps were starved, and which stage of the pipeline starves them. */

import { ChosenBar, useChosen } from '../components/chosen';
import { chosenTab, Tabs } from '../components/tabs';
import { t } from '../i18n';
import { PipelineTab } from './pipeline/pipeline_tab';
import { StepGapTab } from './pipeline/step_gap_tab';
import './pipeline/pipeline.css';

export default function Pipeline({ run }: { run: string }) {
  const tabs = [
    { name: 'gap', title: t('pipeline.stepGap') },
    { name: 'pipeline', title: t('pipeline.pipeline') },
  ];
  const { parameters, ranks } = useChosen(run);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t('pipeline.title')}</h1>
        <Tabs tabs={tabs} label={t('pipeline.title')} />
        <ChosenBar ranks={ranks} />
      </div>
      {chosenTab(tabs) === 'gap' ? (
        <StepGapTab run={run} parameters={parameters} />
      ) : (
        <PipelineTab run={run} parameters={parameters} />
      )}
    </div>
  );
}
