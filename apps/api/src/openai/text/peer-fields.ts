/**
 * Additional fields of the chat and completions APIs of OpenAI, vLLM, llama.cpp, SGLang and others. A field that would
 * change the answer is either supported (`peer-forms.ts`) or refused by name, except for values that have no effect.
 */
import { describeValue, type FieldProblem } from '@darkroom/core';

interface PeerField {
  /** Accepted values, because they have no effect. Null is always accepted. */
  accepted: readonly unknown[];
  /** Advice that follows the expected values in the error message. */
  advice: string;
}

const notSupported = 'this server does not support it';
const noPenalty = 'send presence_penalty or frequency_penalty';
const noSampler = 'send temperature, top_p, top_k or min_p';
const sendFormat = 'send response_format, or text.format to /v1/responses';
const textOnly = 'models here generate only text';

function acceptOnly(values: readonly unknown[], advice = notSupported): PeerField {
  return { accepted: values, advice };
}

export const refusedFields: Readonly<Record<string, PeerField>> = {
  // OpenAI
  audio: acceptOnly([], textOnly),
  modalities: acceptOnly([['text']], textOnly),
  prediction: acceptOnly([]),
  web_search_options: acceptOnly([]),
  functions: acceptOnly([[]], 'send tools'),
  function_call: acceptOnly(['none', 'auto'], 'send tool_choice'),
  verbosity: acceptOnly(['medium']),
  reasoning_effort: acceptOnly(['none']),
  moderation: acceptOnly([]),
  // vLLM
  use_beam_search: acceptOnly([false]),
  length_penalty: acceptOnly([1]),
  repetition_penalty: acceptOnly([1], noPenalty),
  min_tokens: acceptOnly([0]),
  stop_token_ids: acceptOnly([[]], 'send stop'),
  include_stop_str_in_output: acceptOnly([false]),
  skip_special_tokens: acceptOnly([true]),
  spaces_between_special_tokens: acceptOnly([true]),
  truncate_prompt_tokens: acceptOnly([]),
  prompt_logprobs: acceptOnly([0, false]),
  allowed_token_ids: acceptOnly([], 'send logit_bias'),
  bad_words: acceptOnly([[]], 'send logit_bias'),
  add_generation_prompt: acceptOnly([true]),
  continue_final_message: acceptOnly([false]),
  chat_template: acceptOnly([]),
  chat_template_kwargs: acceptOnly([{}]),
  documents: acceptOnly([[]]),
  mm_processor_kwargs: acceptOnly([{}]),
  logits_processors: acceptOnly([[]]),
  return_tokens_as_token_ids: acceptOnly([false]),
  return_token_ids: acceptOnly([false], 'token ids are at /generate'),
  guided_whitespace_pattern: acceptOnly([]),
  vllm_xargs: acceptOnly([{}]),
  thinking_token_budget: acceptOnly([]),
  min_new_tokens: acceptOnly([0]),
  min_length: acceptOnly([0]),
  early_stopping: acceptOnly([false]),
  no_repeat_ngram_size: acceptOnly([0], noPenalty),
  encoder_no_repeat_ngram_size: acceptOnly([0], noPenalty),
  include_reasoning: acceptOnly([true, false]),
  // llama.cpp
  n_predict: acceptOnly([-1], 'send max_tokens'),
  repeat_penalty: acceptOnly([1], noPenalty),
  mirostat: acceptOnly([0], noSampler),
  typical_p: acceptOnly([1], noSampler),
  tfs_z: acceptOnly([1], noSampler),
  top_n_sigma: acceptOnly([-1, 0], noSampler),
  xtc_probability: acceptOnly([0], noSampler),
  dynatemp_range: acceptOnly([0], noSampler),
  dry_multiplier: acceptOnly([0], noPenalty),
  adaptive_target: acceptOnly([-1], noSampler),
  samplers: acceptOnly([], noSampler),
  n_probs: acceptOnly([0], 'send logprobs'),
  n_indent: acceptOnly([0]),
  lora: acceptOnly([[]]),
  grammar_lazy: acceptOnly([false]),
  grammar_triggers: acceptOnly([[]]),
  t_max_predict_ms: acceptOnly([0], 'send timeout_s to /v1/predict'),
  reasoning_budget: acceptOnly([-1, 0]),
  min_keep: acceptOnly([0], noSampler),
  // SGLang
  structural_tag: acceptOnly([]),
  stop_regex: acceptOnly([[]], 'send stop'),
  no_stop_trim: acceptOnly([false]),
  lora_path: acceptOnly([]),
  session_params: acceptOnly([{}]),
  custom_logit_processor: acceptOnly([]),
  custom_params: acceptOnly([{}]),
  return_hidden_states: acceptOnly([false]),
  // Text Generation Inference, KoboldCpp, Ollama, OpenRouter, Anthropic
  max_new_tokens: acceptOnly([], 'send max_tokens'),
  stop_sequences: acceptOnly([[]], 'send stop'),
  best_of_sequences: acceptOnly([1]),
  do_sample: acceptOnly([true], 'send temperature 0'),
  watermark: acceptOnly([false]),
  typical: acceptOnly([1], noSampler),
  top_a: acceptOnly([0], noSampler),
  tfs: acceptOnly([1], noSampler),
  rep_pen: acceptOnly([1], noPenalty),
  epsilon_cutoff: acceptOnly([0], noSampler),
  eta_cutoff: acceptOnly([0], noSampler),
  penalty_alpha: acceptOnly([0], noSampler),
  smoothing_factor: acceptOnly([0], noSampler),
  max_length: acceptOnly([], 'send max_tokens'),
  enable_thinking: acceptOnly([false]),
  json_mode: acceptOnly([false], sendFormat),
  response_schema: acceptOnly([], sendFormat),
  response_mime_type: acceptOnly(['text/plain'], sendFormat),
  guided_lark: acceptOnly([], 'send grammar, in GBNF'),
  choice: acceptOnly([], 'send guided_choice'),
  schema: acceptOnly([], sendFormat),
  extra_body: acceptOnly([{}], 'send its fields at the top level'),
  banned_tokens: acceptOnly([[]], 'send logit_bias'),
  transforms: acceptOnly([[]]),
  plugins: acceptOnly([[]]),
  options: acceptOnly([{}], 'send its fields at the top level'),
  format: acceptOnly([], sendFormat),
  think: acceptOnly([false]),
  thinking: acceptOnly([]),
  system: acceptOnly([], 'send a message of the role system'),
  // Fields of our other routes
  stream_mode: acceptOnly(['block_append'], 'to follow unfinished blocks, use /generate or /v1/predict/{id}/events'),
};

