import {Store} from '../store';
import {describeStatus, Failure, unreachable} from './failure';

const kKey = 'coterie.key';

/** The API key, for servers that ask for one: of this tab, or of this browser where that was wished. */
export const apiKey = new Store(sessionStorage.getItem(kKey) ?? localStorage.getItem(kKey) ?? '');
/** Whether the server has turned the page away for want of a key. */
export const keyWanted = new Store(false);

export function setKey(key: string, remember: boolean): void {
  localStorage.removeItem(kKey);
  sessionStorage.removeItem(kKey);
  if (key) (remember ? localStorage : sessionStorage).setItem(kKey, key);
  apiKey.set(key);
  keyWanted.set(false);
}

async function toldBy(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as {error?: {message?: string}};
    return body.error?.message ?? '';
  } catch {
    return '';
  }
}

/** Asks the server; throws a Failure for anything but success. An abort throws the browser's AbortError. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.value) headers.set('Authorization', `Bearer ${apiKey.value}`);
  let response: Response;
  try {
    response = await fetch(path, {...init, headers});
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  const failure = describeStatus(response.status, await toldBy(response), response.headers.get('Retry-After'));
  if (failure.kind === 'key') keyWanted.set(true);
  throw failure;
}

export async function getJson<T>(path: string): Promise<T> {
  const response = await ask(path);
  try {
    return (await response.json()) as T;
  } catch {
    throw new Failure(`What the server answered at ${path} cannot be read.`, 'broken');
  }
}
