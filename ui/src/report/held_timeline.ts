/** The timeline in the file, unpacked once, when a page first asks for it. */

import { unpacked as columnsOf } from '../timeline/packet';
import { unpacked } from './held';
import { HeldTimeline, type HeldAbout } from './timeline';

let known: Promise<HeldTimeline | null> | null = null;

/** Null where the file has none. */
export function heldTimeline(): Promise<HeldTimeline | null> {
  known ??= document.getElementById('strobe-timeline') === null ? Promise.resolve(null) : read();
  return known;
}

async function read(): Promise<HeldTimeline> {
  return new HeldTimeline(columnsOf<HeldAbout>(await unpacked('strobe-timeline').arrayBuffer()));
}
