export const report = {
  'report.notHere': 'This is not in the file.',
  'report.notHereHint': 'An exported file holds what matters most. All of it: strobe start',
  'report.wholeRun': 'The file has this of the whole run only.',
  'report.wholeRunHint': 'Take the choice of steps away, or open the run on a server: strobe start',
  'report.noTimeline': 'The timeline is not in an exported file: it is read piece by piece from the run. Where the run lies:',
  'report.cut': '{count} of {all} rows are in this file',
} as const;
