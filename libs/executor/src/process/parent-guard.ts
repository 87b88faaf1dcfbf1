/**
 * A thread of an engine's process that kills it when its parent is gone, whatever the engine itself is doing: a call to
 * the device that never returns blocks all but this.
 */
import { Socket } from 'node:net';

/** The channel after IPC's; nothing is ever said on it, and the kernel closes it with the parent. */
const guardFd = 4;

new Socket({ fd: guardFd }).resume().once('close', () => process.kill(process.pid, 'SIGKILL'));
