export const packageName = '@darkroom/service';
