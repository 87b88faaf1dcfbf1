export const packageName = '@darkroom/store';
