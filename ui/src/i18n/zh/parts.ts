import type { parts as en } from '../en/parts';

export const parts: Record<keyof typeof en, string> = {
  'parts.title': 'Parts',
};
