export interface ActionRunner {
  /** Runs `act` on a click, one at a time; it resolves with what was done, in words, or undefined for nothing. */
  onClick(button: HTMLButtonElement, act: () => Promise<string | undefined>): void;
}

export interface ActionRunnerOptions {
  onStart: () => void;
  onDone: (words: string) => void;
  onProblem: (error: unknown) => void;
}

export function createActionRunner({ onStart, onDone, onProblem }: ActionRunnerOptions): ActionRunner {
  const run = async (button: HTMLButtonElement, act: () => Promise<string | undefined>): Promise<void> => {
    // Not `disabled`, which would take the focus away.
    if (button.ariaBusy === 'true') return;
    button.ariaBusy = 'true';
    onStart();
    try {
      const words = await act();
      if (words !== undefined) onDone(words);
    } catch (error) {
      onProblem(error);
    }
    button.ariaBusy = null;
  };
  return {
    onClick: (button, act) => button.addEventListener('click', () => void run(button, act)),
  };
}
