import { Missing } from '../components/loaded';
import { t } from '../i18n';

/** In place of a page that an exported file does not have. */
export default function NotHere({ run }: { run: string }) {
  return (
    <div class="page">
      <h1>{t('timeline.title')}</h1>
      <Missing why={t('report.noTimeline')} command={`strobe show ${run} --web`} />
    </div>
  );
}
