const sources: Readonly<Record<string, string>> = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** For what a browser shows: it loads its own files and this server, and nothing else but what `more` says. */
export function pageHeaders(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const policy = Object.entries({ ...sources, ...more }).map(([directive, value]) => `${directive} ${value}`);
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  };
}
