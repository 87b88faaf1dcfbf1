/** Where a request is found. Paths, not whole URLs: only the client knows under which name it reached us. */
export function requestUrls(id: string): { self: string; events: string; cancel: string } {
  const self = `/v1/predict/${id}`;
  return { self, events: `${self}/events`, cancel: self };
}
