export const packageName = '@darkroom/diffusion';
