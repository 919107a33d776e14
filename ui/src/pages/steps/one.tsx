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
import { meansOf, type PartStatistics } from './average';

interface PlacedPiece extends Piece {
  readonly dur_ns: number;
  readonly ts_ns: number;
}

interface Props {
  readonly run: string;
  readonly step: number;
  readonly rank: number;
  readonly parameters: Parameters;
}

export function OneStep({ run, step, rank, parameters }: Props) {
  const pieces = useTable(run, 'step-phases', { where: `step:eq:${step},rank:eq:${rank}`, limit: 2000 });
  const average = useTable(run, 'step-statistics', parameters);
  const means = average.state === 'ready' ? meansOf(records<PartStatistics>(average.value)) : null;
  return (
    <Loaded of={pieces}>
      {(value) => <Pieces run={run} step={step} pieces={records<PlacedPiece>(value)} means={means} />}
    </Loaded>
  );
}

function Pieces({ run, step, pieces, means }: { run: string; step: number; pieces: readonly PlacedPiece[]; means: ReadonlyMap<string, number> | null }) {
  const tools = (
    <>
      <button type="button" onClick={() => setQuery({ step: Math.max(1, step - 1) })} aria-label={t('steps.previous')}>◂</button>
      <button type="button" onClick={() => setQuery({ step: step + 1 })} aria-label={t('steps.next')}>▸</button>
      {pieces.length > 0 && <a class="button" href={timelineOf(run, pieces)}>{t('steps.onTimeline')}</a>}
      <button type="button" class="quiet" onClick={() => setQuery({ step: null })}>{t('steps.close')}</button>
    </>
  );
  if (pieces.length === 0) return <Section title={t('steps.one', { step })} tools={tools}><p>{t('steps.noSuchStep', { step })}</p></Section>;
  const length = Math.max(...pieces.map((piece) => piece.end_ns));
  const mean = means?.get('step');
  const about = t('steps.oneOf', {
    length: units.duration(length),
    against: mean === undefined ? units.UNKNOWN : units.difference(length - mean),
    moment: units.moment(pieces[0]!.ts_ns),
  });
  return (
    <Section title={t('steps.one', { step })} about={about} tools={tools}>
      <div class="average">
        <StepBar pieces={pieces} whole_ns={length} label={t('steps.one', { step })} />
        <PlainTable name="step" caption={t('steps.one', { step })} columns={columnsOf(sums(pieces), means)} rows={pieces} keyOf={(piece) => piece.begin_ns} />
      </div>
    </Section>
  );
}

/** The step with a little room on either side. */
function timelineOf(run: string, pieces: readonly PlacedPiece[]): string {
  const begin = pieces[0]!.ts_ns;
  const length = Math.max(...pieces.map((piece) => piece.end_ns));
  const room = Math.round(length * 0.1);
  return hrefOfPage('timeline', run, { t0: String(begin - room), t1: String(begin + length + room) });
}

function sums(pieces: readonly PlacedPiece[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const piece of pieces) found.set(piece.part, (found.get(piece.part) ?? 0) + piece.dur_ns);
  return found;
}

function columnsOf(lengths: ReadonlyMap<string, number>, means: ReadonlyMap<string, number> | null): PlainColumn<PlacedPiece>[] {
  const against = (piece: PlacedPiece) => (means === null ? null : (lengths.get(piece.part) ?? 0) - (means.get(piece.part) ?? 0));
  return [
    { name: 'part', title: t('steps.column.part'), value: (piece) => piece.part, show: (piece) => <><PartMark part={piece.part} />{partTitle(piece.part)}</> },
    { name: 'begin_ns', title: t('steps.column.start'), isNumber: true, value: (piece) => piece.begin_ns, show: (piece) => units.duration(piece.begin_ns) },
    { name: 'end_ns', title: t('steps.column.end'), isNumber: true, value: (piece) => piece.end_ns, show: (piece) => units.duration(piece.end_ns) },
    { name: 'dur_ns', title: t('steps.column.length'), isNumber: true, value: (piece) => piece.dur_ns, show: (piece) => units.duration(piece.dur_ns) },
    { name: 'against_ns', title: t('steps.column.against'), isNumber: true, value: against, show: (piece) => units.difference(against(piece)) },
  ];
}
