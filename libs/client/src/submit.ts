import type { AcceptedRequest } from './answers.ts';
import type { SubmitOptions } from './options.ts';
import type { ImageRequest, RequestKind, RequestOfKind, TextRequest } from './requests.ts';

/** `Request` with at least one of the fields `Field`. */
type WithOneOf<Request, Field extends keyof Request> = Field extends keyof Request
  ? Request & Required<Pick<Request, Field>>
  : never;

/**
 * Submits a request for images or texts. The type infers the kind from a field that only one kind has; with a prompt
 * alone, the model decides.
 */
export interface Submit {
  (
    request: WithOneOf<ImageRequest, Exclude<keyof ImageRequest, keyof TextRequest>>,
    given?: SubmitOptions,
  ): Promise<AcceptedRequest<'image'>>;
  (
    request: WithOneOf<TextRequest, Exclude<keyof TextRequest, keyof ImageRequest>>,
    given?: SubmitOptions,
  ): Promise<AcceptedRequest<'text'>>;
  <Kind extends RequestKind = RequestKind>(
    request: RequestOfKind[Kind],
    given?: SubmitOptions,
  ): Promise<AcceptedRequest<Kind>>;
}
