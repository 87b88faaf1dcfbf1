import type { OnnxSession } from '@darkroom/runtime';

/** A graph that can be let go of, and comes back by itself when it is called. */
export interface DroppableSession extends OnnxSession {
  /** Whether it is in memory. */
  readonly isLoaded: boolean;
  /** Frees the graph, as soon as no call of it is under way. */
  drop(): Promise<void>;
}

/**
 * Makes one of a loaded graph.
 *
 * @param load loads it again. If that fails, so does the call that needs it, and the next one tries again.
 */
export function createDroppableSession(loaded: OnnxSession, load: () => Promise<OnnxSession>): DroppableSession {
  const { device, refusals, inputs, outputs } = loaded;
  let session: Promise<OnnxSession> | undefined = Promise.resolve(loaded);
  let calls = 0;
  let isUnwanted = false;

  async function drop(): Promise<void> {
    isUnwanted = true;
    if (calls > 0) return;
    const dropped = session;
    session = undefined;
    await (await dropped)?.dispose();
  }

  async function use<Result>(work: (session: OnnxSession) => Promise<Result>): Promise<Result> {
    calls += 1;
    isUnwanted = false;
    try {
      session ??= load();
      return await work(await session.catch(forget));
    } finally {
      calls -= 1;
      if (isUnwanted) await drop();
    }
  }

  function forget(error: unknown): never {
    session = undefined;
    throw error;
  }

  return {
    device,
    refusals,
    inputs,
    outputs,
    get isLoaded() {
      return session !== undefined;
    },
    drop,
    run: (feeds, output) => use((open) => open.run(feeds, output)),
    runForAll: (feeds, names, into) => use((open) => open.runForAll(feeds, names, into)),
    countNodes: () => use((open) => open.countNodes()),
    dispose: drop,
  };
}
