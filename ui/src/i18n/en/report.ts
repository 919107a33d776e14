export const report = {
  'report.notHere': 'This is not in the file.',
  'report.notHereHint': 'An exported file holds what matters most. All of it: strobe start',
  'report.wholeRun': 'The file has this of the whole run only.',
  'report.wholeRunHint': 'Take the choice of steps away, or open the run on a server: strobe start',
  'report.noTimeline': 'The timeline did not fit into this file. Where the run lies:',
  'report.partOfTimeline': 'This file holds {events} of {all} events: {length} from {from} on. All of them, where the run lies:',
  'report.cut': '{count} of {all} rows are in this file',
} as const;
