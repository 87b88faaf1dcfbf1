// A module that judges prompts, and lets all pictures pass.
export const createJudge = () => ({ judgePrompt: () => ({ allowed: true }) });
