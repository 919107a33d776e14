/** The device of what the system gave the whole process, as the table memory-curve calls it. */
export const PROCESS = 'process';
