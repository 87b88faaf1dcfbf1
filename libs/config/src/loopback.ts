/** Whether nobody beyond this machine can reach what listens on `host`, or has asked for it by that name. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
