import {useEffect, useReducer} from 'preact/hooks';

/** A value that components watch. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }
  set(next: T): void {
    if (next === this.current) return;
    this.current = next;
    for (const listener of this.listeners) listener();
  }
  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }
  watch(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The value now; the component is drawn again whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const {value} = store;
  useEffect(() => {
    if (store.value !== value) redraw(undefined as never); // it changed before anybody watched
    return store.watch(() => redraw(undefined as never));
  }, [store]);
  return value;
}

/** A store whose value outlives the page, where the browser lets it. */
export function keptStore<T>(key: string, initial: T): Store<T> {
  const store = new Store<T>(read(key) ?? initial);
  store.watch(() => write(key, store.value));
  return store;
}

function read<T>(key: string): T | undefined {
  try {
    const text = localStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}
function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // A full or closed storage: the value lives as long as the page.
  }
}
