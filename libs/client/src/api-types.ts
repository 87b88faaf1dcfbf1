// Generated from /openapi.json by `npm run generate`. Do not edit.
/* oxlint-disable max-lines */
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ImageRequest: {
            /** @description The id of a model in /v1/models. Default: the server’s configured model, or its first. */
            model?: string | null;
            /**
             * @description Description of the image.
             * @example a fox on a green background
             */
            prompt: string;
            /** @description Description of what to avoid; no effect at guidance 1. Default: none. */
            negative_prompt?: string | null;
            /**
             * @description Pixels, within the limits of the model. Default: "auto", the model’s default size.
             * @example 128x128
             */
            size?: string | null;
            /**
             * @description Number of images; image i has the seed `seed + i`. Default: 1.
             * @example 1
             */
            n?: number | null;
            /**
             * @description Number of denoising steps, within the limits of the model. Default: the model’s.
             * @example 12
             */
            num_inference_steps?: number | null;
            /**
             * @description How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the
             * model’s.
             */
            guidance_scale?: number | null;
            /**
             * @description Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency
             * models. Default: 0 (off).
             */
            guidance_rescale?: number | null;
            /**
             * @description The same seed and parameters give the same bytes. Default: random; the result contains it.
             */
            seed?: number | null;
            /**
             * @description One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI
             * (`Euler a`). Default: the model’s.
             */
            scheduler?: string | null;
            /** @description Default: png. */
            output_format?: ("png" | "jpeg" | "webp") | null;
            /** @description Quality of jpeg and webp; png ignores it. Default: 100. */
            output_compression?: number | null;
            /**
             * @description "inline" returns the images in base64 if the request waits for its result (`Prefer: wait`).
             * Default: "url".
             */
            output?: ("url" | "inline") | null;
            /**
             * @description Number of steps between previews of the unfinished image, or "off". Default: {"every": 5}.
             */
            preview?: ("off" | {
                every: number;
            }) | null;
            /**
             * @description The input image, for models whose `takes` has it: PNG, JPEG or WebP, as a data URL, an https
             * URL that the server fetches, the `url` of an image from an earlier request of yours, or a file of a
             * `multipart/form-data` body. The server rotates it by its EXIF orientation, scales it to fill `size` and
             * crops it at the center. With `size: "auto"`, the size is that of the image, within the limits of the
             * model.
             */
            image?: string | null;
            /**
             * @description The area to repaint, for models whose `takes` has it: an image of the size of `image`, white
             * where to repaint and black where `image` stays.
             */
            mask?: string | null;
            /**
             * @description How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a
             * mask.
             */
            strength?: number | null;
            /**
             * @description Whether to embed the generation parameters in the file (prompts, seed, steps and so on),
             * readable by common tools. Anyone with the file can then read the prompt. An object, as OpenAI’s clients
             * send it, is ignored. Default: false.
             */
            metadata?: (boolean | {
                [key: string]: unknown;
            }) | null;
            /**
             * @description Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling.
             */
            upscale?: (2 | 4) | null;
            /**
             * @description LoRA adapters of the model with their scales. Default: none; the default scale is 1.
             * @example [
             *       {
             *         "id": "pixels",
             *         "scale": 0.8
             *       }
             *     ]
             */
            loras?: {
                id: string;
                scale?: number | null;
            }[] | null;
            /** @description 1 is served first, 10 last. Default: 5. */
            priority?: number | null;
            /**
             * @description The request is `expired` if it has not ended within this time. Default: set by the server;
             * at most one day.
             */
            timeout_s?: number | null;
            /**
             * @description The request is `expired` if no worker has started it within this time. Default: timeout_s.
             */
            start_timeout_s?: number | null;
            /**
             * @description URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are
             * rejected unless the server allows them.
             * @example https://example.com/darkroom
             */
            webhook_url?: string | null;
            /** @description Events to send; `completed` is any end. Default: ["completed"]. */
            webhook_events?: ("started" | "progress" | "completed")[] | null;
            /** @description Ignored and not stored. */
            user?: string | null;
        };
        TextRequest: {
            /** @description The id of a model in /v1/models. Default: the server’s configured model, or its first. */
            model?: string | null;
            /** @description Text to continue, as a string or as token ids. Instead of `messages`. */
            prompt?: (string | number[]) | null;
            /**
             * @description Conversation to answer, rendered with the chat template of the model. Instead of `prompt`.
             * Parts of the type `image_url` are for models whose `takes` has `image`.
             * @example [
             *       {
             *         "role": "user",
             *         "content": "something sweet"
             *       }
             *     ]
             */
            messages?: ({
                role: string;
                content: string | (({
                    /** @enum {string} */
                    type: "text";
                    text: string;
                } & {
                    [key: string]: unknown;
                }) | {
                    /** @enum {string} */
                    type: "image_url";
                    image_url: {
                        /**
                         * @description PNG, JPEG or WebP: a data URL, an https URL that the server fetches, or the
                         * `url` of an image from an earlier request of yours.
                         */
                        url: string;
                        /** @description For the model. Default: auto. */
                        detail?: ("auto" | "low" | "high") | null;
                    };
                })[];
                tool_calls?: ({
                    function: {
                        name: string;
                        arguments: string | {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[] | null;
            } & {
                [key: string]: unknown;
            })[] | null;
            /**
             * @description An image to ask about, for models whose `takes` has it: the request is then one message with
             * this image and `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body.
             */
            image?: string | null;
            /**
             * @description Maximum number of tokens to generate. Default: the model’s.
             * @example 24
             */
            max_tokens?: number | null;
            /** @description 0 always takes the most probable token. Default: the model’s. */
            temperature?: number | null;
            /**
             * @description Samples from the most probable tokens whose probabilities add up to this. Default: the
             * model’s.
             */
            top_p?: number | null;
            /** @description Samples from this many most probable tokens; 0 is all. Default: the model’s. */
            top_k?: number | null;
            /** @description Minimum probability of a token, relative to the most probable one. Default: 0. */
            min_p?: number | null;
            /** @description Penalty for tokens that were generated before. Default: 0. */
            presence_penalty?: number | null;
            /** @description Penalty for tokens that were generated before, once per occurrence. Default: 0. */
            frequency_penalty?: number | null;
            /** @description Values to add to the logits of tokens, by token id. Default: none. */
            logit_bias?: {
                [key: string]: number;
            } | null;
            /** @description Whether to return the log probability of each token. Default: false. */
            logprobs?: boolean | null;
            /** @description Number of most probable alternatives to return for each token. Default: 0. */
            top_logprobs?: number | null;
            /** @description Number of texts; text i has the seed `seed + i`. Default: 1. */
            n?: number | null;
            /**
             * @description The same seed and parameters give the same text. A seed of more than 32 bits is folded to
             * 32; the result has the folded one. Default, and -1: random.
             */
            seed?: number | null;
            /** @description Strings at which generation ends; they are not part of the text. Default: none. */
            stop?: (string | string[]) | null;
            /** @description Ignore the end token and generate max_tokens. Default: false. */
            ignore_eos?: boolean | null;
            /**
             * @description Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema.
             * Default: text.
             */
            response_format?: (({
                /** @enum {string} */
                type: "text";
            } & {
                [key: string]: unknown;
            }) | ({
                /** @enum {string} */
                type: "json_object";
            } & {
                [key: string]: unknown;
            }) | ({
                /** @enum {string} */
                type: "json_schema";
                json_schema: {
                    schema: {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })) | null;
            /**
             * @description Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none.
             * @example root ::= "a " ("red" | "blue") " fox"
             */
            grammar?: string | null;
            /**
             * @description Regular expression that the full text of every answer matches. Default: none.
             * @example (red|blue) fox
             */
            regex?: string | null;
            /**
             * @description Tools that the model may call, with arguments that match `parameters`; an empty list is
             * none. For models with `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either
             * calls or text of that form.
             */
            tools?: ({
                /** @enum {string} */
                type: "function";
                function: {
                    name: string;
                    description?: string | null;
                    parameters?: ({
                        /** @enum {string} */
                        type: "object";
                    } & {
                        [key: string]: unknown;
                    }) | null;
                    strict?: boolean | null;
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })[] | null;
            /**
             * @description `auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it
             * must call this one. Default: auto.
             */
            tool_choice?: (("auto" | "none" | "required") | ({
                /** @enum {string} */
                type: "function";
                function: {
                    name: string;
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })) | null;
            /** @description Whether one answer may have several tool calls. Default: true. */
            parallel_tool_calls?: boolean | null;
            /** @description Block diffusion only: maximum number of model calls. Default: no limit. */
            max_nfe?: number | null;
            /** @description Block diffusion only: probability from which a token is kept. Default: the model’s. */
            confidence_threshold?: number | null;
            /**
             * @description Block diffusion only: number of tokens kept in each call, instead of those above the
             * threshold.
             */
            tokens_per_step?: number | null;
            /** @description 1 is served first, 10 last. Default: 5. */
            priority?: number | null;
            /**
             * @description The request is `expired` if it has not ended within this time. Default: set by the server;
             * at most one day.
             */
            timeout_s?: number | null;
            /**
             * @description The request is `expired` if no worker has started it within this time. Default: timeout_s.
             */
            start_timeout_s?: number | null;
            /**
             * @description URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are
             * rejected unless the server allows them.
             * @example https://example.com/darkroom
             */
            webhook_url?: string | null;
            /** @description Events to send; `completed` is any end. Default: ["completed"]. */
            webhook_events?: ("started" | "progress" | "completed")[] | null;
            /** @description Ignored and not stored. */
            user?: string | null;
            /** @description Ignored and not stored. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        Accepted: {
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * @description `queued`, unless an Idempotency-Key found an earlier one.
             * @enum {string}
             */
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /**
             * @description Requests that will be dispatched before this one; null once it runs.
             * @example 0
             */
            queue_position: number | null;
            /**
             * @description Seconds until the end, as a range from measured step times; omitted if no worker has
             * measured any.
             * @example {
             *       "min": 1.2,
             *       "max": 2.5
             *     }
             */
            eta_seconds?: {
                min: number;
                max: number;
            };
            /** @description True if a live worker serves the model right now. */
            is_possible: boolean;
            /**
             * @example {
             *       "self": "/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe",
             *       "events": "/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/events",
             *       "cancel": "/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe"
             *     }
             */
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
        };
        Cancel: {
            request_id: string;
            /** @enum {string} */
            status: "canceled" | "canceling";
        };
        Request: components["schemas"]["ImageStatus"] | components["schemas"]["TextStatus"];
        Model: components["schemas"]["ImageModel"] | components["schemas"]["TextModel"];
        RequestEvent: components["schemas"]["QueuedEvent"] | components["schemas"]["StartedEvent"] | components["schemas"]["LoadingEvent"] | components["schemas"]["FailedEvent"] | components["schemas"]["CanceledEvent"] | components["schemas"]["ExpiredEvent"] | components["schemas"]["ImageProgressEvent"] | components["schemas"]["ImageChunkEvent"] | components["schemas"]["ImagesSucceededEvent"] | components["schemas"]["TextProgressEvent"] | components["schemas"]["DeltaEvent"] | components["schemas"]["SnapshotEvent"] | components["schemas"]["ResetEvent"] | components["schemas"]["TextEndEvent"] | components["schemas"]["TextsSucceededEvent"];
        Status: {
            /** Format: date-time */
            time: string;
            workers: components["schemas"]["WorkerStatus"][];
            queues: components["schemas"]["QueueStatus"][];
            /** @description The last failures of each model, newest first. */
            failures: {
                model: string;
                /** Format: date-time */
                failed_at: string;
                reason: string;
            }[];
            /**
             * @description Models that a worker failed to load in the last minute: such a worker is `loading`, or not
             * registered.
             */
            failed_to_load: {
                model: string;
                host: string;
                /** Format: date-time */
                failed_at: string;
                reason: string;
            }[];
            /** @description Files that a model is served without, such as adapters that do not fit it. */
            refused_files: {
                model: string;
                file: string;
                reason: string;
            }[];
        };
        DeadRequestList: {
            /** @enum {string} */
            object: "list";
            data: components["schemas"]["DeadRequest"][];
        };
        ImageStatus: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "image";
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** @enum {string} */
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /** @description Running, and will be canceled at its next step. */
            is_canceling: boolean;
            model: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            ended_at: string | null;
            /**
             * Format: date-time
             * @description Time until which the results can be fetched; null while open.
             * @example 2026-11-21T01:40:46.000Z
             */
            expires_at: string | null;
            /** @description Requests ahead of this one; null once it runs. */
            queue_position: number | null;
            /**
             * @description Seconds until the end, as a range from measured step times; omitted if no worker has
             * measured any.
             * @example {
             *       "min": 1.2,
             *       "max": 2.5
             *     }
             */
            eta_seconds?: {
                min: number;
                max: number;
            };
            is_possible: boolean;
            /** @description Deliveries to a worker so far. */
            attempts: number;
            error?: components["schemas"]["Failure"];
            /** @description The failed request of which an operator made this retry. */
            retry_of?: string;
            /** @description The retry that an operator made of this failed request. */
            retried_as?: string;
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
            /** @description Steps done, over all images of the request. */
            step: number;
            total_steps: number;
            progress: number;
            seed: number;
            /** @description One per image. */
            seeds: number[];
            /** @description A body that reproduces the same images. */
            parameters: {
                /**
                 * @description The id of a model in /v1/models. Default: the server’s configured model, or its first.
                 */
                model: string;
                /** @description Null once the request has ended, if the server does not retain prompts. */
                prompt: string | null;
                /** @description Null once the request has ended, if the server does not retain prompts. */
                negative_prompt: string | null;
                /**
                 * @description Pixels, within the limits of the model. Default: "auto", the model’s default size.
                 * @example 128x128
                 */
                size: string;
                /**
                 * @description Number of images; image i has the seed `seed + i`. Default: 1.
                 * @example 1
                 */
                n: number;
                /**
                 * @description Number of denoising steps, within the limits of the model. Default: the model’s.
                 * @example 12
                 */
                num_inference_steps: number;
                /**
                 * @description How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default:
                 * the model’s.
                 */
                guidance_scale: number;
                /**
                 * @description Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent
                 * consistency models. Default: 0 (off).
                 */
                guidance_rescale: number;
                /**
                 * @description The same seed and parameters give the same bytes. Default: random; the result contains
                 * it.
                 */
                seed: number;
                /**
                 * @description One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and
                 * ComfyUI (`Euler a`). Default: the model’s.
                 */
                scheduler: string;
                /**
                 * @description Default: png.
                 * @enum {string}
                 */
                output_format: "png" | "jpeg" | "webp";
                /** @description Quality of jpeg and webp; png ignores it. Default: 100. */
                output_compression: number;
                /**
                 * @description Number of steps between previews of the unfinished image, or "off". Default: {"every":
                 * 5}.
                 * @example {
                 *       "every": 2
                 *     }
                 */
                preview: "off" | {
                    every: number;
                };
                /**
                 * @description URL of the input image, scaled and cropped; absent without one, null if it is no longer
                 * stored.
                 * @example /v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/inputs/image
                 */
                image?: string | null;
                /** @description URL of the mask, likewise: white where the image was repainted. */
                mask?: string | null;
                /**
                 * @description How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with
                 * a mask.
                 */
                strength?: number;
                metadata?: boolean;
                /**
                 * @description Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no
                 * upscaling.
                 * @enum {number}
                 */
                upscale?: 2 | 4;
                /**
                 * @description LoRA adapters of the model with their scales. Default: none; the default scale is 1.
                 * @example [
                 *       {
                 *         "id": "pixels",
                 *         "scale": 0.8
                 *       }
                 *     ]
                 */
                loras?: {
                    id: string;
                    scale?: number;
                }[];
            };
            /**
             * @description Number of tokens cut from the prompt's end because they exceed the model's limit; with
             * several text encoders, the smallest number counts. null before the first image is done.
             */
            prompt_tokens_cut: number | null;
            /** @description The same for the negative prompt; 0 if guidance does not use it. */
            negative_prompt_tokens_cut: number | null;
            images: components["schemas"]["Image"][];
        };
        TextStatus: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "text";
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** @enum {string} */
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /** @description Running, and will be canceled at its next step. */
            is_canceling: boolean;
            model: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            ended_at: string | null;
            /**
             * Format: date-time
             * @description Time until which the results can be fetched; null while open.
             * @example 2026-11-21T01:40:46.000Z
             */
            expires_at: string | null;
            /** @description Requests ahead of this one; null once it runs. */
            queue_position: number | null;
            /**
             * @description Seconds until the end, as a range from measured step times; omitted if no worker has
             * measured any.
             * @example {
             *       "min": 1.2,
             *       "max": 2.5
             *     }
             */
            eta_seconds?: {
                min: number;
                max: number;
            };
            is_possible: boolean;
            /** @description Deliveries to a worker so far. */
            attempts: number;
            error?: components["schemas"]["Failure"];
            /** @description The failed request of which an operator made this retry. */
            retry_of?: string;
            /** @description The retry that an operator made of this failed request. */
            retried_as?: string;
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
            /** @description Tokens written, over all texts of the request. */
            tokens: number;
            /** @description Share of max_tokens generated so far; 1 if the request has succeeded. */
            progress: number;
            seed: number;
            /** @description The texts so far; complete once the request has ended. */
            texts: {
                index: number;
                text: string;
                /** @description Tool calls in the text, if there are any. */
                tool_calls?: {
                    id: string;
                    /** @enum {string} */
                    type: "function";
                    function: {
                        name: string;
                        /** @description JSON; incomplete if the text was cut. */
                        arguments: string;
                    };
                }[];
            }[];
            /**
             * @description A body that reproduces the same texts. For a model that another server runs, only the fields
             * that were sent.
             */
            parameters: {
                /**
                 * @description The id of a model in /v1/models. Default: the server’s configured model, or its first.
                 */
                model: string;
                /**
                 * @description Token ids; for a model that another server runs, the prompt as sent. Null with
                 * `messages`, and once the request has ended if the server does not retain prompts.
                 */
                prompt: number[] | string | null;
                /**
                 * @description Conversation to answer, rendered with the chat template of the model. Instead of
                 * `prompt`. Parts of the type `image_url` are for models whose `takes` has `image`.
                 * @example [
                 *       {
                 *         "role": "user",
                 *         "content": "something sweet"
                 *       }
                 *     ]
                 */
                messages?: ({
                    role: string;
                    content: string | (({
                        /** @enum {string} */
                        type: "text";
                        text: string;
                    } & {
                        [key: string]: unknown;
                    }) | {
                        /** @enum {string} */
                        type: "image_url";
                        image_url: {
                            /**
                             * @description PNG, JPEG or WebP: a data URL, an https URL that the server fetches, or the
                             * `url` of an image from an earlier request of yours.
                             */
                            url: string;
                            /**
                             * @description For the model. Default: auto.
                             * @enum {string}
                             */
                            detail?: "auto" | "low" | "high";
                        };
                    })[];
                    tool_calls?: ({
                        function: {
                            name: string;
                            arguments: string | {
                                [key: string]: unknown;
                            };
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                } & {
                    [key: string]: unknown;
                })[];
                /**
                 * @description An image to ask about, for models whose `takes` has it: the request is then one message
                 * with this image and `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body.
                 */
                image?: string;
                /**
                 * @description Maximum number of tokens to generate. Default: the model’s.
                 * @example 24
                 */
                max_tokens?: number;
                /** @description 0 always takes the most probable token. Default: the model’s. */
                temperature?: number;
                /**
                 * @description Samples from the most probable tokens whose probabilities add up to this. Default: the
                 * model’s.
                 */
                top_p?: number;
                /** @description Samples from this many most probable tokens; 0 is all. Default: the model’s. */
                top_k?: number;
                /** @description Minimum probability of a token, relative to the most probable one. Default: 0. */
                min_p?: number;
                /** @description Penalty for tokens that were generated before. Default: 0. */
                presence_penalty?: number;
                /** @description Penalty for tokens that were generated before, once per occurrence. Default: 0. */
                frequency_penalty?: number;
                /** @description Values to add to the logits of tokens, by token id. Default: none. */
                logit_bias?: {
                    [key: string]: number;
                };
                /** @description Whether to return the log probability of each token. Default: false. */
                logprobs?: boolean;
                /** @description Number of most probable alternatives to return for each token. Default: 0. */
                top_logprobs?: number;
                /** @description Number of texts; text i has the seed `seed + i`. Default: 1. */
                n: number;
                /**
                 * @description The same seed and parameters give the same text. A seed of more than 32 bits is folded
                 * to 32; the result has the folded one. Default, and -1: random.
                 */
                seed: number;
                /** @description Strings at which generation ends; they are not part of the text. Default: none. */
                stop?: string | string[];
                /** @description Ignore the end token and generate max_tokens. Default: false. */
                ignore_eos?: boolean;
                /**
                 * @description Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a
                 * schema. Default: text.
                 * @example {
                 *       "type": "json_object"
                 *     }
                 */
                response_format?: ({
                    /** @enum {string} */
                    type: "text";
                } & {
                    [key: string]: unknown;
                }) | ({
                    /** @enum {string} */
                    type: "json_object";
                } & {
                    [key: string]: unknown;
                }) | ({
                    /** @enum {string} */
                    type: "json_schema";
                    json_schema: {
                        schema: {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                });
                /**
                 * @description Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none.
                 * @example root ::= "a " ("red" | "blue") " fox"
                 */
                grammar?: string;
                /**
                 * @description Regular expression that the full text of every answer matches. Default: none.
                 * @example (red|blue) fox
                 */
                regex?: string;
                /**
                 * @description Tools that the model may call, with arguments that match `parameters`; an empty list is
                 * none. For models with `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either
                 * calls or text of that form.
                 */
                tools?: ({
                    /** @enum {string} */
                    type: "function";
                    function: {
                        name: string;
                        description?: string | null;
                        parameters?: ({
                            /** @enum {string} */
                            type: "object";
                        } & {
                            [key: string]: unknown;
                        }) | null;
                        strict?: boolean | null;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[];
                /**
                 * @description `auto`: the model may call tools; `none`: it must not; `required`: it must; an object:
                 * it must call this one. Default: auto.
                 */
                tool_choice?: ("auto" | "none" | "required") | ({
                    /** @enum {string} */
                    type: "function";
                    function: {
                        name: string;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                });
                /** @description Whether one answer may have several tool calls. Default: true. */
                parallel_tool_calls?: boolean;
                /** @description Block diffusion only: maximum number of model calls. Default: no limit. */
                max_nfe?: number;
                /** @description Block diffusion only: probability from which a token is kept. Default: the model’s. */
                confidence_threshold?: number;
                /**
                 * @description Block diffusion only: number of tokens kept in each call, instead of those above the
                 * threshold.
                 */
                tokens_per_step?: number;
            };
            usage: {
                prompt_tokens: number;
                /** @description Tokens generated so far, if the request is running or was canceled. */
                completion_tokens: number;
                total_tokens: number;
                /** @description Prompt tokens that were in the cache. */
                cached_tokens: number;
                /** @description Model calls after the prompt, of finished texts. */
                nfe: number;
            };
            /** @description One per finished text. */
            finish_reasons: ("stop" | "length")[];
        };
        ImageModel: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "image";
            /** @example emoji-sd */
            id: string;
            /** @enum {string} */
            object: "model";
            created: number;
            owned_by: string;
            /** @description True if a live worker serves it right now. */
            is_possible: boolean;
            /** @description True if an operator has paused it: requests wait. */
            is_paused: boolean;
            pipeline: string;
            sizes: {
                multiple: number;
                min: number;
                max: number;
            };
            steps: {
                min: number;
                max: number;
            };
            guidance: {
                min: number;
                max: number;
            };
            /** @description Values that `scheduler` accepts. */
            schedulers: string[];
            max_prompt_tokens: number;
            /** @description Input files that requests may have; absent without any. */
            takes?: ("image" | "mask")[];
            /** @description Input files that each request must have; absent without any. */
            needs?: ("image" | "mask")[];
            /**
             * @description Fields that requests must not have, because the server of the model does not support them.
             */
            unsupported?: ("negative_prompt" | "seed" | "guidance_rescale" | "strength")[];
            /** @description Values that `upscale` accepts; empty if the model has no upscaler. */
            upscales: (2 | 4)[];
            /**
             * @description Effect of the model’s safety checker on a flagged image: `black` replaces it, `refuse` fails
             * the request. null: no checker.
             * @enum {string|null}
             */
            safety_checker: "black" | "refuse" | null;
            /** @description Adapters that `loras` accepts, with their ranks; absent without any. */
            loras?: {
                id: string;
                rank: number;
                /** @description File name, if it cannot be the id. */
                name?: string;
                /**
                 * @description Parts of the adapter that are ignored, such as `text_encoder`, because that part of the
                 * model does not support adapters.
                 */
                left_out?: string[];
            }[];
            defaults: {
                size: string;
                num_inference_steps: number;
                guidance_scale: number;
                scheduler: string;
            };
        };
        TextModel: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "text";
            /** @example emoji-sd */
            id: string;
            /** @enum {string} */
            object: "model";
            created: number;
            owned_by: string;
            /** @description True if a live worker serves it right now. */
            is_possible: boolean;
            /** @description True if an operator has paused it: requests wait. */
            is_paused: boolean;
            pipeline: string;
            /** @enum {string} */
            mode: "autoregressive" | "block_diffusion";
            /** @description Maximum tokens of prompt and output together, if known. */
            max_model_len?: number;
            vocabulary_size?: number;
            /** @description Whether the model takes `messages`. */
            has_chat_template: boolean;
            /**
             * @description ["image"] if messages may have images, else []. Absent if only the server that runs the
             * model knows.
             */
            takes?: "image"[];
            /** @description Whether the model calls tools. Absent if only the server that runs the model knows. */
            has_tools?: boolean;
            /** @description Whether a text has the same bytes regardless of the requests in its batch. */
            deterministic: boolean;
            deterministic_reason?: string;
            block_size?: number;
            /** @description Absent for a model that another server runs: that server applies its own. */
            defaults?: {
                max_tokens: number;
                temperature: number;
                top_p: number;
                top_k: number;
                confidence_threshold?: number;
            };
        };
        /** @description Queued; again if its worker is lost or stops. */
        QueuedEvent: {
            /** @enum {string} */
            type: "queued";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Requests that will be dispatched before this one. */
            queue_position: number;
            /** @description From 1. */
            attempt: number;
        };
        /** @description A worker started it. */
        StartedEvent: {
            /** @enum {string} */
            type: "started";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description From 1. */
            attempt: number;
        };
        /** @description Its worker loads the model first. */
        LoadingEvent: {
            /** @enum {string} */
            type: "loading";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Duration of the last load on this worker. */
            expected_seconds?: number;
        };
        /** @description Final. */
        FailedEvent: {
            /** @enum {string} */
            type: "failed";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            error: components["schemas"]["Failure"];
        };
        /** @description Final: a client or an operator canceled it. */
        CanceledEvent: {
            /** @enum {string} */
            type: "canceled";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
        };
        /** @description Final: `timeout_s` or `start_timeout_s` elapsed. */
        ExpiredEvent: {
            /** @enum {string} */
            type: "expired";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
        };
        /** @description An image advanced. */
        ImageProgressEvent: {
            /** @enum {string} */
            type: "progress";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            /** @description Steps done. */
            step: number;
            total_steps: number;
            progress: number;
            /**
             * @description At some steps, until the request has ended: a preview as a data URL, for the `src` of an
             * `<img>`.
             */
            preview?: string;
        };
        /**
         * @description A chunk of a finished image: join the bytes of all chunks of an index. A later attempt sends an
         * image again.
         */
        ImageChunkEvent: {
            /** @enum {string} */
            type: "image";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            index: number;
            /** @example /v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0 */
            url: string;
            seed: number;
            width: number;
            height: number;
            /** @example image/png */
            content_type: string;
            bytes: number;
            /**
             * @description Result of the model’s safety checker; a flagged image is black. Absent if the model has no
             * checker.
             */
            nsfw_content_detected?: boolean;
            chunk_id: string;
            /** @description From 0. */
            chunk_index: number;
            total_chunks: number;
            is_chunked: boolean;
            /** @description The last chunk of the image. */
            is_final: boolean;
            /** @description The bytes of the chunk in base64. */
            b64: string;
        };
        /** @description Final: all images are done. */
        ImagesSucceededEvent: {
            /** @enum {string} */
            type: "succeeded";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /**
             * @description Number of tokens cut from the prompt's end because they exceed the model's limit; with
             * several text encoders, the smallest number counts. null before the first image is done.
             */
            prompt_tokens_cut: number | null;
            /** @description The same for the negative prompt; 0 if guidance does not use it. */
            negative_prompt_tokens_cut: number | null;
            images: components["schemas"]["Image"][];
        };
        /** @description Tokens so far, at intervals; the text is in `delta` and `snapshot`. */
        TextProgressEvent: {
            /** @enum {string} */
            type: "progress";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            tokens: number;
            max_tokens?: number;
        };
        /** @description Text was added at `offset`, and is final. */
        DeltaEvent: {
            /** @enum {string} */
            type: "delta";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            /** @description Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
            text: string;
            token_ids?: number[];
            /** @description Block diffusion: model calls after the prompt, up to here. */
            nfe?: number;
            /** @description One per token, with `logprobs`. */
            logprobs?: components["schemas"]["TokenLogprob"][];
        };
        /**
         * @description The text from `offset` on, which replaces everything after it; `░` is a token that is not
         * decided yet.
         */
        SnapshotEvent: {
            /** @enum {string} */
            type: "snapshot";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            /** @description Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
            text: string;
            token_ids?: number[];
            /** @description Block diffusion: model calls after the prompt, up to here. */
            nfe?: number;
            /** @description One per token, with `logprobs`. */
            logprobs?: components["schemas"]["TokenLogprob"][];
        };
        /**
         * @description Discard the text from `offset` on: another worker took over and wrote something else. Never sent
         * by a model that is `deterministic`.
         */
        ResetEvent: {
            /** @enum {string} */
            type: "reset";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            /** @description Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
        };
        /** @description A text is finished. */
        TextEndEvent: {
            /** @enum {string} */
            type: "text";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            /** @description Of the image or text, from 0. */
            index: number;
            /** @description Of its UTF-8. */
            bytes: number;
            /** @enum {string} */
            finish_reason: "stop" | "length";
            /** @description The stop text that ended it. */
            stop?: string;
            prompt_tokens: number;
            completion_tokens: number;
            cached_tokens: number;
            /** @description Model calls after the prompt. */
            calls: number;
        };
        /** @description Final: all texts are done. */
        TextsSucceededEvent: {
            /** @enum {string} */
            type: "succeeded";
            /** @description Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:40:46.000Z
             */
            timestamp: string;
            usage: {
                prompt_tokens: number;
                /** @description Tokens generated so far, if the request is running or was canceled. */
                completion_tokens: number;
                total_tokens: number;
                /** @description Prompt tokens that were in the cache. */
                cached_tokens: number;
                /** @description Model calls after the prompt, of finished texts. */
                nfe: number;
            };
            /** @description One per finished text. */
            finish_reasons: ("stop" | "length")[];
        };
        WorkerStatus: {
            id: string;
            model: string;
            /**
             * @description `asleep`: it has freed the memory of its model, and loads it for the next request, or is
             * about to. `draining`: it gets no new requests. `silent`: no heartbeat; it counts as dead.
             * @enum {string}
             */
            state: "loading" | "idle" | "busy" | "asleep" | "draining" | "silent";
            /** @description True if it is alive and has its model in memory. */
            loaded: boolean;
            draining: boolean;
            /**
             * @description True if it drains because it is stopping, and requeues its requests; false if an operator
             * drains it.
             */
            stopping: boolean;
            device: string | null;
            host: string | null;
            version: string | null;
            /**
             * @description Files of its model that were replaced since it was loaded: the loaded version is served
             * until a restart.
             */
            changed_files: string | null;
            /** @description Slots: rows that can share a step. */
            rows: number;
            free_rows: number;
            /** Format: date-time */
            registered_at: string;
            /**
             * Format: date-time
             * @description By the clock of Redis.
             */
            last_heartbeat_at: string;
            /** @description Duration of its last steps: the 10th and 90th percentile. */
            step_ms: {
                fast: number;
                slow: number;
            } | null;
        };
        QueueStatus: {
            model: string;
            /** @description True if an operator has paused it: queued requests wait, running ones continue. */
            paused: boolean;
            queued: number;
            running: number;
            /** @description Registered workers, including those beyond the hundred per model that are listed. */
            workers: number;
            /** @description Age of the oldest waiting request. */
            oldest_age_s: number | null;
            /** @description Mean of the last five minutes; `finished` includes canceled requests. */
            per_minute: {
                finished: number;
                failed: number;
            };
            /** @description Ended requests since the Redis data was created. */
            ended: {
                succeeded: number;
                failed: number;
                canceled: number;
                expired: number;
            };
            /** @description Running requests that were requeued since the Redis data was created. */
            requeued: {
                worker_lost: number;
                engine_failed: number;
                worker_stopped: number;
            };
        };
        DeadRequest: {
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            model: string;
            /** @description The name of the key; null if the request has expired. */
            owner: string | null;
            /** Format: date-time */
            failed_at: string;
            /** @description Deliveries to a worker. */
            attempts: number | null;
            code: string | null;
            reason: string;
            failure: components["schemas"]["LastFailure"];
            /** @description True while its input is still stored. */
            is_retryable: boolean;
        };
        /**
         * @example {
         *       "code": "worker_lost",
         *       "message": "The workers that ran this request were lost."
         *     }
         */
        Failure: {
            code: string;
            message: string;
        };
        Image: {
            index: number;
            /** @example /v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0 */
            url: string;
            seed: number;
            width: number;
            height: number;
            /** @example image/png */
            content_type: string;
            bytes: number;
            /**
             * @description Result of the model’s safety checker; a flagged image is black. Absent if the model has no
             * checker.
             */
            nsfw_content_detected?: boolean;
            /** @description The image in base64, with `?images=inline`. */
            b64_json?: string;
        };
        /** @description The probability of a token, and of the most probable ones in its place. */
        TokenLogprob: {
            token: string;
            /** @description Natural logarithm. */
            logprob: number;
            /** @description UTF-8. */
            bytes: number[];
            top: {
                token: string;
                /** @description Natural logarithm. */
                logprob: number;
                /** @description UTF-8. */
                bytes: number[];
            }[];
        };
        /** @description Error of the last failed attempt. The client gets only the code. */
        LastFailure: {
            /** @description `engine_error`, `out_of_memory`, `timeout` or `worker_lost`. */
            code: string;
            /** @description Message of the engine or module; the log has the stack. */
            message: string;
            worker: string;
        } | null;
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type ImageRequest = components['schemas']['ImageRequest'];
export type TextRequest = components['schemas']['TextRequest'];
export type Accepted = components['schemas']['Accepted'];
export type Cancel = components['schemas']['Cancel'];
export type Request = components['schemas']['Request'];
export type Model = components['schemas']['Model'];
export type RequestEvent = components['schemas']['RequestEvent'];
export type Status = components['schemas']['Status'];
export type DeadRequestList = components['schemas']['DeadRequestList'];
export type ImageStatus = components['schemas']['ImageStatus'];
export type TextStatus = components['schemas']['TextStatus'];
export type ImageModel = components['schemas']['ImageModel'];
export type TextModel = components['schemas']['TextModel'];
export type QueuedEvent = components['schemas']['QueuedEvent'];
export type StartedEvent = components['schemas']['StartedEvent'];
export type LoadingEvent = components['schemas']['LoadingEvent'];
export type FailedEvent = components['schemas']['FailedEvent'];
export type CanceledEvent = components['schemas']['CanceledEvent'];
export type ExpiredEvent = components['schemas']['ExpiredEvent'];
export type ImageProgressEvent = components['schemas']['ImageProgressEvent'];
export type ImageChunkEvent = components['schemas']['ImageChunkEvent'];
export type ImagesSucceededEvent = components['schemas']['ImagesSucceededEvent'];
export type TextProgressEvent = components['schemas']['TextProgressEvent'];
export type DeltaEvent = components['schemas']['DeltaEvent'];
export type SnapshotEvent = components['schemas']['SnapshotEvent'];
export type ResetEvent = components['schemas']['ResetEvent'];
export type TextEndEvent = components['schemas']['TextEndEvent'];
export type TextsSucceededEvent = components['schemas']['TextsSucceededEvent'];
export type WorkerStatus = components['schemas']['WorkerStatus'];
export type QueueStatus = components['schemas']['QueueStatus'];
export type DeadRequest = components['schemas']['DeadRequest'];
export type Failure = components['schemas']['Failure'];
export type Image = components['schemas']['Image'];
export type TokenLogprob = components['schemas']['TokenLogprob'];
export type LastFailure = components['schemas']['LastFailure'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
