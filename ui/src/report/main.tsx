/** The pages of a run out of the file they stand in: no server, no request. */

import { render } from 'preact';
import '../theme.css';
import '../base.css';
import { setSource } from '../api';
import { saveText, setSave } from '../components/saving';
import { href, route } from '../router';
import { Shell } from '../shell';
import { asCsv, asJson } from './files';
import { unpacked, type Held } from './held';
import { select } from './select';
import { sourceOf } from './source';
import { heldTimeline } from './held_timeline';

const app = document.getElementById('app');
const reading = unpacked('strobe-report').json() as Promise<Held>;
const source = reading.then((held) => sourceOf(held, heldTimeline));

/** For whoever wants to know what the file holds: `strobeReport.ask('api/runs/…')` in the console. */
export const ask = async (address: string) => (await source)(address, {});

void Promise.all([reading, source]).then(([held, answers]) => {
  setSource(answers);
  setSave((where, form, name) => {
    const url = new URL(where, 'http://file/');
    const table = held.tables[decodeURIComponent(url.pathname.split('/').at(-1) ?? '')];
    const selected = table && select(table, url.searchParams);
    if (!selected) return;
    if (form === 'csv') saveText(asCsv(selected), 'text/csv', name);
    else saveText(asJson(selected), 'application/json', name);
  });
  if (route.value.run === null) location.replace(href('overview', held.run));
  if (app !== null) render(<Shell />, app);
});
