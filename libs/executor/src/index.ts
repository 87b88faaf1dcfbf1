export const packageName = '@darkroom/executor';
