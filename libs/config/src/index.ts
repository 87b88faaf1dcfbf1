export const packageName = '@darkroom/config';
