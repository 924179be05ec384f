/** Why a request did not succeed, in one line for people. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly kind: 'gone' | 'key' | 'busy' | 'loading' | 'refused' | 'broken',
    readonly retrySeconds = 0,
  ) {
    super(message);
  }
}

/** Of a request that got no answer at all. */
export function unreachable(): Failure {
  return new Failure(
    `The server at ${location.host} does not answer. Is coterie serve still running?`,
    'gone',
  );
}

/** Of an answer whose stream ended before it was complete. */
export function brokenOff(): Failure {
  return new Failure('The connection broke off. What had arrived is kept; continue, or ask again.', 'broken');
}

/** Of an answer with an error's status; `told` is the server's own line. */
export function describeStatus(status: number, told: string, retryAfter: string | null): Failure {
  const seconds = Number(retryAfter) || 0;
  switch (status) {
    case 401:
      return new Failure('This server asks for an API key.', 'key');
    case 403:
      return new Failure(`The server turned this page away: ${told}.`, 'refused');
    case 413:
      return new Failure('That is more than the server takes at once. Send less text, or fewer files.', 'refused');
    case 429:
      return new Failure(
        `Everyone is being served and the queue is full. Try again in ${seconds || 'a few'} seconds.`,
        'busy',
        seconds,
      );
    case 503:
      return new Failure(`Not now: ${told}.`, 'loading', seconds);
    default:
      return new Failure(told ? `The server refused: ${told}.` : `The server answered ${status}.`, 'refused');
  }
}
