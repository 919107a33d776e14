/** The average step to scale, and the statistics of its parts. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Loaded } from '../../components/loaded';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { Section } from '../../components/section';
import {
  laid,
  partDoc,
  PartMark,
  partTitle,
  StepBar,
  type PartName,
} from '../../components/step_bar';
import { language, t } from '../../i18n';
import * as units from '../../units';

export interface PartStatistics {
  readonly rank: number;
  readonly part: string;
  readonly steps: number;
  readonly mean_ns: number;
  readonly median_ns: number;
  readonly p95_ns: number;
  readonly min_ns: number;
  readonly max_ns: number;
  readonly share: number;
}

export function AverageStep({ run, parameters }: { run: string; parameters: Parameters }) {
  const answer = useTable(run, 'step-statistics', parameters);
  return (
    <Loaded of={answer}>{(value) => <Average parts={records<PartStatistics>(value)} />}</Loaded>
  );
}

function Average({ parts }: { parts: readonly PartStatistics[] }) {
  const whole = parts.find((part) => part.part === 'step');
  const columns = useMemo(() => columnsOf(parts), [parts, language.value]);
  if (whole === undefined) return null;
  const figures = {
    count: units.count(whole.steps),
    mean: units.duration(whole.mean_ns),
    median: units.duration(whole.median_ns),
    p95: units.duration(whole.p95_ns),
  };
  const told = parts.filter(
    (part) => part.part !== 'step' && (part.max_ns > 0 || part.part !== 'recorder'),
  );
  return (
    <Section
      title={t('steps.average')}
      about={t(whole.steps === 1 ? 'steps.averageOfOne' : 'steps.averageOf', figures)}
    >
      <div class="average">
        <StepBar
          pieces={laid(meansOf(parts))}
          whole_ns={whole.mean_ns}
          label={t('steps.average')}
        />
        <PlainTable
          name="average"
          caption={t('steps.average')}
          columns={columns}
          rows={told}
          keyOf={(part) => part.part}
        />
        <p class="dim small">{t('steps.averageNote')}</p>
      </div>
    </Section>
  );
}

export function meansOf(parts: readonly { part: string; mean_ns: number }[]): Map<string, number> {
  return new Map(parts.map((part) => [part.part, part.mean_ns]));
}

function columnsOf(parts: readonly PartStatistics[]): PlainColumn<PartStatistics>[] {
  const places = new Map(laid(meansOf(parts)).map((piece) => [piece.part, piece]));
  const time = (
    name: keyof PartStatistics & `${string}_ns`,
    title: string,
  ): PlainColumn<PartStatistics> => ({
    name,
    title,
    isNumber: true,
    value: (part) => part[name] as number,
    show: (part) => units.duration(part[name] as number),
  });
  return [
    {
      name: 'part',
      title: t('steps.column.part'),
      value: (part) => part.part,
      show: (part) => (
        <span
          title={partDoc(part.part as PartName)}
          class={part.part === 'data' ? 'is-within' : undefined}
        >
          <PartMark part={part.part} />
          {partTitle(part.part)}
        </span>
      ),
    },
    {
      name: 'begin_ns',
      title: t('steps.column.start'),
      isNumber: true,
      value: (part) => places.get(part.part)?.begin_ns,
      show: (part) => units.duration(places.get(part.part)?.begin_ns),
    },
    {
      name: 'end_ns',
      title: t('steps.column.end'),
      isNumber: true,
      value: (part) => places.get(part.part)?.end_ns,
      show: (part) => units.duration(places.get(part.part)?.end_ns),
    },
    time('mean_ns', t('steps.column.mean')),
    {
      name: 'share',
      title: t('steps.column.share'),
      isNumber: true,
      value: (part) => part.share,
      show: (part) => units.percent(part.share),
    },
    time('median_ns', t('steps.column.median')),
    time('p95_ns', t('steps.column.p95')),
    time('min_ns', t('steps.column.min')),
    time('max_ns', t('steps.column.max')),
  ];
}
