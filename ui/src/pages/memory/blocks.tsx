/** The blocks of memory as rectangles: time to the right, addresses upwards. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Loaded } from '../../components/loaded';
import { onTimeline } from '../../components/places';
import { Rectangles, type Rectangle } from '../../components/rectangles';
import { Section } from '../../components/section';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import { lookAt, lookedAt } from './curve';
import '../../components/icicle.css';

interface Block {
  readonly ts_ns: number;
  readonly end_ns: number;
  readonly is_freed: boolean;
  readonly bytes: number;
  readonly address: number;
  readonly offset_bytes: number;
  readonly step: number | null;
  readonly name: string | null;
  readonly scope: string | null;
  readonly area_share: number;
  readonly event_id: number | null;
}

/** The server sends at most so many of a device. */
const MOST_BLOCKS = 4_000;
const COLORS = 8;

export function Blocks({
  run,
  parameters,
  device,
}: {
  run: string;
  parameters: Parameters;
  device: string;
}) {
  const table = useTable(run, 'memory-blocks', {
    ...parameters,
    where: `device:eq:${device}`,
    limit: MOST_BLOCKS,
  });
  return (
    <Section title={t('memory.blocks')} about={t('memory.blocksAbout')}>
      <Loaded of={table}>
        {(answer) => <BlockMap run={run} blocks={records<Block>(answer)} />}
      </Loaded>
    </Section>
  );
}

function BlockMap({ run, blocks }: { run: string; blocks: readonly Block[] }) {
  const colors = useMemo(() => colorsOf(blocks), [blocks]);
  const rectangles = useMemo(
    () =>
      blocks.map((block): Rectangle => ({
        left: block.ts_ns,
        right: block.end_ns,
        bottom: block.offset_bytes,
        top: block.offset_bytes + block.bytes,
        color: colors.get(keyOf(block)) ?? 0,
      })),
    [blocks, colors],
  );
  const range = lookedAt();
  const bounds = useMemo(() => boundsOf(rectangles, range), [rectangles, range?.join()]);
  const asked = route.value.query.block;
  const selected = asked === undefined ? null : blocks.findIndex((block) => idOf(block) === asked);
  const chosen = selected === null ? undefined : blocks[selected];
  const covered = blocks.reduce((sum, block) => sum + block.area_share, 0);
  if (blocks.length === 0) return <p class="dim">{t('memory.noBlocks')}</p>;
  return (
    <>
      <Rectangles
        label={t('memory.blocks')}
        rectangles={rectangles}
        view={bounds}
        formatX={(ns) => units.duration(ns)}
        formatY={(bytes) => units.size(bytes)}
        told={(at) => (blocks[at] ? told(blocks[at]) : [])}
        selected={selected}
        onPick={(at) =>
          setQuery({ block: at === null || blocks[at] === undefined ? null : idOf(blocks[at]) })
        }
        onRange={lookAt}
      />
      <ul class="icicle-legend">
        {[...colors].map(([key, color]) => (
          <li key={key}>
            <span class={`icicle-mark kind-${color}`} aria-hidden="true" />
            <span class="mono">{key || t('memory.noModule')}</span>
          </li>
        ))}
      </ul>
      <p class="dim small">
        {t(blocks.length < MOST_BLOCKS ? 'memory.allBlocks' : 'memory.covered', {
          count: units.count(blocks.length),
          share: units.percent(covered),
        })}
      </p>
      {chosen !== undefined && (
        <dl class="key-figures" aria-live="polite">
          <div>
            <dt>{t('memory.size')}</dt>
            <dd>{units.size(chosen.bytes)}</dd>
          </div>
          <div>
            <dt>{t('memory.allocatedBy')}</dt>
            <dd class="mono">{chosen.name ?? t('memory.noOperator')}</dd>
          </div>
          <div>
            <dt>{t('memory.module')}</dt>
            <dd class="mono">{chosen.scope ?? t('memory.noModule')}</dd>
          </div>
          <div>
            <dt>{t('memory.lifetime')}</dt>
            <dd>
              {units.duration(chosen.end_ns - chosen.ts_ns)}
              {!chosen.is_freed && ` · ${t('memory.notFreed')}`}
            </dd>
          </div>
          <div>
            <dt>{t('memory.address')}</dt>
            <dd class="mono">0x{chosen.address.toString(16)}</dd>
          </div>
          {chosen.event_id !== null && (
            <div>
              <dt>{t('memory.place')}</dt>
              <dd>
                <a
                  href={onTimeline(run, {
                    event: chosen.event_id,
                    ts_ns: chosen.ts_ns,
                    dur_ns: Math.min(1_000_000, chosen.end_ns - chosen.ts_ns),
                  })}
                >
                  {t('operators.onTimeline')}
                </a>
              </dd>
            </div>
          )}
        </dl>
      )}
    </>
  );
}

function told(block: Block): string[] {
  return [
    block.name ?? t('memory.noOperator'),
    block.scope ?? t('memory.noModule'),
    `${units.size(block.bytes)} · ${units.duration(block.end_ns - block.ts_ns)}${block.is_freed ? '' : ` · ${t('memory.notFreed')}`}`,
    ...(block.step === null ? [] : [t('operators.step', { step: block.step })]),
  ];
}

function keyOf(block: Block): string {
  return block.scope ?? '';
}

function idOf(block: Block): string {
  return `${block.address}@${block.ts_ns}`;
}

/** The modules with most memory have a colour each. */
function colorsOf(blocks: readonly Block[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const block of blocks) sums.set(keyOf(block), (sums.get(keyOf(block)) ?? 0) + block.bytes);
  return new Map(
    [...sums]
      .sort((a, b) => b[1] - a[1])
      .slice(0, COLORS)
      .map(([key], at) => [key, at + 1]),
  );
}

function boundsOf(
  rectangles: readonly Rectangle[],
  range: readonly [number, number] | null,
): [number, number, number, number] {
  let [left, right, top] = [Infinity, -Infinity, 1];
  for (const one of rectangles) {
    left = Math.min(left, one.left);
    right = Math.max(right, one.right);
    top = Math.max(top, one.top);
  }
  return range === null ? [left, right, 0, top] : [range[0], range[1], 0, top];
}