/** Fields of `/v1/responses` that chat and completions do not have. */
export const responseFields: typeof refusedFields = {
  text: acceptOnly([{}, { format: { type: 'text' } }], 'send response_format'),
  instructions: acceptOnly([], 'send a message of the role system'),
  previous_response_id: acceptOnly([], 'send messages'),
  max_output_tokens: acceptOnly([], 'send max_tokens'),
};

/** Fields of `/v1/completions` that chat does not have. */
export const completionFields: typeof refusedFields = {
  echo: acceptOnly([false]),
  suffix: acceptOnly(['']),
  best_of: acceptOnly([1], 'send n'),
  prompt: acceptOnly([], 'send messages'),
};

/** Fields of chat that `/v1/completions` does not have. */
export const chatFields: typeof refusedFields = {
  messages: acceptOnly([], 'send prompt'),
  tools: acceptOnly([[]], 'tools go with messages'),
  tool_choice: acceptOnly(['none', 'auto'], 'tools go with messages'),
};

/** Reports fields that request unsupported behavior. */
export function refusedProblems(fields: Readonly<Record<string, unknown>>, rules = refusedFields): FieldProblem[] {
  return Object.entries(fields).flatMap(([field, value]) => {
    const rule = Object.hasOwn(rules, field) ? rules[field] : undefined;
    if (rule === undefined || value == null) return [];
    const given = JSON.stringify(value);
    if (rule.accepted.some((each) => JSON.stringify(each) === given)) return [];
    const expected =
      rule.accepted.length === 0 ? 'nothing' : rule.accepted.map((each) => JSON.stringify(each)).join(' or ');
    const message = `${field} is ${describeValue(value)}, expected ${expected}: ${rule.advice}`;
    return [{ field, code: 'invalid_value', message }];
  });
}
