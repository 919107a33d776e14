/** The steps and their parts on the axis of time: a small timeline that leads to the big one. */

import { useEffect, useMemo, useRef } from 'preact/hooks';
import { records } from '../../api';
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
/** Ranks drawn; more would not be told apart. */
const MOST_RANKS = 8;
/** A click opens so much of the run around it. */
const OPENED_SHARE = 0.02;

export function Preview({ run }: { run: string }) {
  const answer = useTable(run, 'step-history', { limit: 20_000 });
  return (
    <Section title={t('overview.preview')} about={t('overview.previewAbout')} tools={<More page="timeline" run={run} title={t('overview.previewMore')} />}>
      <Loaded of={answer}>{(value) => <Strip run={run} rows={records<StepsRow>(value)} />}</Loaded>
    </Section>
  );
}

interface Lane {
  readonly rank: number;
  readonly rows: readonly StepsRow[];
  readonly begin: number;
  readonly end: number;
}

function Strip({ run, rows }: { run: string; rows: readonly StepsRow[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const lanes = useMemo(() => lanesOf(rows), [rows]);
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
    const { rank, begin, end } = lanes[Math.min(lanes.length - 1, Math.floor((event.clientY - box.top) / ROW_PX))]!;
    const at = begin + ((event.clientX - box.left) / box.width) * (end - begin);
    const room = ((end - begin) * OPENED_SHARE) / 2;
    const ofRank: Record<string, string> = lanes.length > 1 ? { rank: String(rank) } : {};
    go(hrefOfPage('timeline', run, { ...ofRank, t0: String(Math.max(0, Math.round(at - room))), t1: String(Math.round(at + room)) }));
  };
  const isShared = lanes.every((lane) => lane.begin === first.begin && lane.end === first.end);
  return (
    <div class="preview">
      <canvas ref={canvas} height={lanes.length * ROW_PX} style={{ height: `${lanes.length * ROW_PX}px` }} onClick={open} role="img" aria-label={t('overview.preview')} />
      <div class="preview-scale dim small">{isShared ? <><span>{units.moment(first.begin)}</span><span>{units.moment(first.end)}</span></> : <span>{t('overview.previewApart')}</span>}</div>
    </div>
  );
}

/** On one axis of time; ranks whose traces were taken at different times have an axis each. */
function lanesOf(rows: readonly StepsRow[]): Lane[] {
  const ranks = [...new Set(rows.map((row) => row.rank))].slice(0, MOST_RANKS);
  const lanes = ranks.map((rank) => {
    const own = rows.filter((row) => row.rank === rank);
    const last = own.at(-1)!;
    return { rank, rows: own, begin: own[0]!.ts_ns, end: last.ts_ns + last.dur_ns * (last.last_step - last.step + 1) };
  });
  const begin = Math.min(...lanes.map((lane) => lane.begin));
  const end = Math.max(...lanes.map((lane) => lane.end));
  const isTogether = lanes.every((lane) => lanes.every((other) => lane.begin < other.end && other.begin < lane.end));
  return isTogether ? lanes.map((lane) => ({ ...lane, begin, end })) : lanes;
}

function draw(canvas: HTMLCanvasElement, lanes: readonly Lane[]): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = lanes.length * ROW_PX * ratio;
  const context = canvas.getContext('2d')!;
  const colours = Object.fromEntries(PARTS.map((part) => [part, token(`--part-${part}`)]));
  context.fillStyle = token('--surface-low');
  context.fillRect(0, 0, canvas.width, canvas.height);
  lanes.forEach(({ rows, begin, end }, lane) => {
    const scale = canvas.width / Math.max(1, end - begin);
    for (const row of rows) {
      const steps = row.last_step - row.step + 1;
      let at = (row.ts_ns - begin) * scale;
      for (const part of PARTS) {
        const width = row[`${part}_ns`]! * steps * scale;
        context.fillStyle = colours[part]!;
        context.fillRect(at, lane * ROW_PX * ratio, width, (ROW_PX - 4) * ratio);
        at += width;
      }
    }
  });
}
