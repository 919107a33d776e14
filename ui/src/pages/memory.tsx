/** Memory: its curve and peak, who held it, where the blocks lay, and whether it grows from step to step. */

import { records, type Parameters } from '../api';
import { useTable } from '../tables';
import { ChosenBar, useChosen } from '../components/chosen';
import { Loaded, Missing } from '../components/loaded';
import { t } from '../i18n';
import { hrefOfPage, route, setQuery } from '../router';
import * as units from '../units';
import { Nothing } from './operators/nothing';
import { Blocks } from './memory/blocks';
import { Curve, isCounted, useTotal, type CurvePoint } from './memory/curve';
import { PROCESS } from './memory/devices';
import { Growth } from './memory/growth';
import { Holders } from './memory/holders';

/** The server makes at most some thousand of each device. */
const MOST_POINTS = 20_000;

export default function Memory({ run }: { run: string }) {
  const { parameters, ranks } = useChosen(run);
  const curve = useTable(run, 'memory-curve', { ...parameters, limit: MOST_POINTS });
  const points = curve.state === 'ready' ? records<CurvePoint>(curve.value) : [];
  const devices = [...new Set(points.map((point) => point.device))].sort(
    (a, b) => Number(a === PROCESS) - Number(b === PROCESS) || a.localeCompare(b),
  );
  const device = devices.find((one) => one === route.value.query.device) ?? devices[0];
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t('memory.title')}</h1>
        {devices.length > 1 && <DeviceChoice devices={devices} device={device} />}
        <ChosenBar ranks={ranks} />
      </div>
      <Loaded of={curve}>
        {() =>
          device === undefined ? (
            <NoMemory run={run} parameters={parameters} />
          ) : (
            <OfDevice
              run={run}
              parameters={parameters}
              device={device}
              points={points.filter((point) => point.device === device)}
              isRecorded={devices.some((one) => one !== PROCESS)}
            />
          )
        }
      </Loaded>
    </div>
  );
}

/** Some traces have memory as counters only, which the timeline draws. */
function NoMemory({ run, parameters }: { run: string; parameters: Parameters }) {
  const table = useTable(run, 'counter-statistics', { where: 'name:has:memory', limit: 100 });
  if (parameters.steps != null)
    return <Nothing run={run} parameters={parameters} why={t('memory.none')} />;
  const counters =
    table.state === 'ready'
      ? records<{ name: string; max: number }>(table.value).filter((row) =>
          row.name.endsWith('_bytes'),
        )
      : [];
  if (counters.length === 0)
    return <Missing why={t('memory.none')} command="strobe run --profile-memory train.py" />;
  return (
    <div class="note missing">
      <p>
        {t('memory.countersOnly', {
          counters: counters.map(({ name, max }) => `${name} (${units.size(max)})`).join(', '),
        })}
      </p>
      <p>
        <a href={hrefOfPage('timeline', run, { tracks: 'memory' })}>{t('operators.onTimeline')}</a>
      </p>
    </div>
  );
}

function DeviceChoice({
  devices,
  device,
}: {
  devices: readonly string[];
  device: string | undefined;
}) {
  return (
    <div class="tabs" role="group" aria-label={t('memory.device')}>
      {devices.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === device}
          onClick={() => setQuery({ device: one, m0: null, m1: null, block: null }, { push: true })}
        >
          {one === PROCESS ? t('memory.process') : one}
        </button>
      ))}
    </div>
  );
}

interface OfDeviceProps {
  readonly run: string;
  readonly parameters: Parameters;
  readonly device: string;
  readonly points: readonly CurvePoint[];
  readonly isRecorded: boolean;
}

function OfDevice({ run, parameters, device, points, isRecorded }: OfDeviceProps) {
  const total = useTotal(run, parameters, device);
  const hasBlocks = device !== PROCESS && !isCounted(total);
  return (
    <div class="stack">
      <Curve run={run} device={device} points={points} total={total} />
      {isCounted(total) && (
        <Missing why={t('memory.countedOnly')} command="strobe run --profile-memory train.py" />
      )}
      {!isRecorded && (
        <Missing why={t('memory.noAllocations')} command="strobe run --profile-memory train.py" />
      )}
      {hasBlocks && <Holders run={run} parameters={parameters} device={device} />}
      {hasBlocks && <Blocks run={run} parameters={parameters} device={device} />}
      <Growth run={run} parameters={parameters} device={device} />
    </div>
  );
}
