/** One file a page; to add one, write it and add its two lines here. */

import { columns } from './columns';
import { compare } from './compare';
import { memory } from './memory';
import { operators } from './operators';
import { overview } from './overview';
import { pipeline } from './pipeline';
import { report } from './report';
import { rules } from './rules';
import { runs } from './runs';
import { shell } from './shell';
import { steps } from './steps';
import { table } from './table';
import { timeline } from './timeline';

export const zh = {
  ...columns,
  ...compare,
  ...memory,
  ...operators,
  ...overview,
  ...pipeline,
  ...report,
  ...rules,
  ...runs,
  ...shell,
  ...steps,
  ...table,
  ...timeline,
};
