export const packageName = '@darkroom/runtime';
