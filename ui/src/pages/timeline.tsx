/** Where in time did everything happen? */

import { Timeline } from '../timeline/timeline';

export default function TimelinePage({ run }: { run: string }) {
  return <Timeline run={run} />;
}
