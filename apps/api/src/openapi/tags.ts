/** Groups of the routes in the API reference, in its order. */
export const tags = [
  { name: 'Requests', description: 'Submit work of any kind, poll it, follow its events, cancel it.' },
  { name: 'Images', description: "Fetch images. Create and edit them through OpenAI's routes." },
  { name: 'Chat and text', description: "Generate texts through OpenAI's chat, completions and responses routes." },
  { name: 'Models', description: 'Served models, with the sizes, steps and inputs that each supports.' },
  { name: 'Webhooks', description: 'Webhooks that were not delivered, and the secret that signs them.' },
  { name: 'Health', description: 'Health checks for load balancers, and the state of workers and queues.' },
  { name: 'fal', description: "Routes for fal's unmodified clients." },
  { name: 'Replicate', description: "Routes for Replicate's unmodified clients." },
  {
    name: 'Admin',
    description: 'Operate models and workers, retry failed requests. Requires a key of `ADMIN_KEYS`, if set.',
  },
] as const;

export type Tag = (typeof tags)[number]['name'];
