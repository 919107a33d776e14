/** Where the time goes, in a few small pictures, each with a way to the page behind it. */

import type { ComponentChildren } from 'preact';
import { Cut } from '../../components/cut';
import { stageName } from '../../components/graph';
import { Section } from '../../components/section';
import {
  laid,
  partDoc,
  PartMark,
  partTitle,
  StepBar,
  type PartName,
} from '../../components/step_bar';
import { t } from '../../i18n';
import { hrefOfPage } from '../../router';
import * as units from '../../units';
import type { Summary } from './answers';
import { operatorsOf } from './places';

const TOP = 8;
/** Of more cores only the bars are shown. */
const CORES_IN_WORDS = 8;

export function StepParts({ run, summary }: { run: string; summary: Summary }) {
  const { parts, count } = summary.steps;
  const whole = parts.find((part) => part.part === 'step');
  if (whole === undefined || count === 0) return null;
  const lengths = new Map(parts.map((part) => [part.part, part.mean_ns]));
  const told = parts.filter((part) => part.part !== 'step' && part.mean_ns > 0);
  return (
    <Section
      title={t('overview.parts')}
      about={t(count === 1 ? 'overview.partsAboutOne' : 'overview.partsAbout', {
        count: units.count(count),
        mean: units.duration(whole.mean_ns),
      })}
      tools={<More page="steps" run={run} title={t('overview.partsMore')} />}
    >
      <div class="stack">
        <StepBar pieces={laid(lengths)} whole_ns={whole.mean_ns} label={t('overview.parts')} />
        <ul class="legend">
          {told.map((part) => (
            <li
              key={part.part}
              title={partDoc(part.part as PartName)}
              class={part.part === 'data' ? 'is-within' : undefined}
            >
              <span>
                <PartMark part={part.part} />
                {partTitle(part.part)}
              </span>
              <span class="number">{units.duration(part.mean_ns)}</span>
              <span class="number dim">{units.percent(part.share)}</span>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}

interface Bar {
  readonly name: string;
  readonly note?: string;
  readonly value: number;
  readonly text: string;
  /** Another time of it: on the host, where the first is of the device. */
  readonly beside?: string | undefined;
  readonly share: number;
  readonly href: string;
}

/** Bars of the biggest, each a link. */
function Bars({ bars }: { bars: readonly Bar[] }) {
  const largest = Math.max(...bars.map((bar) => bar.value), 1e-9);
  return (
    <ul class={bars.some((bar) => bar.beside !== undefined) ? 'top-bars has-beside' : 'top-bars'}>
      {bars.slice(0, TOP).map((bar) => (
        <li key={`${bar.name} ${bar.note ?? ''}`}>
          <a href={bar.href} title={bar.name}>
            <span class="bar-name mono">
              <span class="bar-title">
                <Cut text={bar.name} tail={20} />
              </span>
              {bar.note && <span class="dim"> {bar.note}</span>}
            </span>
            <span class="bar-track" aria-hidden="true">
              <span style={{ width: `${(bar.value / largest) * 100}%` }} />
            </span>
            <span class="number">{bar.text}</span>
            {bar.beside !== undefined && <span class="number dim">{bar.beside}</span>}
            <span class="number dim">{units.percent(bar.share)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

export function OperatorTypes({ run, summary }: { run: string; summary: Summary }) {
  const types = summary.operator_types;
  const share = types.reduce((sum, type) => sum + type.share, 0);
  const isOfDevice = types.some((type) => type.device_ns_per_step !== null);
  const perStep = types.reduce(
    (sum, type) => sum + (isOfDevice ? (type.device_ns_per_step ?? 0) : type.self_ns_per_step),
    0,
  );
  if (types.length === 0) return null;
  const about = t(isOfDevice ? 'overview.typesAboutDevice' : 'overview.typesAbout', {
    time: units.duration(share > 0 ? perStep / share : perStep),
  });
  return (
    <Section
      title={t('overview.types')}
      about={about}
      tools={<More page="operators" run={run} title={t('overview.typesMore')} />}
    >
      <Bars
        bars={types.map((type) => ({
          name: type.name,
          ...timed(isOfDevice ? (type.device_ns_per_step ?? 0) : null, type.self_ns_per_step),
          share: type.share,
          href: operatorsOf(run, 'operators', type.name),
        }))}
      />
    </Section>
  );
}

/** Device time first where there is a device, with the host's beside it. */
function timed(
  device_ns: number | null,
  host_ns: number | null,
): Pick<Bar, 'value' | 'text' | 'beside'> {
  if (device_ns === null) return { value: host_ns ?? 0, text: units.duration(host_ns) };
  return {
    value: device_ns,
    text: units.duration(device_ns),
    beside: host_ns === null ? undefined : units.duration(host_ns),
  };
}

export function Modules({ run, summary }: { run: string; summary: Summary }) {
  if (summary.modules.length === 0) return null;
  const isOfDevice = summary.modules.some((module) => module.device_own_ns_per_step !== null);
  // Traces of a device alone know nothing of the host.
  const hasHost = summary.modules.some((module) => module.own_ns_per_step > 0);
  return (
    <Section
      title={t('overview.modules')}
      about={t(
        !isOfDevice
          ? 'overview.modulesAbout'
          : hasHost
            ? 'overview.modulesAboutDevice'
            : 'overview.modulesAboutDeviceOnly',
      )}
      tools={
        <More
          page="operators"
          run={run}
          title={t('overview.modulesMore')}
          query={{ tab: 'modules' }}
        />
      }
    >
      <Bars
        bars={summary.modules.map((module) => ({
          name: module.scope || '(model)',
          note: module.class ?? '',
          ...timed(
            isOfDevice ? (module.device_own_ns_per_step ?? 0) : null,
            hasHost ? module.own_ns_per_step : null,
          ),
          share: module.share,
          href: hrefOfPage('operators', run, { tab: 'modules', module: module.scope }),
        }))}
      />
    </Section>
  );
}

export function Kernels({ run, summary }: { run: string; summary: Summary }) {
  if (summary.kernels.length === 0) return null;
  return (
    <Section
      title={t('overview.kernels')}
      about={
        summary.kernels.some((kernel) => kernel.steps > 0) ? t('overview.kernelsAbout') : undefined
      }
      tools={
        <More
          page="operators"
          run={run}
          title={t('overview.kernelsMore')}
          query={{ tab: 'kernels' }}
        />
      }
    >
      <Bars
        bars={summary.kernels.map((kernel) => {
          const time = kernel.steps > 0 ? kernel.ns_per_step : kernel.total_ns;
          return {
            name: kernel.name,
            value: time,
            text: units.duration(time),
            share: kernel.share,
            href: operatorsOf(run, 'kernels', kernel.name),
          };
        })}
      />
    </Section>
  );
}

const DEVICE_PARTS = ['compute', 'communication', 'memory', 'idle'] as const;

export function Devices({ summary }: { summary: Summary }) {
  if (summary.devices.length === 0) return null;
  return (
    <Section title={t('overview.device')} about={t('overview.deviceAbout')}>
      <div class="stack">
        <ul class="devices">
          {summary.devices.slice(0, TOP * 2).map((device) => (
            <li key={`${device.rank} ${device.device}`}>
              <span class="mono">
                {summary.run.ranks.length > 1 ? `${device.rank} · ` : ''}
                {device.device}
              </span>
              <span
                class="device-bar"
                role="img"
                aria-label={DEVICE_PARTS.map(
                  (part) =>
                    `${t(`overview.device.${part}`)} ${units.percent(device[`${part}_ns`] / device.dur_ns)}`,
                ).join(', ')}
              >
                {DEVICE_PARTS.map((part) => (
                  <span
                    key={part}
                    class={`device-${part}`}
                    style={{ width: `${(device[`${part}_ns`] / device.dur_ns) * 100}%` }}
                    title={`${t(`overview.device.${part}`)}: ${units.duration(device[`${part}_ns`])}`}
                  />
                ))}
              </span>
              <span class="number">{units.percent(1 - device.idle_ns / device.dur_ns)}</span>
            </li>
          ))}
        </ul>
        <p class="keys-of-colours small">
          {DEVICE_PARTS.map((part) => (
            <span key={part}>
              <span class={`part-mark device-${part}`} aria-hidden="true" />
              {t(`overview.device.${part}`)}
            </span>
          ))}
        </p>
      </div>
    </Section>
  );
}

export interface Stage {
  readonly rank: number;
  readonly loader: number;
  readonly stage: string;
  readonly workers: number | null;
  readonly mean_ns: number | null;
  readonly share: number | null;
  readonly queue: string | null;
  readonly queue_mean: number | null;
  readonly capacity: number | null;
  readonly is_at_fault: boolean;
  readonly reason: string | null;
}

export function Pipeline({ run, stages }: { run: string; stages: readonly Stage[] }) {
  if (stages.length === 0) return null;
  return (
    <Section
      title={t('overview.pipeline')}
      tools={<More page="pipeline" run={run} title={t('overview.pipelineMore')} />}
    >
      <Stages stages={firstLoader(stages)} />
    </Section>
  );
}

/** The loader at fault, or the first: others are on the page of the pipeline. */
function firstLoader(stages: readonly Stage[]): Stage[] {
  const chosen = stages.find((stage) => stage.is_at_fault) ?? stages[0];
  return stages.filter((stage) => stage.rank === chosen?.rank && stage.loader === chosen.loader);
}

/** Stages without a time say little, unless none has one: those of MindData have queues instead. */
function shownStages(stages: readonly Stage[]): readonly Stage[] {
  return stages.some((stage) => stage.mean_ns !== null)
    ? stages.filter((stage) => stage.mean_ns !== null || stage.is_at_fault)
    : stages;
}

/** Who does it, and how full the queue is that it fills. */
function aboutStage({ stage, workers, queue_mean, capacity }: Stage): string {
  const who =
    stage === 'training' || workers === null
      ? []
      : [
          workers === 0
            ? t('overview.pipelineNoWorkers')
            : workers === 1
              ? t('pipeline.oneWorker')
              : t('pipeline.workers', { count: workers }),
        ];
  const queue =
    queue_mean === null || capacity === null
      ? []
      : [t('overview.pipelineQueue', { mean: units.count(queue_mean), capacity })];
  return [...who, ...queue].join(' · ');
}

function Stages({ stages }: { stages: readonly Stage[] }) {
  return (
    <ol class="pipeline-stages">
      {shownStages(stages).map((stage) => (
        <li
          key={stage.stage}
          class={stage.is_at_fault ? 'pipeline-stage is-at-fault' : 'pipeline-stage'}
        >
          <strong>{stageName(stage.stage)}</strong>
          <span class="number">
            {stage.mean_ns === null
              ? ''
              : t('overview.pipelineBatch', { time: units.duration(stage.mean_ns) })}
          </span>
          <span class="dim small">{aboutStage(stage)}</span>
          {stage.is_at_fault && (
            <span class="fault small">
              {t('overview.fault')}
              {stage.reason !== null && `${t('overview.colon')}${stage.reason}`}
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

export function isMeasured({ machine }: Summary): boolean {
  return (
    machine.process_cores !== null ||
    machine.rss_max_bytes !== null ||
    machine.machine_cores !== null
  );
}

export function Machine({ summary }: { summary: Summary }) {
  if (!isMeasured(summary)) return null;
  const { machine, gc } = summary;
  return (
    <Section title={t('overview.machine')}>
      <div class="stack">
        <dl class="figures">
          <Figure title={t('overview.machine.process')}>
            {units.count(machine.process_cores)}
          </Figure>
          <Figure title={t('overview.machine.all', { count: machine.core_count ?? units.UNKNOWN })}>
            {units.count(machine.machine_cores)}
          </Figure>
          <Figure title={t('overview.machine.memory')}>{units.size(machine.rss_max_bytes)}</Figure>
          <Figure title={t('overview.machine.gc', { count: gc.pauses })}>
            {units.duration(gc.total_ns)}
          </Figure>
          <Figure title={t('overview.machine.faults')}>
            {units.rate(machine.page_faults_per_s)}
          </Figure>
          <Figure title={t('overview.machine.switches')}>
            {units.rate(machine.context_switches_per_s)}
          </Figure>
        </dl>
        {machine.core_busy_ratios.length > 0 && (
          <div
            class="cores"
            role="img"
            aria-label={`${t('overview.machine.cores')}: ${machine.core_busy_ratios.map((busy) => units.percent(busy)).join(', ')}`}
          >
            <span class="cores-title">{t('overview.machine.cores')}</span>
            {machine.core_busy_ratios.map((busy, core) => (
              <span key={core} class="core" title={`${core}: ${units.percent(busy)}`}>
                <span class="core-bar">
                  <span style={{ height: `${busy * 100}%` }} />
                </span>
                {machine.core_busy_ratios.length <= CORES_IN_WORDS && (
                  <span class="small">{units.percent(busy)}</span>
                )}
              </span>
            ))}
          </div>
        )}
      </div>
    </Section>
  );
}

export function Figure({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function More({
  page,
  run,
  title,
  query = {},
}: {
  page: string;
  run: string;
  title: string;
  query?: Record<string, string>;
}) {
  return (
    <a class="small" href={hrefOfPage(page, run, query)}>
      {title} →
    </a>
  );
}
