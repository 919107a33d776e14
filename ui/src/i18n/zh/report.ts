import type { report as en } from '../en/report';

export const report: Record<keyof typeof en, string> = {
  'report.notHere': '文件中没有这部分内容。',
  'report.notHereHint': '导出的文件只包含最重要的内容。查看全部：strobe start',
  'report.wholeRun': '文件中只有整个运行的此项内容。',
  'report.wholeRunHint': '请显示全部迭代，或在服务器上打开此运行：strobe start',
  'report.noTimeline': '此文件放不下时间线。在运行所在的机器上查看：',
  'report.partOfTimeline':
    '此文件含 {all} 个事件中的 {events} 个：从 {from} 起的 {length}。在运行所在的机器上查看全部：',
  'report.cut': '此文件含 {all} 行中的 {count} 行',
};
