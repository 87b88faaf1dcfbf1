/** Path of a request below the client's `baseUrl`. */
export function requestPath(id: string): string {
  return `/v1/predict/${encodeURIComponent(id)}`;
}
