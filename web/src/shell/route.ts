import {Store} from '../store';

const routes = ['chat', 'cache', 'plan'] as const;
export type Route = (typeof routes)[number];

function read(): Route {
  const name = location.hash.slice(1);
  return routes.find((known) => known === name) ?? 'chat';
}

/** The view that the address names. */
export const route = new Store<Route>(read());
window.addEventListener('hashchange', () => route.set(read()));

export function goTo(place: Route): void {
  if (route.value !== place) location.hash = place;
}
