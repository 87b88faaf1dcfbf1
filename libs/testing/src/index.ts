export const packageName = '@darkroom/testing';
