import { type ImageAttachment, type ImageCard, type ImageInput, type ImageOption, seedOfImage } from '@darkroom/kinds';
import { type ComfyGraph, splitPlace, type WorkflowField, type WorkflowFile, wrongFile } from './workflow-file.ts';

/** Steps that are reported for a workflow whose number of steps cannot be set. */
const countedSteps = 10;
const defaultSide = 512;
const maxSteps = 100;
const maxGuidance = 30;

/** A workflow as a model: what requests may set, and the graph for a request. */
export class Workflow {
  readonly #file: WorkflowFile;

  constructor(file: WorkflowFile) {
    this.#file = file;
  }

  /** Types of its nodes. */
  get nodeTypes(): readonly string[] {
    return [...new Set(Object.values(this.#file.graph).map(({ class_type }) => class_type))];
  }

  /** Node of the result; undefined for the only one that has images. */
  get output(): string | undefined {
    return this.#file.output;
  }

  /** @throws DarkroomError `model_unsupported` if the workflow's own values are no valid defaults. */
  card(served: Pick<ImageCard, 'id' | 'created'>): ImageCard {
    const { sizes } = this.#file;
    const takes = (['image', 'mask'] as const).filter((file) => this.#isSet(file));
    const unsupported = this.#unsupported(takes);
    return {
      ...served,
      ownedBy: 'comfyui',
      kind: 'image',
      pipeline: 'comfyui',
      sizes: { ...sizes, default: { width: this.#defaultSide('width'), height: this.#defaultSide('height') } },
      steps: this.#range('num_inference_steps', this.#file.steps ?? { min: 1, max: maxSteps }, countedSteps),
      guidance: this.#range('guidance_scale', this.#file.guidance ?? { min: 0, max: maxGuidance }, 1),
      schedulers: ['workflow'],
      defaultScheduler: 'workflow',
      maxPromptTokens: 0,
      // The nodes that load images have no default for them.
      ...(takes.length > 0 && { takes, needs: takes }),
      unsupported,
    };
  }

  /** Returns true if steps of this node are those of the image. */
  countsSteps(node: string): boolean {
    const places = this.#file.fields.num_inference_steps;
    return places === undefined || places.some((place) => splitPlace(place)[0] === node);
  }

  /** Returns true if requests set this input of this node. */
  isFromRequest(node: string, input: string): boolean {
    return Object.values(this.#file.fields).some((places) => places?.includes(`${node}.${input}`));
  }

  /** @param files names of the uploaded input files. */
  fill(input: ImageInput, index: number, files: ReadonlyMap<ImageAttachment, string>): ComfyGraph {
    const values: Record<WorkflowField, unknown> = {
      prompt: input.prompt,
      negative_prompt: input.negativePrompt,
      seed: seedOfImage(input.seed, index),
      num_inference_steps: input.numInferenceSteps,
      guidance_scale: input.guidanceScale,
      strength: input.strength,
      width: input.width,
      height: input.height,
      image: files.get('image'),
      mask: files.get('mask'),
    };
    const graph = structuredClone(this.#file.graph);
    for (const [field, places] of Object.entries(this.#file.fields)) {
      const value = values[field as WorkflowField];
      if (value === undefined) continue;
      for (const place of places ?? []) {
        const [node, name] = splitPlace(place);
        graph[node]!.inputs[name] = value;
      }
    }
    return graph;
  }

  #isSet(field: WorkflowField): boolean {
    return this.#file.fields[field] !== undefined;
  }

  #unsupported(takes: readonly ImageAttachment[]): ImageOption[] {
    const settable = (['negative_prompt', 'seed'] as const).filter((field) => !this.#isSet(field));
    const lacksStrength = takes.length > 0 && !this.#isSet('strength');
    return [...settable, 'guidance_rescale', ...(lacksStrength ? (['strength'] as const) : [])];
  }

  #range(
    field: 'num_inference_steps' | 'guidance_scale',
    { min, max }: { min: number; max: number },
    fixed: number,
  ): ImageCard['steps'] {
    if (!this.#isSet(field)) return { min: fixed, max: fixed, default: fixed };
    return { min, max, default: this.#default(field, (value) => value >= min && value <= max, `${min} to ${max}`) };
  }

  #defaultSide(field: 'width' | 'height'): number {
    const { sizes, name, fields } = this.#file;
    const { multiple, min, max } = sizes;
    const expected = `a multiple of ${multiple} from ${min} to ${max} (sizes)`;
    const isTaken = (side: number): boolean => side >= min && side <= max && side % multiple === 0;
    if (this.#isSet(field)) return this.#default(field, isTaken, expected);
    // The size is that of the input image.
    if (!this.#isSet('image')) throw wrongFile(name, `fields.${field}`, fields[field] ?? null, 'a node and its input');
    return Math.min(Math.max(defaultSide, Math.ceil(min / multiple) * multiple), Math.floor(max / multiple) * multiple);
  }

  /** Returns the workflow's own value of a field. */
  #default(field: WorkflowField, isTaken: (value: number) => boolean, expected: string): number {
    const { name, fields, graph } = this.#file;
    const [place = ''] = fields[field] ?? [];
    const [node, input] = splitPlace(place);
    const value = graph[node]?.inputs[input];
    if (typeof value === 'number' && isTaken(value)) return value;
    throw wrongFile(name, `the value of ${place} (fields.${field})`, value ?? null, expected);
  }
}
