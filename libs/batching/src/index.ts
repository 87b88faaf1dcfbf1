export const packageName = '@darkroom/batching';
