export const report = {
  'report.notHere': 'This is not included in the file.',
  'report.notHereHint':
    'An exported file has the most important parts. See everything with: strobe start',
  'report.wholeRun': 'The file has this for the whole run only.',
  'report.wholeRunHint': 'Show all steps, or open the run on a server: strobe start',
  'report.noTimeline': 'The timeline did not fit into this file. On the machine that has the run:',
  'report.partOfTimeline':
    'This file has {events} of {all} events: {length}, starting at {from}. To see all of them, on the machine that has the run:',
  'report.cut': '{count} of {all} rows are in this file',
} as const;
