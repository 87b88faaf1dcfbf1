/** What the body of `POST /v1/predict` may say of any request, whatever it asks for. */
export interface RequestOptions {
  /** An id of `/v1/models`. Default: the server's first. */
  model?: string;
  /** 1 is served first, 10 last. Default: 5. */
  priority?: number;
  /** Seconds, from 0.1: `expired` if it has not ended by then. Default and maximum are the server's. */
  timeout_s?: number;
  /** Seconds, from 0.1: `expired` if no worker has taken it by then. Default: `timeout_s`. */
  start_timeout_s?: number;
  /** Where the server POSTs events of the request to, signed (Standard Webhooks). Default: nowhere. */
  webhook_url?: string;
  /** What `webhook_url` is told of; `completed` is any end. Default: `['completed']`. */
  webhook_events?: ('started' | 'progress' | 'completed')[];
}
