/** A single step: its pieces to scale, against the average. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Loaded } from '../../components/loaded';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { Section } from '../../components/section';
import { PartMark, partTitle, StepBar, type Piece } from '../../components/step_bar';
import { t } from '../../i18n';
import { hrefOfPage, setQuery } from '../../router';
import * as units from '../../units';
import { chooseStep } from './choice';
import { meansOf, type PartStatistics } from './average';

interface PlacedPiece extends Piece {
  readonly dur_ns: number;
  readonly ts_ns: number;
}

/** A line of the table: a piece, or the wait for data within the gap, which has no one place. */
type Line = Pick<PlacedPiece, 'part' | 'dur_ns'> & {
  readonly begin_ns: number | null;
  readonly end_ns: number | null;
};

interface Props {
  readonly run: string;
  readonly step: number;
  readonly rank: number;
  readonly parameters: Parameters;
}

export function OneStep({ run, step, rank, parameters }: Props) {
  const pieces = useTable(run, 'step-phases', {
    where: `step:eq:${step},rank:eq:${rank}`,
    limit: 2000,
  });
  const average = useTable(run, 'step-statistics', parameters);
  const waited = useTable(run, 'steps', { where: `step:eq:${step},rank:eq:${rank}`, limit: 1 });
  const data_ns =
    waited.state === 'ready' ? (records<{ data_ns: number }>(waited.value)[0]?.data_ns ?? 0) : 0;
  const means = average.state === 'ready' ? meansOf(records<PartStatistics>(average.value)) : null;
  return (
    <Loaded of={pieces}>
      {(value) => (
        <Pieces
          run={run}
          step={step}
          pieces={records<PlacedPiece>(value)}
          data_ns={data_ns}
          means={means}
        />
      )}
    </Loaded>
  );
}

function Pieces({
  run,
  step,
  pieces,
  data_ns,
  means,
}: {
  run: string;
  step: number;
  pieces: readonly PlacedPiece[];
  data_ns: number;
  means: ReadonlyMap<string, number> | null;
}) {
  const tools = (
    <>
      <button
        type="button"
        onClick={() => setQuery({ step: Math.max(1, step - 1) })}
        aria-label={t('steps.previous')}
      >
        ◂
      </button>
      <button
        type="button"
        onClick={() => setQuery({ step: step + 1 })}
        aria-label={t('steps.next')}
      >
        ▸
      </button>
      {pieces.length > 0 && (
        <a class="button" href={timelineOf(run, pieces)}>
          {t('steps.onTimeline')}
        </a>
      )}
      <button type="button" class="quiet" onClick={() => chooseStep(null)}>
        {t('steps.close')}
      </button>
    </>
  );
  if (pieces.length === 0)
    return (
      <Section title={t('steps.one', { step })} tools={tools}>
        <p>{t('steps.noSuchStep', { step })}</p>
      </Section>
    );
  const length = Math.max(...pieces.map((piece) => piece.end_ns));
  const lines = withWait(pieces, data_ns);
  const mean = means?.get('step');
  const about = t('steps.oneOf', {
    length: units.duration(length),
    against: mean === undefined ? units.UNKNOWN : units.difference(length - mean),
    moment: units.duration(pieces[0]!.ts_ns),
  });
  return (
    <Section title={t('steps.one', { step })} about={about} tools={tools}>
      <div class="average">
        <StepBar pieces={pieces} whole_ns={length} label={t('steps.one', { step })} />
        <PlainTable
          name="step"
          caption={t('steps.one', { step })}
          columns={columnsOf(sums(lines), means)}
          rows={lines}
          keyOf={(line) => line.begin_ns ?? line.part}
        />
      </div>
    </Section>
  );
}

/** The step with a little room on either side. */
function timelineOf(run: string, pieces: readonly PlacedPiece[]): string {
  const begin = pieces[0]!.ts_ns;
  const length = Math.max(...pieces.map((piece) => piece.end_ns));
  const room = Math.round(length * 0.1);
  return hrefOfPage('timeline', run, {
    t0: String(begin - room),
    t1: String(begin + length + room),
  });
}

/** The wait for data stands below the gap that it is a part of. */
function withWait(pieces: readonly PlacedPiece[], data_ns: number): readonly Line[] {
  const at = pieces.findLastIndex((piece) => piece.part === 'gap') + 1;
  if (at === 0 || data_ns <= 0) return pieces;
  return [
    ...pieces.slice(0, at),
    { part: 'data', begin_ns: null, end_ns: null, dur_ns: data_ns },
    ...pieces.slice(at),
  ];
}

function sums(pieces: readonly Line[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const piece of pieces) found.set(piece.part, (found.get(piece.part) ?? 0) + piece.dur_ns);
  return found;
}

function columnsOf(
  lengths: ReadonlyMap<string, number>,
  means: ReadonlyMap<string, number> | null,
): PlainColumn<Line>[] {
  const against = (piece: Line) =>
    means === null ? null : (lengths.get(piece.part) ?? 0) - (means.get(piece.part) ?? 0);
  return [
    {
      name: 'part',
      title: t('steps.column.part'),
      value: (piece) => piece.part,
      show: (piece) => (
        <span class={piece.part === 'data' ? 'is-within' : undefined}>
          <PartMark part={piece.part} />
          {partTitle(piece.part)}
        </span>
      ),
    },
    {
      name: 'begin_ns',
      title: t('steps.column.start'),
      isNumber: true,
      value: (piece) => piece.begin_ns,
      show: (piece) => units.duration(piece.begin_ns),
    },
    {
      name: 'end_ns',
      title: t('steps.column.end'),
      isNumber: true,
      value: (piece) => piece.end_ns,
      show: (piece) => units.duration(piece.end_ns),
    },
    {
      name: 'dur_ns',
      title: t('steps.column.length'),
      isNumber: true,
      value: (piece) => piece.dur_ns,
      show: (piece) => units.duration(piece.dur_ns),
    },
    {
      name: 'against_ns',
      title: t('steps.column.against'),
      isNumber: true,
      value: against,
      show: (piece) => units.difference(against(piece)),
    },
  ];
}
