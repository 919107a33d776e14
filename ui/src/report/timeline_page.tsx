/** The timeline, or as much of it as the file holds. */

import { useEffect, useState } from 'preact/hooks';
import { Missing } from '../components/loaded';
import { t } from '../i18n';
import { Timeline } from '../timeline/timeline';
import * as units from '../units';
import { heldTimeline } from './held_timeline';
import type { HeldTimeline } from './timeline';

export default function TimelinePage({ run }: { run: string }) {
  const [held, setHeld] = useState<HeldTimeline | null | undefined>(undefined);
  useEffect(() => {
    void heldTimeline().then(setHeld);
  }, []);
  if (held === undefined) return null;
  const command = `strobe show ${run} --web`;
  if (held === null) {
    return (
      <div class="page">
        <h1>{t('timeline.title')}</h1>
        <Missing why={t('report.noTimeline')} command={command} />
      </div>
    );
  }
  const { begin_ns: begin, end_ns: end, events_in_run: all } = held.about;
  return (
    <div class="tl-held">
      {!held.isWhole && (
        <p class="tl-part small">
          {t('report.partOfTimeline', {
            from: units.moment(begin),
            length: units.duration(end - begin),
            events: units.count(held.start.length),
            all: units.count(all),
          })}{' '}
          <code>{command}</code>
        </p>
      )}
      <Timeline run={run} />
    </div>
  );
}
