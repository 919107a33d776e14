/** Rectangles in a plane, some thousands of them, on a canvas: hover tells, a click chooses. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { theme, token } from '../theme';
import './rectangles.css';

export interface Rectangle {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly top: number;
  /** 1 to 8: a colour; 0: none of them. */
  readonly color: number;
}

interface Props {
  readonly label: string;
  readonly rectangles: readonly Rectangle[];
  /** What is seen of the plane: left, right, bottom, top. */
  readonly view: readonly [number, number, number, number];
  readonly height?: number;
  readonly formatX: (x: number) => string;
  /** Upwards are bytes. */
  readonly formatY: (y: number) => string;
  readonly told: (at: number) => readonly string[];
  readonly selected: number | null;
  readonly onPick: (at: number | null) => void;
  readonly onRange?: (first: number, last: number) => void;
}

const HEIGHT = 320;
const LEFT = 74;
const BOTTOM = 24;
const COLORS = 8;
/** A drag shorter than this is a click. */
const CLICK_PX = 4;

export function Rectangles(props: Props) {
  const { label, rectangles, view, selected } = props;
  const height = props.height ?? HEIGHT;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current !== null && width > 0)
      draw(canvas.current, { ...props, height }, width, hover?.at ?? null);
  }, [rectangles, view.join(), width, height, selected, hover?.at, theme.value]);

  const [x0, x1, y0, y1] = view;
  const toX = (px: number) => x0 + ((px - LEFT) / Math.max(1, width - LEFT)) * (x1 - x0);
  const toY = (px: number) => y1 - (px / (height - BOTTOM)) * (y1 - y0);
  const under = (px: number, py: number): number => {
    const [x, y] = [toX(px), toY(py)];
    // What is thinner than a pixel is still found within one.
    const [slackX, slackY] = [toX(1) - toX(0), toY(0) - toY(1)];
    return rectangles.findLastIndex(
      (one) =>
        one.left - slackX <= x &&
        x <= one.right + slackX &&
        one.bottom - slackY <= y &&
        y <= one.top + slackY,
    );
  };
  return (
    <div class="rectangles" ref={host}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        style={{ height: `${height}px`, width: '100%' }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: event.offsetX, to: event.offsetX });
        }}
        onPointerMove={(event) => {
          if (drag !== null) setDrag({ ...drag, to: event.offsetX });
          const at = event.offsetX < LEFT ? -1 : under(event.offsetX, event.offsetY);
          setHover(at < 0 ? null : { at, x: event.offsetX, y: event.offsetY });
        }}
        onPointerLeave={() => setHover(null)}
        onPointerUp={(event) => {
          if (drag !== null && Math.abs(drag.to - drag.from) > CLICK_PX) {
            const [first, last] = [
              toX(Math.min(drag.from, drag.to)),
              toX(Math.max(drag.from, drag.to)),
            ];
            props.onRange?.(Math.max(x0, first), Math.min(x1, last));
          } else {
            const at = under(event.offsetX, event.offsetY);
            props.onPick(at < 0 ? null : at);
          }
          setDrag(null);
        }}
      />
      {drag !== null && Math.abs(drag.to - drag.from) > CLICK_PX && (
        <div
          class="rectangles-drag"
          style={{
            left: `${Math.min(drag.from, drag.to)}px`,
            width: `${Math.abs(drag.to - drag.from)}px`,
            height: `${height - BOTTOM}px`,
          }}
        />
      )}
      {hover !== null && drag === null && (
        <div
          class="rectangles-tip"
          style={{
            left: `${Math.min(hover.x + 12, Math.max(0, width - 300))}px`,
            top: `${hover.y + 14}px`,
          }}
        >
          {props.told(hover.at).map((line) => (
            <div key={line}>{line}</div>
          ))}
        </div>
      )}
    </div>
  );
}

function draw(
  canvas: HTMLCanvasElement,
  props: Props & { height: number },
  width: number,
  hovered: number | null,
): void {
  const {
    rectangles,
    view: [x0, x1, y0, y1],
    height,
    selected,
    formatX,
    formatY,
  } = props;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.scale(scale, scale);
  const [inner, tall] = [width - LEFT, height - BOTTOM];
  const px = (x: number) => LEFT + ((x - x0) / Math.max(1e-9, x1 - x0)) * inner;
  const py = (y: number) => tall - ((y - y0) / Math.max(1e-9, y1 - y0)) * tall;
  const colors = [
    '--text-faint',
    ...Array.from({ length: COLORS }, (_, at) => `--kind-${at + 1}`),
  ].map((name) => token(name as `--${string}`));

  context.font = `11px ${token('--font')}`;
  context.fillStyle = token('--text-dim');
  context.strokeStyle = token('--line');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const y of ticks(y0, y1, 5, [1, 2, 4, 8, 16], 16)) {
    line(context, LEFT, py(y), width, py(y));
    context.fillText(formatY(y), LEFT - 6, Math.max(7, py(y)));
  }
  context.textBaseline = 'top';
  context.textAlign = 'center';
  for (const x of ticks(x0, x1, Math.max(2, Math.floor(inner / 140)))) {
    line(context, px(x), 0, px(x), tall);
    context.fillText(formatX(x), Math.min(width - 24, px(x)), tall + 6);
  }
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, inner, tall);
  context.clip();
  rectangles.forEach((one, at) => {
    if (one.right < x0 || one.left > x1) return;
    const [left, top] = [px(one.left), py(one.top)];
    const [w, h] = [Math.max(1, px(one.right) - left), Math.max(1, py(one.bottom) - top)];
    context.globalAlpha = at === hovered ? 1 : 0.72;
    context.fillStyle = colors[one.color] ?? colors[0] ?? '';
    // A hair between neighbours, where there is room for it.
    context.fillRect(left, top, w > 3 ? w - 0.5 : w, h > 3 ? h - 0.5 : h);
    if (at === selected) {
      context.globalAlpha = 1;
      context.strokeStyle = token('--text');
      context.lineWidth = 2;
      context.strokeRect(left, top, w, h);
    }
  });
  context.restore();
}

function line(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  context.beginPath();
  context.moveTo(x0, Math.round(y0) + 0.5);
  context.lineTo(x1, Math.round(y1) + 0.5);
  context.stroke();
}

/** Round numbers between two values, about so many; of bytes, round is a power of two. */
function ticks(
  low: number,
  high: number,
  wanted: number,
  rounds = [1, 2, 5, 10],
  base = 10,
): number[] {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0)) return [];
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const step = rounds.map((one) => one * power).find((one) => one >= rough) ?? rough;
  const first = Math.ceil(low / step);
  return Array.from(
    { length: Math.max(0, Math.floor(high / step) - first + 1) },
    (_, at) => (first + at) * step,
  );
}
