import type { Key } from '../i18n';
import { maybe, t } from '../i18n';
import * as units from '../units';
import './step_bar.css';

/** The parts of a step, in the order in which they come. */
export const PARTS = [
  'gap',
  'forward',
  'backward',
  'all_reduce',
  'update',
  'rest',
  'recorder',
] as const;
export type PartName = (typeof PARTS)[number];

export interface Piece {
  readonly part: string;
  readonly begin_ns: number;
  readonly end_ns: number;
}

/** Below this part of the whole there is no room for a name inside. */
const ROOM_FOR_NAME = 0.07;
const TICKS = 5;

/** Pieces of a step, drawn to scale. `whole_ns` lets several bars share a scale. */
export function StepBar({
  pieces,
  whole_ns,
  label,
  onPick,
}: {
  pieces: readonly Piece[];
  whole_ns: number;
  label: string;
  onPick?: (piece: Piece) => void;
}) {
  const told = pieces
    .map((piece) => `${partTitle(piece.part)} ${units.duration(piece.end_ns - piece.begin_ns)}`)
    .join(', ');
  return (
    <div class="step-bar">
      <div class="step-bar-track" role="img" aria-label={`${label}: ${told}`}>
        {pieces.map((piece, at) => (
          <OnePiece key={at} piece={piece} whole_ns={whole_ns} onPick={onPick} />
        ))}
      </div>
      <div class="step-bar-scale" aria-hidden="true">
        {Array.from({ length: TICKS }, (_, at) => (
          <span key={at} style={{ left: `${(at / (TICKS - 1)) * 100}%` }}>
            {at === 0 ? '0' : units.duration((whole_ns * at) / (TICKS - 1))}
          </span>
        ))}
      </div>
    </div>
  );
}

function OnePiece({
  piece,
  whole_ns,
  onPick,
}: {
  piece: Piece;
  whole_ns: number;
  onPick: ((piece: Piece) => void) | undefined;
}) {
  const length = piece.end_ns - piece.begin_ns;
  const share = whole_ns > 0 ? length / whole_ns : 0;
  const title = `${partTitle(piece.part)}: ${units.duration(length)} (${units.duration(piece.begin_ns)} – ${units.duration(piece.end_ns)})`;
  const style = { left: `${(piece.begin_ns / whole_ns) * 100}%`, width: `${share * 100}%` };
  return (
    <span
      class={`step-piece part-${piece.part}`}
      style={style}
      title={title}
      onClick={onPick && (() => onPick(piece))}
    >
      {share >= ROOM_FOR_NAME && <span>{partTitle(piece.part)}</span>}
    </span>
  );
}

/** The coloured mark before the name of a part. */
export function PartMark({ part }: { part: string }) {
  return <span class={`part-mark part-${part}`} aria-hidden="true" />;
}

export function partTitle(part: string): string {
  return maybe(`steps.part.${part}`) ?? part;
}

/** What a part is, in a sentence. */
export function partDoc(part: PartName | 'data' | 'step'): string {
  return t(`steps.partDoc.${part}` as Key);
}

/** Parts laid one after the other, as they come in a step. */
export function laid(lengths: ReadonlyMap<string, number>): Piece[] {
  let at = 0;
  return PARTS.flatMap((part) => {
    const length = lengths.get(part) ?? 0;
    if (length <= 0) return [];
    const piece = { part, begin_ns: at, end_ns: at + length };
    at += length;
    return [piece];
  });
}
