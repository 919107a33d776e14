/** The steps and their parts on the axis of time: a small timeline that leads to the big one. */

import { useEffect, useMemo, useRef } from 'preact/hooks';
import { records, type TableAnswer } from '../../api';
import { useTable } from '../../tables';
import { Loaded } from '../../components/loaded';
import { Section } from '../../components/section';
import { PARTS } from '../../components/step_bar';
import { t } from '../../i18n';
import { go, hrefOfPage } from '../../router';
import { theme, token } from '../../theme';
import * as units from '../../units';
import type { StepsRow } from '../steps/curves';
import { More } from './pictures';

const ROW_PX = 26;
/** Space between lanes. */
const GAP_PX = 4;
/** Pieces that are drawn one by one. Beyond these a piece is narrower than a pixel, and the means of steps do. */
const MOST_PIECES = 20_000;
/** Ranks drawn; more would not be told apart. */
const MOST_RANKS = 8;
/** A click opens so much of the run around it. */
const OPENED_SHARE = 0.02;

export function Preview({ run }: { run: string }) {
  const pieces = useTable(run, 'step-phases', {
    limit: MOST_PIECES,
    columns: 'rank,part,ts_ns,dur_ns',
  });
  return (
    <Section
      title={t('overview.preview')}
      about={t('overview.previewAbout')}
      tools={<More page="timeline" run={run} title={t('overview.previewMore')} />}
    >
      <Loaded of={pieces}>
        {(answer) =>
          answer.rows.length < (answer.cut_from ?? answer.total) ? (
            <PreviewOfMeans run={run} />
          ) : (
            <Strip run={run} answer={answer} toPieces={records<Drawn>} />
          )
        }
      </Loaded>
    </Section>
  );
}

/** A run of very many steps, by the means of neighbouring ones. */
function PreviewOfMeans({ run }: { run: string }) {
  const history = useTable(run, 'step-history', { limit: MOST_PIECES });
  return (
    <Loaded of={history}>
      {(answer) => (
        <Strip
          run={run}
          answer={answer}
          toPieces={(rows) => records<StepsRow>(rows).flatMap(laidOut)}
        />
      )}
    </Loaded>
  );
}

/** A stretch of time that one part of a step takes. */
interface Drawn {
  readonly rank: number;
  readonly part: string;
  readonly ts_ns: number;
  readonly dur_ns: number;
}

interface Lane {
  readonly rank: number;
  readonly pieces: readonly Drawn[];
  readonly begin: number;
  readonly end: number;
}

interface StripProps {
  readonly run: string;
  readonly answer: TableAnswer;
  readonly toPieces: (answer: TableAnswer) => readonly Drawn[];
}

function Strip({ run, answer, toPieces }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const lanes = useMemo(() => lanesOf(toPieces(answer)), [answer]);
  const colours = theme.value;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => draw(element, lanes));
    observer.observe(element);
    return () => observer.disconnect();
  }, [lanes, colours]);
  const [first] = lanes;
  if (first === undefined) return <p>{t('overview.previewMissing')}</p>;
  const open = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const { rank, begin, end } =
      lanes[Math.min(lanes.length - 1, Math.floor((event.clientY - box.top) / ROW_PX))]!;
    const at = begin + ((event.clientX - box.left) / box.width) * (end - begin);
    const room = ((end - begin) * OPENED_SHARE) / 2;
    const ofRank: Record<string, string> = lanes.length > 1 ? { rank: String(rank) } : {};
    go(
      hrefOfPage('timeline', run, {
        ...ofRank,
        t0: String(Math.max(0, Math.round(at - room))),
        t1: String(Math.round(at + room)),
      }),
    );
  };
  const isShared = lanes.every((lane) => lane.begin === first.begin && lane.end === first.end);
  return (
    <div class="preview">
      {lanes.length > 1 && (
        <div class="preview-ranks dim small" style={{ lineHeight: `${ROW_PX}px` }}>
          {lanes.map(({ rank }) => (
            <span key={rank}>{t('timeline.rank', { rank })}</span>
          ))}
        </div>
      )}
      <div class="preview-lanes">
        <canvas
          ref={canvas}
          height={lanes.length * ROW_PX}
          style={{ height: `${lanes.length * ROW_PX}px` }}
          onClick={open}
          role="img"
          aria-label={t('overview.preview')}
        />
        <div class="preview-scale dim small">
          {isShared ? (
            <>
              <span>{units.duration(first.begin)}</span>
              <span>{units.duration(first.end)}</span>
            </>
          ) : (
            <span>{t('overview.previewApart')}</span>
          )}
        </div>
      </div>
    </div>
  );
}

/** A row of several steps as one step of their mean, its parts in the order in which they usually come. */
function laidOut(row: StepsRow): Drawn[] {
  const steps = row.last_step - row.step + 1;
  let at = row.ts_ns;
  return PARTS.map((part) => {
    const piece = { rank: row.rank, part, ts_ns: at, dur_ns: row[`${part}_ns`]! * steps };
    at += piece.dur_ns;
    return piece;
  });
}

/** On one axis of time; ranks whose traces were taken at different times have an axis each. */
function lanesOf(pieces: readonly Drawn[]): Lane[] {
  const ranks = [...new Set(pieces.map((piece) => piece.rank))].slice(0, MOST_RANKS);
  const lanes = ranks.map((rank) => {
    const own = pieces.filter((piece) => piece.rank === rank);
    const begin = own.reduce((least, piece) => Math.min(least, piece.ts_ns), Infinity);
    return {
      rank,
      pieces: own,
      begin,
      end: own.reduce((most, piece) => Math.max(most, piece.ts_ns + piece.dur_ns), begin),
    };
  });
  const begin = Math.min(...lanes.map((lane) => lane.begin));
  const end = Math.max(...lanes.map((lane) => lane.end));
  const isTogether = lanes.every((lane) =>
    lanes.every((other) => lane.begin < other.end && other.begin < lane.end),
  );
  return isTogether ? lanes.map((lane) => ({ ...lane, begin, end })) : lanes;
}

function draw(canvas: HTMLCanvasElement, lanes: readonly Lane[]): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = lanes.length * ROW_PX * ratio;
  const context = canvas.getContext('2d')!;
  const colours = Object.fromEntries(PARTS.map((part) => [part, token(`--part-${part}`)]));
  lanes.forEach(({ pieces, begin, end }, lane) => {
    const scale = canvas.width / Math.max(1, end - begin);
    const top = (lane * ROW_PX + GAP_PX / 2) * ratio;
    context.fillStyle = token('--surface-low');
    context.fillRect(0, top, canvas.width, (ROW_PX - GAP_PX) * ratio);
    for (const piece of pieces) {
      context.fillStyle = colours[piece.part] ?? token('--part-rest');
      context.fillRect(
        (piece.ts_ns - begin) * scale,
        top,
        piece.dur_ns * scale,
        (ROW_PX - GAP_PX) * ratio,
      );
    }
  });
}
