// Generated from /openapi.json by `npm run generate`. Do not edit.
/* oxlint-disable max-lines */
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ImageRequest: {
            /** The id of a model in /v1/models. Default: the server’s configured model, or its first. */
            model?: string | null;
            /**
             * Description of the image.
             * @example a fox on a green background
             */
            prompt: string;
            /** Description of what to avoid; no effect at guidance 1. Default: none. */
            negative_prompt?: string | null;
            /**
             * How both prompts are read. "plain": brackets are text. "webui", for models whose `prompt_syntaxes` has
             * it: as by Stable Diffusion web UI, with weights (`(red:1.2)`, `(red)`, `[red]`), adapters
             * (`<lora:pixels:0.8>`), and up to 300 tokens. Default: "plain".
             */
            prompt_syntax?: ("plain" | "webui") | null;
            /**
             * Pixels, within the limits of the model. Default: "auto", the model’s default size.
             * @example 128x128
             */
            size?: string | null;
            /**
             * Number of images; image i has the seed `seed + i`. Default: 1.
             * @example 1
             */
            n?: number | null;
            /**
             * Number of denoising steps, within the limits of the model. Default: the model’s.
             * @example 12
             */
            num_inference_steps?: number | null;
            /** How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the model’s. */
            guidance_scale?: number | null;
            /**
             * Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency models.
             * Default: 0 (off).
             */
            guidance_rescale?: number | null;
            /** The same seed and parameters give the same bytes. Default: random; the result contains it. */
            seed?: number | null;
            /**
             * One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI (`Euler a`).
             * Default: the model’s.
             */
            scheduler?: string | null;
            /** Default: png. */
            output_format?: ("png" | "jpeg" | "webp") | null;
            /** Quality of jpeg and webp; png ignores it. Default: 100. */
            output_compression?: number | null;
            /**
             * "inline" returns the images in base64 if the request waits for its result (`Prefer: wait`). Default:
             * "url".
             */
            output?: ("url" | "inline") | null;
            /** Number of steps between previews of the unfinished image, or "off". Default: {"every": 5}. */
            preview?: ("off" | {
                every: number;
            }) | null;
            /**
             * The input image, for models whose `takes` has it: PNG, JPEG or WebP, as a data URL, an https URL that the
             * server fetches, the `url` of an image from an earlier request of yours, or a file of a
             * `multipart/form-data` body. The server rotates it by its EXIF orientation, scales it to fill `size` and
             * crops it at the center. With `size: "auto"`, the size is that of the image, within the limits of the
             * model.
             */
            image?: string | null;
            /**
             * The area to repaint, for models whose `takes` has it: an image of the size of `image`, white where to
             * repaint and black where `image` stays.
             */
            mask?: string | null;
            /** How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a mask. */
            strength?: number | null;
            /**
             * Whether to embed the generation parameters in the file (prompts, seed, steps and so on), readable by
             * common tools. Anyone with the file can then read the prompt. An object, as OpenAI’s clients send it, is
             * ignored. Default: false.
             */
            metadata?: (boolean | {
                [key: string]: unknown;
            }) | null;
            /** Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling. */
            upscale?: (2 | 4) | null;
            /**
             * LoRA adapters of the model with their scales. Default: none; the default scale is 1.
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
            /** 1 is served first, 10 last. Default: 5. */
            priority?: number | null;
            /**
             * The request is `expired` if it has not ended within this time. Default: set by the server; at most one
             * day.
             */
            timeout_s?: number | null;
            /** The request is `expired` if no worker has started it within this time. Default: timeout_s. */
            start_timeout_s?: number | null;
            /**
             * URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are rejected unless the
             * server allows them.
             * @example https://example.com/darkroom
             */
            webhook_url?: string | null;
            /** Events to send; `completed` is any end. Default: ["completed"]. */
            webhook_events?: ("started" | "progress" | "completed")[] | null;
            /** Ignored and not stored. */
            user?: string | null;
        };
        TextRequest: {
            /** The id of a model in /v1/models. Default: the server’s configured model, or its first. */
            model?: string | null;
            /** Text to continue, as a string or as token ids. Instead of `messages`. */
            prompt?: (string | number[]) | null;
            /**
             * Conversation to answer, rendered with the chat template of the model. Instead of `prompt`. Parts of the
             * type `image_url` are for models whose `takes` has `image`.
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
                    type: "text";
                    text: string;
                } & {
                    [key: string]: unknown;
                }) | {
                    type: "image_url";
                    image_url: {
                        /**
                         * PNG, JPEG or WebP: a data URL, an https URL that the server fetches, or the `url` of an image
                         * from an earlier request of yours.
                         */
                        url: string;
                        /** For the model. Default: auto. */
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
             * An image to ask about, for models whose `takes` has it: the request is then one message with this image
             * and `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body.
             */
            image?: string | null;
            /**
             * Maximum number of tokens to generate. Default: the model’s.
             * @example 24
             */
            max_tokens?: number | null;
            /** 0 always takes the most probable token. Default: the model’s. */
            temperature?: number | null;
            /** Samples from the most probable tokens whose probabilities add up to this. Default: the model’s. */
            top_p?: number | null;
            /** Samples from this many most probable tokens; 0 is all. Default: the model’s. */
            top_k?: number | null;
            /** Minimum probability of a token, relative to the most probable one. Default: 0. */
            min_p?: number | null;
            /** Penalty for tokens that were generated before. Default: 0. */
            presence_penalty?: number | null;
            /** Penalty for tokens that were generated before, once per occurrence. Default: 0. */
            frequency_penalty?: number | null;
            /** Values to add to the logits of tokens, by token id. Default: none. */
            logit_bias?: {
                [key: string]: number;
            } | null;
            /** Whether to return the log probability of each token. Default: false. */
            logprobs?: boolean | null;
            /** Number of most probable alternatives to return for each token. Default: 0. */
            top_logprobs?: number | null;
            /** Number of texts; text i has the seed `seed + i`. Default: 1. */
            n?: number | null;
            /**
             * The same seed and parameters give the same text. A seed of more than 32 bits is folded to 32; the result
             * has the folded one. Default, and -1: random.
             */
            seed?: number | null;
            /** Strings at which generation ends; they are not part of the text. Default: none. */
            stop?: (string | string[]) | null;
            /** Ignore the end token and generate max_tokens. Default: false. */
            ignore_eos?: boolean | null;
            /**
             * Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema. Default: text.
             */
            response_format?: (({
                type: "text";
            } & {
                [key: string]: unknown;
            }) | ({
                type: "json_object";
            } & {
                [key: string]: unknown;
            }) | ({
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
             * Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none.
             * @example root ::= "a " ("red" | "blue") " fox"
             */
            grammar?: string | null;
            /**
             * Regular expression that the full text of every answer matches. Default: none.
             * @example (red|blue) fox
             */
            regex?: string | null;
            /**
             * Tools that the model may call, with arguments that match `parameters`; an empty list is none. For models
             * with `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either calls or text of
             * that form.
             */
            tools?: ({
                type: "function";
                function: {
                    name: string;
                    description?: string | null;
                    parameters?: ({
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
             * `auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it must call this
             * one. Default: auto.
             */
            tool_choice?: (("auto" | "none" | "required") | ({
                type: "function";
                function: {
                    name: string;
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })) | null;
            /** Whether one answer may have several tool calls. Default: true. */
            parallel_tool_calls?: boolean | null;
            /** Block diffusion only: maximum number of model calls. Default: no limit. */
            max_nfe?: number | null;
            /** Block diffusion only: probability from which a token is kept. Default: the model’s. */
            confidence_threshold?: number | null;
            /** Block diffusion only: number of tokens kept in each call, instead of those above the threshold. */
            tokens_per_step?: number | null;
            /** 1 is served first, 10 last. Default: 5. */
            priority?: number | null;
            /**
             * The request is `expired` if it has not ended within this time. Default: set by the server; at most one
             * day.
             */
            timeout_s?: number | null;
            /** The request is `expired` if no worker has started it within this time. Default: timeout_s. */
            start_timeout_s?: number | null;
            /**
             * URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are rejected unless the
             * server allows them.
             * @example https://example.com/darkroom
             */
            webhook_url?: string | null;
            /** Events to send; `completed` is any end. Default: ["completed"]. */
            webhook_events?: ("started" | "progress" | "completed")[] | null;
            /** Ignored and not stored. */
            user?: string | null;
            /** Ignored and not stored. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        Accepted: {
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** `queued`, unless an Idempotency-Key found an earlier one. */
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /**
             * Requests that will be dispatched before this one; null once it runs.
             * @example 0
             */
            queue_position: number | null;
            /**
             * Seconds until the end, as a range from measured step times; omitted if no worker has measured any.
             * @example {
             *       "min": 1.2,
             *       "max": 2.5
             *     }
             */
            eta_seconds?: {
                min: number;
                max: number;
            };
            /** True if a live worker serves the model right now. */
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
            status: "canceled" | "canceling";
        };
        Request: components["schemas"]["ImageStatus"] | components["schemas"]["TextStatus"];
        Model: components["schemas"]["ImageModel"] | components["schemas"]["TextModel"];
        RequestEvent: components["schemas"]["QueuedEvent"] | components["schemas"]["StartedEvent"] | components["schemas"]["LoadingEvent"] | components["schemas"]["FailedEvent"] | components["schemas"]["CanceledEvent"] | components["schemas"]["ExpiredEvent"] | components["schemas"]["ImageProgressEvent"] | components["schemas"]["ImageChunkEvent"] | components["schemas"]["ImagesSucceededEvent"] | components["schemas"]["TextProgressEvent"] | components["schemas"]["DeltaEvent"] | components["schemas"]["SnapshotEvent"] | components["schemas"]["ResetEvent"] | components["schemas"]["TextEndEvent"] | components["schemas"]["TextsSucceededEvent"];
        RequestPage: {
            object: "list";
            data: components["schemas"]["RequestSummary"][];
            /** Value of `cursor` for the next page; null after the last. */
            next_cursor: string | null;
        };
        Pin: {
            request_id: string;
            is_pinned: boolean;
            /** Format: date-time */
            expires_at: string;
        };
        Status: {
            /** Format: date-time */
            time: string;
            workers: components["schemas"]["WorkerStatus"][];
            queues: components["schemas"]["QueueStatus"][];
            /** The last failures of each model, newest first. */
            failures: {
                model: string;
                /** Format: date-time */
                failed_at: string;
                reason: string;
            }[];
            /**
             * Models that a worker failed to load in the last minute: such a worker is `loading`, or not registered.
             */
            failed_to_load: {
                model: string;
                host: string;
                /** Format: date-time */
                failed_at: string;
                reason: string;
            }[];
            /** Files that a model is served without, such as adapters that do not fit it. */
            refused_files: {
                model: string;
                file: string;
                reason: string;
            }[];
        };
        DeadRequestList: {
            object: "list";
            data: components["schemas"]["DeadRequest"][];
        };
        FailedAttempt: {
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            status: string;
            /** Deliveries to a worker; null once it has expired. */
            attempts: number | null;
            /** The error that the client gets. */
            error: {
                code: string;
                message: string;
            } | null;
            failure: components["schemas"]["FailureDetails"];
        };
        KeyList: {
            object: "list";
            data: components["schemas"]["Key"][];
            /** False on a server that needs no keys; none can be added there. */
            are_required: boolean;
        };
        NewKey: {
            /**
             * Owner of the requests sent with the key.
             * @example carol
             */
            name: string;
            /** The owner's share of the service; 1 by default. */
            weight?: number | null;
            /** No limit by default. */
            requests_per_minute?: number | null;
            /** No limit by default. */
            open_requests?: number | null;
        };
        AddedKey: {
            /** @example carol */
            name: string;
            weight: number;
            /** null: no limit. */
            requests_per_minute: number | null;
            /** null: no limit. */
            open_requests: number | null;
            /**
             * Revokes the key.
             * @example 5f0c1b2a3d4e6f70
             */
            id: string;
            /** Format: date-time */
            created_at: string;
            /** The key itself, which is shown only once. */
            key: string;
        };
        ImageStatus: {
            /** discriminator enum property added by openapi-typescript */
            kind: "image";
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /** Running, and will be canceled at its next step. */
            is_canceling: boolean;
            model: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: date-time
             * Time until which the results can be fetched; null while open.
             */
            expires_at: string | null;
            /** True if it is retained for longer than other requests. */
            is_pinned: boolean;
            /** Requests ahead of this one; null once it runs. */
            queue_position: number | null;
            /**
             * Seconds until the end, as a range from measured step times; omitted if no worker has measured any.
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
            /** Deliveries to a worker so far. */
            attempts: number;
            error?: components["schemas"]["Failure"];
            /** The failed request of which an operator made this retry. */
            retry_of?: string;
            /** The retry that an operator made of this failed request. */
            retried_as?: string;
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
            /** Steps done, over all images of the request. */
            step: number;
            total_steps: number;
            progress: number;
            seed: number;
            /** One per image. */
            seeds: number[];
            /** A body that reproduces the same images. */
            parameters: {
                /** The id of a model in /v1/models. Default: the server’s configured model, or its first. */
                model: string;
                /** Null once the request has ended, if the server does not retain prompts. */
                prompt: string | null;
                /** Null once the request has ended, if the server does not retain prompts. */
                negative_prompt: string | null;
                /**
                 * How both prompts are read. "plain": brackets are text. "webui", for models whose `prompt_syntaxes`
                 * has it: as by Stable Diffusion web UI, with weights (`(red:1.2)`, `(red)`, `[red]`), adapters
                 * (`<lora:pixels:0.8>`), and up to 300 tokens. Default: "plain".
                 */
                prompt_syntax?: "plain" | "webui";
                /**
                 * Pixels, within the limits of the model. Default: "auto", the model’s default size.
                 * @example 128x128
                 */
                size: string;
                /**
                 * Number of images; image i has the seed `seed + i`. Default: 1.
                 * @example 1
                 */
                n: number;
                /**
                 * Number of denoising steps, within the limits of the model. Default: the model’s.
                 * @example 12
                 */
                num_inference_steps: number;
                /**
                 * How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the model’s.
                 */
                guidance_scale: number;
                /**
                 * Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency models.
                 * Default: 0 (off).
                 */
                guidance_rescale: number;
                /** The same seed and parameters give the same bytes. Default: random; the result contains it. */
                seed: number;
                /**
                 * One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI (`Euler
                 * a`). Default: the model’s.
                 */
                scheduler: string;
                /** Default: png. */
                output_format: "png" | "jpeg" | "webp";
                /** Quality of jpeg and webp; png ignores it. Default: 100. */
                output_compression: number;
                /**
                 * Number of steps between previews of the unfinished image, or "off". Default: {"every": 5}.
                 * @example {
                 *       "every": 2
                 *     }
                 */
                preview: "off" | {
                    every: number;
                };
                /**
                 * URL of the input image, scaled and cropped; absent without one, null if it is no longer stored.
                 * @example /v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/inputs/image
                 */
                image?: string | null;
                /** URL of the mask, likewise: white where the image was repainted. */
                mask?: string | null;
                /** How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a mask. */
                strength?: number;
                metadata?: boolean;
                /** Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling. */
                upscale?: 2 | 4;
                /**
                 * LoRA adapters of the model with their scales. Default: none; the default scale is 1.
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
             * Number of tokens cut from the prompt's end because they exceed the model's limit; with several text
             * encoders, the smallest number counts. null before the first image is done.
             */
            prompt_tokens_cut: number | null;
            /** The same for the negative prompt; 0 if guidance does not use it. */
            negative_prompt_tokens_cut: number | null;
            images: components["schemas"]["Image"][];
        };
        TextStatus: {
            /** discriminator enum property added by openapi-typescript */
            kind: "text";
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /** Running, and will be canceled at its next step. */
            is_canceling: boolean;
            model: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: date-time
             * Time until which the results can be fetched; null while open.
             */
            expires_at: string | null;
            /** True if it is retained for longer than other requests. */
            is_pinned: boolean;
            /** Requests ahead of this one; null once it runs. */
            queue_position: number | null;
            /**
             * Seconds until the end, as a range from measured step times; omitted if no worker has measured any.
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
            /** Deliveries to a worker so far. */
            attempts: number;
            error?: components["schemas"]["Failure"];
            /** The failed request of which an operator made this retry. */
            retry_of?: string;
            /** The retry that an operator made of this failed request. */
            retried_as?: string;
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
            /** Tokens written, over all texts of the request. */
            tokens: number;
            /** Share of max_tokens generated so far; 1 if the request has succeeded. */
            progress: number;
            seed: number;
            /** The texts so far; complete once the request has ended. */
            texts: {
                index: number;
                text: string;
                /** Tool calls in the text, if there are any. */
                tool_calls?: {
                    id: string;
                    type: "function";
                    function: {
                        name: string;
                        /** JSON; incomplete if the text was cut. */
                        arguments: string;
                    };
                }[];
            }[];
            /**
             * A body that reproduces the same texts. For a model that another server runs, only the fields that were
             * sent.
             */
            parameters: {
                /** The id of a model in /v1/models. Default: the server’s configured model, or its first. */
                model: string;
                /**
                 * Token ids; for a model that another server runs, the prompt as sent. Null with `messages`, and once
                 * the request has ended if the server does not retain prompts.
                 */
                prompt: number[] | string | null;
                /**
                 * Conversation to answer, rendered with the chat template of the model. Instead of `prompt`. Parts of
                 * the type `image_url` are for models whose `takes` has `image`.
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
                        type: "text";
                        text: string;
                    } & {
                        [key: string]: unknown;
                    }) | {
                        type: "image_url";
                        image_url: {
                            /**
                             * PNG, JPEG or WebP: a data URL, an https URL that the server fetches, or the `url` of an
                             * image from an earlier request of yours.
                             */
                            url: string;
                            /** For the model. Default: auto. */
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
                 * An image to ask about, for models whose `takes` has it: the request is then one message with this
                 * image and `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body.
                 */
                image?: string;
                /**
                 * Maximum number of tokens to generate. Default: the model’s.
                 * @example 24
                 */
                max_tokens?: number;
                /** 0 always takes the most probable token. Default: the model’s. */
                temperature?: number;
                /** Samples from the most probable tokens whose probabilities add up to this. Default: the model’s. */
                top_p?: number;
                /** Samples from this many most probable tokens; 0 is all. Default: the model’s. */
                top_k?: number;
                /** Minimum probability of a token, relative to the most probable one. Default: 0. */
                min_p?: number;
                /** Penalty for tokens that were generated before. Default: 0. */
                presence_penalty?: number;
                /** Penalty for tokens that were generated before, once per occurrence. Default: 0. */
                frequency_penalty?: number;
                /** Values to add to the logits of tokens, by token id. Default: none. */
                logit_bias?: {
                    [key: string]: number;
                };
                /** Whether to return the log probability of each token. Default: false. */
                logprobs?: boolean;
                /** Number of most probable alternatives to return for each token. Default: 0. */
                top_logprobs?: number;
                /** Number of texts; text i has the seed `seed + i`. Default: 1. */
                n: number;
                /**
                 * The same seed and parameters give the same text. A seed of more than 32 bits is folded to 32; the
                 * result has the folded one. Default, and -1: random.
                 */
                seed: number;
                /** Strings at which generation ends; they are not part of the text. Default: none. */
                stop?: string | string[];
                /** Ignore the end token and generate max_tokens. Default: false. */
                ignore_eos?: boolean;
                /**
                 * Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema. Default:
                 * text.
                 * @example {
                 *       "type": "json_object"
                 *     }
                 */
                response_format?: ({
                    type: "text";
                } & {
                    [key: string]: unknown;
                }) | ({
                    type: "json_object";
                } & {
                    [key: string]: unknown;
                }) | ({
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
                 * Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none.
                 * @example root ::= "a " ("red" | "blue") " fox"
                 */
                grammar?: string;
                /**
                 * Regular expression that the full text of every answer matches. Default: none.
                 * @example (red|blue) fox
                 */
                regex?: string;
                /**
                 * Tools that the model may call, with arguments that match `parameters`; an empty list is none. For
                 * models with `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either calls or
                 * text of that form.
                 */
                tools?: ({
                    type: "function";
                    function: {
                        name: string;
                        description?: string | null;
                        parameters?: ({
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
                 * `auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it must call
                 * this one. Default: auto.
                 */
                tool_choice?: ("auto" | "none" | "required") | ({
                    type: "function";
                    function: {
                        name: string;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                });
                /** Whether one answer may have several tool calls. Default: true. */
                parallel_tool_calls?: boolean;
                /** Block diffusion only: maximum number of model calls. Default: no limit. */
                max_nfe?: number;
                /** Block diffusion only: probability from which a token is kept. Default: the model’s. */
                confidence_threshold?: number;
                /** Block diffusion only: number of tokens kept in each call, instead of those above the threshold. */
                tokens_per_step?: number;
            };
            usage: {
                prompt_tokens: number;
                /** Tokens generated so far, if the request is running or was canceled. */
                completion_tokens: number;
                total_tokens: number;
                /** Prompt tokens that were in the cache. */
                cached_tokens: number;
                /** Model calls after the prompt, of finished texts. */
                nfe: number;
            };
            /** One per finished text. */
            finish_reasons: ("stop" | "length")[];
        };
        ImageModel: {
            /** discriminator enum property added by openapi-typescript */
            kind: "image";
            /** @example emoji-sd */
            id: string;
            object: "model";
            created: number;
            owned_by: string;
            /** True if a live worker serves it right now. */
            is_possible: boolean;
            /** True if an operator has paused it: requests wait. */
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
            /** Values that `scheduler` accepts. */
            schedulers: string[];
            max_prompt_tokens: number;
            /** Values that `prompt_syntax` accepts. */
            prompt_syntaxes: ("plain" | "webui")[];
            /** Input files that requests may have; absent without any. */
            takes?: ("image" | "mask")[];
            /** Input files that each request must have; absent without any. */
            needs?: ("image" | "mask")[];
            /** Fields that requests must not have, because the server of the model does not support them. */
            unsupported?: ("negative_prompt" | "seed" | "guidance_rescale" | "strength")[];
            /** Values that `upscale` accepts; empty if the model has no upscaler. */
            upscales: (2 | 4)[];
            /**
             * Effect of the model’s safety checker on a flagged image: `black` replaces it, `refuse` fails the request.
             * null: no checker.
             */
            safety_checker: "black" | "refuse" | null;
            /** Adapters that `loras` accepts, with their ranks; absent without any. */
            loras?: {
                id: string;
                rank: number;
                /** File name, if it cannot be the id. */
                name?: string;
                /**
                 * Parts of the adapter that are ignored, such as `text_encoder`, because that part of the model does
                 * not support adapters.
                 */
                left_out?: string[];
            }[];
            /**
             * Prompts that the model draws well with its defaults. `image` is a thumbnail as a data URL. Absent without
             * any.
             */
            examples?: {
                prompt: string;
                seed: number;
                image: string;
            }[];
            defaults: {
                size: string;
                num_inference_steps: number;
                guidance_scale: number;
                scheduler: string;
            };
        };
        TextModel: {
            /** discriminator enum property added by openapi-typescript */
            kind: "text";
            /** @example emoji-sd */
            id: string;
            object: "model";
            created: number;
            owned_by: string;
            /** True if a live worker serves it right now. */
            is_possible: boolean;
            /** True if an operator has paused it: requests wait. */
            is_paused: boolean;
            pipeline: string;
            mode: "autoregressive" | "block_diffusion";
            /** Maximum tokens of prompt and output together, if known. */
            max_model_len?: number;
            vocabulary_size?: number;
            /** Whether the model takes `messages`. */
            has_chat_template: boolean;
            /** Images per request. With a minimum of 1, the model answers questions about images only. */
            images?: {
                min: number;
                max: number;
            };
            /** ["image"] if messages may have images, else []. Absent if only the server that runs the model knows. */
            takes?: "image"[];
            /** Whether the model calls tools. Absent if only the server that runs the model knows. */
            has_tools?: boolean;
            /** Whether a text has the same bytes regardless of the requests in its batch. */
            deterministic: boolean;
            deterministic_reason?: string;
            block_size?: number;
            /** Absent for a model that another server runs: that server applies its own. */
            defaults?: {
                max_tokens: number;
                temperature: number;
                top_p: number;
                top_k: number;
                confidence_threshold?: number;
            };
        };
        /** Queued; again if its worker is lost or stops. */
        QueuedEvent: {
            type: "queued";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Requests that will be dispatched before this one. */
            queue_position: number;
            /** From 1. */
            attempt: number;
        };
        /** A worker started it. */
        StartedEvent: {
            type: "started";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** From 1. */
            attempt: number;
        };
        /** Its worker loads the model first. */
        LoadingEvent: {
            type: "loading";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Duration of the last load on this worker. */
            expected_seconds?: number;
        };
        /** Final. */
        FailedEvent: {
            type: "failed";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            error: components["schemas"]["Failure"];
        };
        /** Final: a client or an operator canceled it. */
        CanceledEvent: {
            type: "canceled";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
        };
        /** Final: `timeout_s` or `start_timeout_s` elapsed. */
        ExpiredEvent: {
            type: "expired";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
        };
        /** An image advanced. */
        ImageProgressEvent: {
            type: "progress";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            /** Steps done. */
            step: number;
            total_steps: number;
            progress: number;
            /** At some steps, until the request has ended: a preview as a data URL, for the `src` of an `<img>`. */
            preview?: string;
        };
        /**
         * A chunk of a finished image: join the bytes of all chunks of an index. A later attempt sends an image again.
         */
        ImageChunkEvent: {
            type: "image";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
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
            /** Result of the model’s safety checker; a flagged image is black. Absent if the model has no checker. */
            nsfw_content_detected?: boolean;
            chunk_id: string;
            /** From 0. */
            chunk_index: number;
            total_chunks: number;
            is_chunked: boolean;
            /** The last chunk of the image. */
            is_final: boolean;
            /** The bytes of the chunk in base64. */
            b64: string;
        };
        /** Final: all images are done. */
        ImagesSucceededEvent: {
            type: "succeeded";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /**
             * Number of tokens cut from the prompt's end because they exceed the model's limit; with several text
             * encoders, the smallest number counts. null before the first image is done.
             */
            prompt_tokens_cut: number | null;
            /** The same for the negative prompt; 0 if guidance does not use it. */
            negative_prompt_tokens_cut: number | null;
            images: components["schemas"]["Image"][];
        };
        /** Tokens so far, at intervals; the text is in `delta` and `snapshot`. */
        TextProgressEvent: {
            type: "progress";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            tokens: number;
            max_tokens?: number;
        };
        /** Text was added at `offset`, and is final. */
        DeltaEvent: {
            type: "delta";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            /** Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
            text: string;
            token_ids?: number[];
            /** Block diffusion: model calls after the prompt, up to here. */
            nfe?: number;
            /** One per token, with `logprobs`. */
            logprobs?: components["schemas"]["TokenLogprob"][];
        };
        /** The text from `offset` on, which replaces everything after it; `░` is a token that is not decided yet. */
        SnapshotEvent: {
            type: "snapshot";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            /** Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
            text: string;
            token_ids?: number[];
            /** Block diffusion: model calls after the prompt, up to here. */
            nfe?: number;
            /** One per token, with `logprobs`. */
            logprobs?: components["schemas"]["TokenLogprob"][];
        };
        /**
         * Discard the text from `offset` on: another worker took over and wrote something else. Never sent by a model
         * that is `deterministic`.
         */
        ResetEvent: {
            type: "reset";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            /** Position in the text, in UTF-16 code units, as in strings of JavaScript. */
            offset: number;
        };
        /** A text is finished. */
        TextEndEvent: {
            type: "text";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            /** Of the image or text, from 0. */
            index: number;
            /** Of its UTF-8. */
            bytes: number;
            finish_reason: "stop" | "length";
            /** The stop text that ended it. */
            stop?: string;
            prompt_tokens: number;
            completion_tokens: number;
            cached_tokens: number;
            /** Model calls after the prompt. */
            calls: number;
        };
        /** Final: all texts are done. */
        TextsSucceededEvent: {
            type: "succeeded";
            /** Position in the events of the request. Increases; numbers may be missing. */
            id: string;
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** Format: date-time */
            timestamp: string;
            usage: {
                prompt_tokens: number;
                /** Tokens generated so far, if the request is running or was canceled. */
                completion_tokens: number;
                total_tokens: number;
                /** Prompt tokens that were in the cache. */
                cached_tokens: number;
                /** Model calls after the prompt, of finished texts. */
                nfe: number;
            };
            /** One per finished text. */
            finish_reasons: ("stop" | "length")[];
        };
        RequestSummary: {
            /** @example emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe */
            request_id: string;
            /** @example image */
            kind: string;
            model: string;
            status: "queued" | "running" | "succeeded" | "failed" | "canceled" | "expired";
            /** Running, and will be canceled at its next step. */
            is_canceling: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: date-time
             * Time until which the results can be fetched; null while open.
             */
            expires_at: string | null;
            /** True if it is retained for longer than other requests. */
            is_pinned: boolean;
            /**
             * The first 300 characters of the prompt; omitted if the server does not store prompts, or the prompt is
             * token ids.
             */
            prompt?: string;
            /** Images or texts that it has once it has succeeded. */
            output_count: number;
            /** Finished images; only of an image request. */
            images?: components["schemas"]["Image"][];
            error?: components["schemas"]["Failure"];
            urls: {
                self: string;
                events: string;
                cancel: string;
            };
        };
        WorkerStatus: {
            id: string;
            model: string;
            /**
             * `asleep`: it has freed the memory of its model, and loads it for the next request, or is about to.
             * `draining`: it gets no new requests. `silent`: no heartbeat; it counts as dead.
             */
            state: "loading" | "idle" | "busy" | "asleep" | "draining" | "silent";
            /** True if it is alive and has its model in memory. */
            loaded: boolean;
            draining: boolean;
            /** True if it drains because it is stopping, and requeues its requests; false if an operator drains it. */
            stopping: boolean;
            device: string | null;
            host: string | null;
            version: string | null;
            /**
             * Files of its model that were replaced since it was loaded: the loaded version is served until a restart.
             */
            changed_files: string | null;
            /** Slots: rows that can share a step. */
            rows: number;
            free_rows: number;
            /** Format: date-time */
            registered_at: string;
            /**
             * Format: date-time
             * By the clock of Redis.
             */
            last_heartbeat_at: string;
            /** Duration of its last steps: the 10th and 90th percentile. */
            step_ms: {
                fast: number;
                slow: number;
            } | null;
        };
        QueueStatus: {
            model: string;
            /** True if an operator has paused it: queued requests wait, running ones continue. */
            paused: boolean;
            queued: number;
            running: number;
            /** Registered workers, including those beyond the hundred per model that are listed. */
            workers: number;
            /** Age of the oldest waiting request. */
            oldest_age_s: number | null;
            /** Mean of the last five minutes; `finished` includes canceled requests. */
            per_minute: {
                finished: number;
                failed: number;
            };
            /** Ended requests since the Redis data was created. */
            ended: {
                succeeded: number;
                failed: number;
                canceled: number;
                expired: number;
            };
            /** Running requests that were requeued since the Redis data was created. */
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
            /** The name of the key; null if the request has expired. */
            owner: string | null;
            /** Format: date-time */
            failed_at: string;
            /** Deliveries to a worker. */
            attempts: number | null;
            code: string | null;
            reason: string;
            failure: components["schemas"]["LastFailure"];
            /** True while its input is still stored. */
            is_retryable: boolean;
        };
        /** Error of the last failed attempt. The client gets only the code. */
        FailureDetails: {
            /** `engine_error`, `out_of_memory`, `timeout` or `worker_lost`. */
            code: string;
            /** Message of the engine or module. */
            message: string;
            worker: string;
            /**
             * Stack of the error, as the log has it under `an attempt failed` or `unexpected engine error`; at most
             * 4,000 characters. null if there is none, such as for a lost worker.
             */
            details: string | null;
        } | null;
        Key: {
            /** @example carol */
            name: string;
            weight: number;
            /** null: no limit. */
            requests_per_minute: number | null;
            /** null: no limit. */
            open_requests: number | null;
            /** Where the key is defined; only those of `redis` can be revoked here. */
            source: "API_KEYS" | "ADMIN_KEYS" | "API_KEYS_FILE" | "redis";
            /**
             * Revokes the key.
             * @example 5f0c1b2a3d4e6f70
             */
            id: string | null;
            /** Format: date-time */
            created_at: string | null;
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
            /** Result of the model’s safety checker; a flagged image is black. Absent if the model has no checker. */
            nsfw_content_detected?: boolean;
            /** The image in base64, with `?images=inline`. */
            b64_json?: string;
        };
        /** The probability of a token, and of the most probable ones in its place. */
        TokenLogprob: {
            token: string;
            /** Natural logarithm. */
            logprob: number;
            /** UTF-8. */
            bytes: number[];
            top: {
                token: string;
                /** Natural logarithm. */
                logprob: number;
                /** UTF-8. */
                bytes: number[];
            }[];
        };
        /** Error of the last failed attempt. The client gets only the code. */
        LastFailure: {
            /** `engine_error`, `out_of_memory`, `timeout` or `worker_lost`. */
            code: string;
            /** Message of the engine or module. */
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
export type RequestPage = components['schemas']['RequestPage'];
export type Pin = components['schemas']['Pin'];
export type Status = components['schemas']['Status'];
export type DeadRequestList = components['schemas']['DeadRequestList'];
export type FailedAttempt = components['schemas']['FailedAttempt'];
export type KeyList = components['schemas']['KeyList'];
export type NewKey = components['schemas']['NewKey'];
export type AddedKey = components['schemas']['AddedKey'];
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
export type RequestSummary = components['schemas']['RequestSummary'];
export type WorkerStatus = components['schemas']['WorkerStatus'];
export type QueueStatus = components['schemas']['QueueStatus'];
export type DeadRequest = components['schemas']['DeadRequest'];
export type FailureDetails = components['schemas']['FailureDetails'];
export type Key = components['schemas']['Key'];
export type Failure = components['schemas']['Failure'];
export type Image = components['schemas']['Image'];
export type TokenLogprob = components['schemas']['TokenLogprob'];
export type LastFailure = components['schemas']['LastFailure'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
