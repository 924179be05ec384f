import {ask, getJson} from '../api/client';
import {Failure} from '../api/failure';
import type {Plan, Props} from '../api/types';
import {Store} from '../store';

/** What the server said about itself, and why it does not where it does not. */
export interface ServerState {
  props?: Props;
  plan?: Plan;
  problem?: Failure;
}
export const server = new Store<ServerState>({});

const kLookAgain = 2000; // milliseconds
let waiting = 0;

/** Reads what does not change while a server runs; asks again for as long as it cannot be had. */
export async function readServer(): Promise<void> {
  window.clearTimeout(waiting);
  try {
    await ask('/health');
    const [props, plan] = await Promise.all([getJson<Props>('/props'), getJson<Plan>('/plan')]);
    server.set({props, plan});
  } catch (error) {
    const problem = error instanceof Failure ? error : new Failure('What the server sent cannot be read.', 'broken');
    server.update((state) => ({...state, problem}));
    if (problem.kind !== 'key') waiting = window.setTimeout(() => void readServer(), kLookAgain);
  }
}
