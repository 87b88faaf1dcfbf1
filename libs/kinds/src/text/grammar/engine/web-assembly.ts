/** The part of WebAssembly that the engine needs; TypeScript's own types need `lib.dom`. */
export interface WebAssemblyModule {
  readonly [Symbol.toStringTag]?: string;
}
export interface WebAssemblyMemory {
  readonly buffer: ArrayBuffer;
}
interface Api {
  compile(bytes: Uint8Array): Promise<WebAssemblyModule>;
  Memory: new (options: { initial: number; maximum: number }) => WebAssemblyMemory;
  Instance: new (module: WebAssemblyModule, imports: object) => { readonly exports: object };
}

export const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: Api };
