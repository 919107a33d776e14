export const parts = {
  'parts.title': 'Parts',
} as const;
