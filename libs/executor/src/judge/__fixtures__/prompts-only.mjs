// A moderation module that checks prompts and lets all images pass.
export const createJudge = () => ({ judgePrompt: () => ({ allowed: true }) });
